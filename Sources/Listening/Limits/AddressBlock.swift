package import MediaModel
package import NIOCore
import Octets

/// The part of a source address that stands for one subscriber line: an IPv4 address, or the /64 of an IPv6 address, because a line gets at
/// least that much (RFC 6177 section 2). Personal: it has no description.
package struct AddressBlock: Hashable, Sendable, CustomStringConvertible {
  private let high: UInt64
  private let low: UInt64
  /// The length of an IPv6 prefix; 128 for an IPv4 address.
  private let prefix: Int

  package var description: String { "address" }

  /// nil if it is not an IP address.
  package init?(_ address: NIOCore.SocketAddress?) {
    guard let (high, low) = address?.words else { return nil }
    let isIPv4 = high == 0 && low >> 32 == 0xffff
    self.high = high
    self.low = isIPv4 ? low : 0
    prefix = isIPv4 ? 128 : 64
  }

  private init(high: UInt64, prefix: Int) {
    (self.high, low, self.prefix) = (high & ~(.max >> UInt64(prefix)), 0, prefix)
  }

  /// This block, then the wider ones that one line may also have: the /56 and the /48 of IPv6.
  var lineage: [AddressBlock] {
    prefix == 128 ? [self] : [self, AddressBlock(high: high, prefix: 56), AddressBlock(high: high, prefix: 48)]
  }

  /// The number of lines that are assumed to share the block when its bound is set.
  var lines: Int {
    switch prefix {
    case 48: 16
    case 56: 4
    default: 1
    }
  }
}

/// IP addresses and networks, as written by an operator: `192.0.2.1`, `10.0.0.0/8`, `2001:db8::/32`.
package struct AddressList: Sendable {
  private struct Network: Sendable {
    let high: UInt64
    let low: UInt64
    /// 0 to 128; for an IPv4 network 96 more than was written.
    let prefix: Int

    func contains(_ high: UInt64, _ low: UInt64) -> Bool {
      (high ^ self.high) & Self.mask(prefix) == 0 && (low ^ self.low) & Self.mask(prefix - 64) == 0
    }

    private static func mask(_ bits: Int) -> UInt64 { bits <= 0 ? 0 : bits >= 64 ? .max : ~(.max >> UInt64(bits)) }
  }

  private let networks: [Network]

  package static let loopback = AddressList(
    networks: [
      Network(high: 0, low: 0xffff_7f00_0000, prefix: 104), Network(high: 0, low: 1, prefix: 128),
    ])

  private init(networks: [Network]) { self.networks = networks }

  /// nil if one is neither an address nor a network.
  package init?(_ texts: [String]) {
    var networks: [Network] = []
    for text in texts {
      let parts = text.split(separator: "/", omittingEmptySubsequences: false)
      guard (1...2).contains(parts.count),
        let address = try? NIOCore.SocketAddress(ipAddress: String(parts[0]), port: 0),
        let (high, low) = address.words
      else { return nil }
      let isIPv4 = address.protocol == .inet
      let bits = isIPv4 ? 32 : 128
      guard let prefix = parts.count == 2 ? Int(parts[1]) : bits, (0...bits).contains(prefix) else { return nil }
      networks.append(Network(high: high, low: low, prefix: isIPv4 ? prefix + 96 : prefix))
    }
    self.networks = networks
  }

  package func contains(_ address: NIOCore.SocketAddress?) -> Bool {
    guard let (high, low) = address?.words else { return false }
    return networks.contains { $0.contains(high, low) }
  }

  package func contains(_ address: MediaModel.SocketAddress) -> Bool {
    networks.contains { $0.contains(address.high, address.low) }
  }
}

extension NIOCore.SocketAddress {
  /// The 16 bytes of an IPv6 address, or ::ffff:a.b.c.d for IPv4, as two big-endian words; nil if it is not an IP address.
  fileprivate var words: (high: UInt64, low: UInt64)? {
    // `sin_addr` and `sin6_addr` follow family and port, and IPv6's flow label (ip(7), ipv6(7)).
    switch self {
    case .v4:
      withSockAddr { pointer, _ in
        let bytes = UnsafeRawBufferPointer(start: pointer, count: 8).bytes
        return (0, 0xffff_0000_0000 | UInt64(bytes.uint32(at: 4)))
      }
    case .v6:
      withSockAddr { pointer, _ in
        let bytes = UnsafeRawBufferPointer(start: pointer, count: 24).bytes
        return (bytes.uint64(at: 8), bytes.uint64(at: 16))
      }
    case .unixDomainSocket: nil
    }
  }
}
