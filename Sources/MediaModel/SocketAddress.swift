/// An IPv4 or IPv6 address and port of a peer, and this host's side of the path to it. IPv4-mapped IPv6 addresses are stored as IPv4. Personal: it has no description.
package struct SocketAddress: Hashable, Sendable {
  /// The 16 bytes of an IPv6 address, or ::ffff:a.b.c.d for IPv4, as two big-endian words.
  package var high: UInt64
  package var low: UInt64
  package var port: UInt16
  /// This host's side: 0 for UDP from the address that the kernel chooses, up to `0x7fff` the worker's number of a TCP connection, from `0x8000` on UDP from
  /// the local address with that number of the socket. The two ends make the path (a candidate pair, RFC 8445), so comparisons include both.
  private var localEnd: UInt16 = 0
  /// The interface of a link-local IPv6 address, else 0.
  package var scope: UInt32

  package init(high: UInt64, low: UInt64, port: UInt16, scope: UInt32 = 0) {
    self.high = high
    self.low = low
    self.port = port
    self.scope = scope
  }

  package init(ipv4 address: UInt32, port: UInt16) {
    self.init(high: 0, low: 0xffff_0000_0000 | UInt64(address), port: port)
  }

  /// The worker's number of the TCP connection from this address, up to `0x7fff`; 0 for UDP.
  package var connection: UInt16 {
    get { localEnd < 0x8000 ? localEnd : 0 }
    set { localEnd = newValue }
  }

  /// The socket's number of the local address to which UDP datagrams from this address came, 1 to `0x8000`; 0 if unknown.
  package var localAddress: UInt16 {
    get { localEnd < 0x8000 ? 0 : localEnd - 0x7fff }
    set { localEnd = newValue == 0 ? 0 : newValue + 0x7fff }
  }

  package var isIPv4: Bool { high == 0 && low >> 32 == 0xffff }
  /// The IPv4 address in host order; meaningful only when `isIPv4`.
  package var ipv4: UInt32 { UInt32(truncatingIfNeeded: low) }
  package var isLoopback: Bool { isIPv4 ? ipv4 >> 24 == 127 : high == 0 && low == 1 }
  package var isLinkLocal: Bool { isIPv4 ? ipv4 >> 16 == 0xa9fe : high >> 54 == 0x3fa }

  /// The address as written in an ICE candidate, without the port. It must be called explicitly and is not a description:
  /// protocol section 12.
  package var candidateAddress: String {
    if isIPv4 { return (0..<4).map { String(ipv4 >> UInt32(24 - 8 * $0) & 0xff) }.joined(separator: ".") }
    return (0..<8).map { i in
      String((i < 4 ? high : low) >> UInt64(48 - 16 * (i % 4)) & 0xffff, radix: 16)
    }.joined(separator: ":")
  }
}

extension SocketAddress: CustomStringConvertible { package var description: String { "address" } }

/// A run of datagrams of equal length (the last may be shorter), contiguous in memory, to one address: one message with UDP_SEGMENT.
package struct DatagramRun {
  package var base: UnsafeMutableRawPointer
  /// Total bytes.
  package var length: Int
  /// Bytes of each datagram except the last.
  package var segment: Int
  package var destination: SocketAddress

  package init(base: UnsafeMutableRawPointer, length: Int, segment: Int, destination: SocketAddress) {
    self.base = base
    self.length = length
    self.segment = segment
    self.destination = destination
  }

  package var count: Int { (length + segment - 1) / segment }
}
