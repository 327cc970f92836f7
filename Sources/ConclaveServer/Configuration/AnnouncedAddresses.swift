import Glibc
import MediaModel
import MediaPlane
import Octets

/// The addresses of the media ports that are announced to clients: all of the machine's addresses, or those that the
/// operator names.
struct AnnouncedAddresses: Sendable {
  let configured: [SocketAddress]

  /// - Throws: `ConfigurationError` for text that is not an address.
  init(_ configured: [String]) throws(ConfigurationError) {
    var addresses: [SocketAddress] = []
    for text in configured {
      guard let address = SocketAddress(numeric: text) else {
        throw ConfigurationError("media.announce: \(text) is not an IPv4 or IPv6 address")
      }
      addresses.append(address)
    }
    self.configured = addresses
  }

  /// Link-local addresses need a zone, for which a candidate has no place.
  func addresses(of worker: Int, in media: MediaWorkers) -> [SocketAddress] {
    guard configured.isEmpty else {
      return configured.map { SocketAddress(high: $0.high, low: $0.low, port: media.port(of: worker)) }
    }
    return media.addresses(of: worker).filter { !$0.isLinkLocal }
  }
}

extension SocketAddress {
  /// An address as text, without a port; nil if it is neither IPv4 nor IPv6.
  fileprivate init?(numeric text: String) {
    var ipv4 = in_addr()
    var ipv6 = in6_addr()
    if inet_pton(AF_INET, text, &ipv4) == 1 {
      self.init(ipv4: UInt32(bigEndian: ipv4.s_addr), port: 0)
    } else if inet_pton(AF_INET6, text, &ipv6) == 1 {
      let (high, low) = withUnsafeBytes(of: &ipv6) { ($0.bytes.uint64(at: 0), $0.bytes.uint64(at: 8)) }
      self.init(high: high, low: low, port: 0)
    } else {
      return nil
    }
  }
}
