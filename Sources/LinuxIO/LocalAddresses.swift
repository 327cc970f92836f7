import MediaModel

/// The addresses of this host to which a socket's datagrams came, by number, so that an answer leaves from the address that the peer used.
///
/// Otherwise a host with several addresses answers from that of the route, and an ICE agent discards an answer from an address that it did not ask
/// (RFC 8445 section 7.2.5.2.1).
struct LocalAddresses {
  /// Hosts have fewer. Beyond it the kernel chooses the address of answers.
  static let capacity = 64

  private var addresses: [SocketAddress] = []
  /// The number that was looked up last; datagrams usually come to one address.
  private var recent: UInt16 = 0

  init() { addresses.reserveCapacity(Self.capacity) }

  /// The number of an address, 1 to `capacity`; 0 if the kernel did not report the address, and when all numbers are
  /// taken.
  mutating func number(of address: SocketAddress) -> UInt16 {
    if let known = self[recent], known.isSame(as: address) { return recent }
    guard address.low | address.high != 0 else { return 0 }
    if let index = addresses.firstIndex(where: { $0.isSame(as: address) }) {
      recent = UInt16(index + 1)
    } else {
      guard addresses.count < Self.capacity else { return 0 }
      addresses.append(address)
      recent = UInt16(addresses.count)
    }
    return recent
  }

  /// The address with this number; nil for 0 and for numbers that were not assigned.
  subscript(number: UInt16) -> SocketAddress? {
    (1..<addresses.count + 1).contains(Int(number)) ? addresses[Int(number) - 1] : nil
  }
}

extension SocketAddress {
  fileprivate func isSame(as other: SocketAddress) -> Bool { low == other.low && high == other.high }
}
