import NIOCore
import Signaling

/// The addresses that the server connects to for a push: public ones, and those that the operator names. The endpoint of a subscription is a stranger's choice, and
/// must not lead into the server's own network.
struct PushAddresses: Sendable {
  private let allowed: AddressList?

  /// Blocks that are not globally reachable (the registries of RFC 6890), and those that carry an IPv4 address within, which is any host's.
  private static let special = AddressList([
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16", "172.16.0.0/12", "192.0.0.0/24",
    "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.168.0.0/16", "192.175.48.0/24",
    "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/4", "240.0.0.0/4",
    "::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
    "5f00::/16", "fc00::/7", "fe80::/10", "fec0::/10", "ff00::/8",
  ])

  /// - Parameter allowed: addresses and networks of the operator's own push services; nil for none.
  init(allowed: AddressList?) { self.allowed = allowed }

  func includes(_ address: NIOCore.SocketAddress) -> Bool {
    guard [.inet, .inet6].contains(address.protocol) else { return false }
    if allowed?.contains(address) == true { return true }
    return Self.special?.contains(address) == false
  }
}
