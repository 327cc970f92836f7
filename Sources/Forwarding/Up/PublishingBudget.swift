import MediaModel

/// The most that a publisher may send on average. The amount for one second may come at once: a key frame, or what a network held back.
package struct PublishingRate: Sendable, Hashable {
  /// Packets per second.
  package var packets: Int
  /// In kbit/s, of decrypted packets with their RTP headers.
  package var kilobits: Int

  package init(packets: Int, kilobits: Int) {
    self.packets = packets
    self.kilobits = kilobits
  }
}

/// The packets and bytes that a track or a peer may still send. The receivers multiply each packet, so it is charged before they get it.
///
/// Two token buckets as in `TokenBucket`, charged together and without a branch between them, as each packet passes them. In flat memory.
struct PublishingBudget {
  /// Nanoseconds for one packet, for one byte, and for a burst.
  private let packetInterval: UInt64
  private let byteInterval: UInt64
  private let depth: UInt64 = 1_000_000_000
  /// When the buckets will be full again.
  private var packetsFullAt: UInt64 = 0
  private var bytesFullAt: UInt64 = 0

  init(_ rate: PublishingRate) {
    packetInterval = depth / UInt64(min(max(1, rate.packets), 1_000_000_000))
    byteInterval = depth / UInt64(min(max(1, rate.kilobits), 8_000_000) * 125)
  }

  /// Charges a packet, or nothing if it exceeds the budget.
  /// - Parameter length: of the decrypted packet, in bytes: a datagram's at most.
  /// - Returns: false if it exceeds the budget.
  mutating func takes(_ length: Int, now: Instant) -> Bool {
    let time = now.nanoseconds
    let packets = max(packetsFullAt, time) &+ packetInterval
    let bytes = max(bytesFullAt, time) &+ byteInterval &* UInt64(truncatingIfNeeded: length)
    guard packets &- time <= depth, bytes &- time <= depth else { return false }
    (packetsFullAt, bytesFullAt) = (packets, bytes)
    return true
  }
}
