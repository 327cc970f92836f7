import MediaModel
import Listening

/// The addresses to which the server connects for a push: public ones, and those that the operator names. The endpoint of a subscription is a stranger's choice,
/// and must not lead into the server's own network.
struct PushAddresses: Sendable {
  private let allowed: AddressList?

  /// Blocks of IPv4 that are not globally reachable (IANA's registry of special-purpose addresses, RFC 6890), or contain no hosts.
  private static let specialIPv4 = AddressList([
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
  ])

  /// All of IPv6 except the global unicast addresses, 2000::/3 (RFC 4291 section 2.4, and IANA's registry of the address space): translated IPv4 addresses, which
  /// may belong to any host, are outside of it (RFC 2765, 6052, 8215). Within 2000::/3 the same as for IPv4, plus Teredo and 6to4.
  private static let specialIPv6 = AddressList([
    "::/3", "4000::/2", "8000::/1", "2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20",
  ])

  /// - Parameter allowed: addresses and networks of the operator's own push services; nil for none.
  init(allowed: AddressList?) { self.allowed = allowed }

  /// - Parameter address: an IPv4-mapped one counts as IPv4.
  func includes(_ address: SocketAddress) -> Bool {
    if allowed?.contains(address) == true { return true }
    let special = address.isIPv4 ? Self.specialIPv4 : Self.specialIPv6
    return special?.contains(address) == false
  }
}
