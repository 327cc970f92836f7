import MediaModel
import RTP

/// Makes one stream out of the sources that stand in a slot one after the other: numbers, times and VP8's picture ids run on.
///
/// Within a source all offsets are constant, so a packet has the same numbers however often and late it is sent.
struct Continuity {
  /// The numbers of one packet after rewriting.
  struct Numbers: Equatable {
    var index: UInt64
    var timestamp: UInt32
    var pictureID: UInt16 = 0
    var tl0PictureIndex: UInt8 = 0
    var keyIndex: UInt8 = 0

    var sequenceNumber: UInt16 { UInt16(truncatingIfNeeded: index) }
  }

  /// The source's first packet has gone out; false while the slot waits for one.
  private(set) var isRunning = false
  /// The source was heard in this slot before a pause.
  private var isResumable = false
  /// The first of the source's packets that is part of the stream.
  private var base: UInt64 = 0
  private var indexOffset: UInt64 = 0
  private(set) var timestampOffset: UInt32 = 0
  private var pictureOffset: UInt16 = 0
  private var tl0Offset: UInt8 = 0
  private var keyOffset: UInt8 = 0
  /// The newest packet that went out, and when.
  private var last: Numbers
  private var lastSent: Instant?

  /// The newest sequence number that went out.
  var newest: UInt16 { last.sequenceNumber }

  /// - Parameter first: the stream's first sequence number.
  init(first: UInt16) {
    last = Numbers(index: 65_536 + UInt64(first) - 1, timestamp: 0)
  }

  /// The source pauses; it may go on with `start` at a later packet.
  mutating func pause() {
    isResumable = isResumable || isRunning
    isRunning = false
  }

  /// Another source will follow.
  mutating func endSource() {
    isResumable = false
    isRunning = false
  }

  /// The next packet of the stream is `packet`, the source's first, or its first after a pause.
  mutating func start(_ packet: borrowing Packet, clockRate: UInt32, now: Instant) {
    base = packet.index
    indexOffset = last.index &+ 1 &- packet.index
    if !isResumable {
      timestampOffset = nextTimestamp(clockRate, now) &- packet.header.timestamp
    }
    if let vp8 = packet.vp8 {
      pictureOffset = last.pictureID &+ 1 &- (vp8.pictureID ?? 0)
      tl0Offset = last.tl0PictureIndex &+ 1 &- (vp8.tl0PictureIndex ?? 0)
      keyOffset = last.keyIndex &+ 1 &- (vp8.keyIndex ?? 0)
    }
    isRunning = true
  }

  /// nil for a packet from before the source's beginning here.
  func numbers(for packet: borrowing Packet) -> Numbers? {
    guard packet.index >= base else { return nil }
    // A field that the packet lacks keeps its last value, for the next source to go on from.
    var numbers = last
    numbers.index = packet.index &+ indexOffset
    numbers.timestamp = packet.header.timestamp &+ timestampOffset
    if let id = packet.vp8?.pictureID { numbers.pictureID = (id &+ pictureOffset) & 0x7fff }
    if let index = packet.vp8?.tl0PictureIndex { numbers.tl0PictureIndex = index &+ tl0Offset }
    if let index = packet.vp8?.keyIndex { numbers.keyIndex = (index &+ keyOffset) & 0x1f }
    return numbers
  }

  mutating func sent(_ numbers: Numbers, now: Instant) {
    guard numbers.index > last.index else { return }
    last = numbers
    lastSent = now
  }

  /// The source's packet that went out under `sequenceNumber`; nil when it was another source's, or never sent.
  func sourceIndex(_ sequenceNumber: UInt16) -> UInt64? {
    let behind = SequenceNumber.distance(from: sequenceNumber, to: newest)
    guard isRunning, behind >= 0 else { return nil }
    let index = last.index &- UInt64(behind) &- indexOffset
    return index >= base && index <= last.index &- indexOffset ? index : nil
  }

  /// As much later than the last packet as time has passed, but later.
  private func nextTimestamp(_ clockRate: UInt32, _ now: Instant) -> UInt32 {
    guard let lastSent else { return last.timestamp }
    return last.timestamp &+ max(1, now.ticks(clockRate) &- lastSent.ticks(clockRate))
  }
}
