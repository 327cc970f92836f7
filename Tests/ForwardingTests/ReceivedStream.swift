import MediaModel
import RTP

@testable import Forwarding

/// The packets that a test peer received in one slot, by their unwrapped sequence numbers.
struct ReceivedStream {
  struct Packet: Equatable {
    var timestamp: UInt32
    var marker: Bool
    var pictureID: UInt16?
    var tl0PictureIndex: UInt8?
    var keyIndex: UInt8?
    var serial: UInt64
    var body: [UInt8]
    var arrival: Instant
    var isRetransmission: Bool
    var extensions: [UInt8: [UInt8]]
    var payloadType: UInt8
  }

  let slot: SlotDescription
  private var unwrapper = SequenceUnwrapper()
  private(set) var packets: [UInt64: Packet] = [:]
  private(set) var duplicates = 0
  private var gaps: Set<UInt64> = []

  init(_ slot: SlotDescription) { self.slot = slot }

  mutating func insert(_ sequenceNumber: UInt16, _ packet: Packet) {
    let highest = unwrapper.highest
    let index = unwrapper.unwrap(sequenceNumber)
    if let highest, index > highest { gaps.formUnion(highest + 1..<index) }
    gaps.remove(index)
    if packets[index] != nil {
      duplicates += 1
    } else {
      packets[index] = packet
    }
  }

  var ordered: [Packet] { packets.sorted { $0.key < $1.key }.map(\.value) }

  var serials: [UInt64] { ordered.map(\.serial) }

  /// The sequence number of the newest packet; nil before the first.
  var newest: UInt16? { packets.keys.max().map { UInt16(truncatingIfNeeded: $0) } }

  /// Missing numbers between the first received one and the newest.
  var missing: [UInt16] { gaps.sorted().map { UInt16(truncatingIfNeeded: $0) } }
}
