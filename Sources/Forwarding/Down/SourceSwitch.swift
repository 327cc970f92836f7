import MediaModel
import RTP

/// Makes one stream from the sources that are in a slot one after the other: sequence numbers, timestamps and VP8's picture ids continue.
///
/// It does not know whether the source is running: `SlotState` does, and also how a source continues.
///
/// Within a source a packet has the same numbers however often and late it is sent: its sequence number comes from the `SequenceMap`, all others
/// are its own plus a constant. A source's first sequence number is one more than the newest that was sent, and its first timestamp is later by
/// the time that has passed.
///
/// The stream's numbers are independent of the source's. A receiver guesses the upper half of an index from the last packet that it got (RFC
/// 3711 section 3.3.1), so a source whose numbers jump could break the stream permanently. Numbers stay unused only for packets that can have
/// been lost on their way here: a source that jumps further has to start again.
struct SourceSwitch {
  /// How many numbers may stay unused between two packets: as many as are requested again.
  static let longestGap = NackGenerator.maximumGap
  /// How many numbers may stay unused in total, beyond one for each packet sent since. So half of 65,536 numbers are at least
  /// 16,000 packets, and a receiver that misses that many is away anyway.
  static let unusedNumbers: UInt64 = 256
  /// A late packet is sent if it is not further behind the newest than this. With `longestGap`, two packets that are sent one after the other are at most
  /// 1,001 apart.
  static let reach: UInt64 = 800

  /// The numbers of one packet after rewriting.
  struct Numbers: Equatable {
    /// The unwrapped sequence number; the stream's first is between 65,536 and 131,071.
    var index: UInt64
    var timestamp: UInt32
    var pictureID: UInt16 = 0
    var tl0PictureIndex: UInt8 = 0
    var keyIndex: UInt8 = 0

    var sequenceNumber: UInt16 { UInt16(truncatingIfNeeded: index) }
  }

  private var sequence: SequenceMap
  /// From the source's timestamps to the stream's, in the source's clock rate.
  private(set) var timestampOffset: UInt32 = 0
  private var pictureOffset: UInt16 = 0
  private var tl0Offset: UInt8 = 0
  private var keyOffset: UInt8 = 0
  /// The newest packet that was sent, and when.
  private var last: Numbers
  private var lastSent: Instant?
  /// How many more numbers may stay unused now.
  private var spare = SourceSwitch.unusedNumbers

  /// The newest sequence number that was sent.
  var newest: UInt16 { last.sequenceNumber }

  /// The timestamp of the newest packet that was sent.
  var lastTimestamp: UInt32 { last.timestamp }

  /// - Parameter first: the stream's first sequence number.
  init(first: UInt16) {
    last = Numbers(index: 65_536 + UInt64(first) - 1, timestamp: 0)
    sequence = SequenceMap(first: 1, output: last.index &+ 1)
  }

  /// The next packet of the stream is `packet`, the source's first, or its first after a pause.
  /// - Parameters:
  ///   - continuation: how it continues from the packets before.
  ///   - clockRate: of the source, in Hz.
  mutating func start(
    _ packet: borrowing Packet, as continuation: SlotState.Continuation, clockRate: UInt32, now: Instant
  ) {
    sequence = SequenceMap(first: packet.index, output: last.index &+ 1)
    switch continuation {
    case .newSource: timestampOffset = nextTimestamp(clockRate, now) &- packet.header.timestamp
    case .resumed: break
    case .layer(let difference):
      timestampOffset = layerTimestamp(packet, difference, clockRate, now) &- packet.header.timestamp
    }
    if let vp8 = packet.vp8 {
      pictureOffset = last.pictureID &+ 1 &- (vp8.pictureID ?? 0)
      tl0Offset = last.tl0PictureIndex &+ 1 &- (vp8.tl0PictureIndex ?? 0)
      keyOffset = last.keyIndex &+ 1 &- (vp8.keyIndex ?? 0)
    }
  }

  /// Whether the packet with this index is newer than all others of the source.
  func isAhead(_ index: UInt64) -> Bool { sequence.isAhead(index) }

  /// The numbers of a packet that is about to be sent; nil if it precedes the source's beginning here, is too old, or if the source has jumped.
  mutating func map(_ packet: borrowing Packet) -> Numbers? {
    guard let index = sequence.map(packet.index), index &- last.index &+ Self.reach <= Self.reach &+ 1 &+ gapLimit
    else {
      return nil
    }
    return numbers(packet, index: index)
  }

  /// Whether `map` refused the packet with this index because it would leave too many numbers unused. The source then has to start again.
  func hasJumped(to index: UInt64) -> Bool {
    guard let output = sequence.output(of: index), output > last.index else { return false }
    return output &- last.index > 1 &+ gapLimit
  }

  private var gapLimit: UInt64 { min(Self.longestGap, spare) }

  /// The numbers under which a packet was sent; nil if it was not sent.
  func numbers(of packet: borrowing Packet) -> Numbers? {
    guard let index = sequence.output(of: packet.index) else { return nil }
    return numbers(packet, index: index)
  }

  /// Leaves out the source's packet with this index, so that the receiver does not miss it. If it has a number, the number stays unused.
  mutating func omit(_ index: UInt64) { sequence.omit(index) }

  /// The packet with these numbers of `map` was sent.
  mutating func sent(_ numbers: Numbers, now: Instant) {
    guard numbers.index > last.index else { return }
    use(numbers.index)
    last = numbers
    lastSent = now
  }

  /// A packet waits. Times and picture ids continue from it, and `released` follows when it is sent under a sequence
  /// number.
  mutating func queued(_ packet: borrowing Packet, now: Instant) {
    let numbers = numbers(packet, index: last.index)
    guard Int32(bitPattern: numbers.timestamp &- last.timestamp) >= 0 else { return }
    last = numbers
    lastSent = now
  }

  /// A packet that waited was sent under this index.
  mutating func released(_ index: UInt64) {
    guard index > last.index else { return }
    use(index)
    last.index = index
  }

  /// `index` is above the newest, by no more than `map` allows.
  private mutating func use(_ index: UInt64) {
    let unused = index &- last.index &- 1
    spare = min(Self.unusedNumbers, spare &- unused &+ 1)
  }

  /// The source's packet that was sent under `sequenceNumber`; nil if it was another source's, or if none was sent.
  func sourceIndex(_ sequenceNumber: UInt16) -> UInt64? {
    let behind = SequenceNumber.distance(from: sequenceNumber, to: newest)
    guard behind >= 0 else { return nil }
    return sequence.index(of: last.index &- UInt64(behind))
  }

  /// The unwrapped number of the packet that was sent under `sequenceNumber`, whichever source it came from.
  func index(of sequenceNumber: UInt16) -> UInt64? {
    let behind = SequenceNumber.distance(from: sequenceNumber, to: newest)
    return behind >= 0 ? last.index &- UInt64(behind) : nil
  }

  /// Whether no packet is sent under `sequenceNumber`, or no longer: the receiver does not get that packet, or the previous source left the gap and
  /// nothing after this source's key frame refers to it.
  func isUnused(_ sequenceNumber: UInt16) -> Bool {
    let behind = SequenceNumber.distance(from: sequenceNumber, to: newest)
    guard behind >= 0 else { return false }
    return sequence.isUnused(last.index &- UInt64(behind))
  }

  private func numbers(_ packet: borrowing Packet, index: UInt64) -> Numbers {
    // A field that the packet lacks keeps its last value, from which the next source continues.
    var numbers = last
    numbers.index = index
    numbers.timestamp = packet.header.timestamp &+ timestampOffset
    if let id = packet.vp8?.pictureID { numbers.pictureID = (id &+ pictureOffset) & 0x7fff }
    if let index = packet.vp8?.tl0PictureIndex { numbers.tl0PictureIndex = index &+ tl0Offset }
    if let index = packet.vp8?.keyIndex { numbers.keyIndex = (index &+ keyOffset) & 0x1f }
    return numbers
  }

  /// The time of the same instant in the previous layer, if it is plausible.
  private func layerTimestamp(
    _ packet: borrowing Packet, _ difference: UInt32?, _ clockRate: UInt32, _ now: Instant
  ) -> UInt32 {
    let latest = nextTimestamp(clockRate, now)
    guard let difference else { return latest }
    let timestamp = packet.header.timestamp &+ timestampOffset &+ difference
    let ahead = Int32(bitPattern: timestamp &- last.timestamp)
    // The old layer's picture may be the newer one; the timestamps of one track never decrease.
    if ahead <= 0, ahead > -Int32(clockRate / 20) { return last.timestamp &+ 1 }
    let limit = Int32(bitPattern: latest &- last.timestamp) &+ Int32(clockRate / 2)
    return ahead > 0 && ahead <= limit ? timestamp : latest
  }

  /// Later than the last packet by the time that has passed, and at least a little.
  private func nextTimestamp(_ clockRate: UInt32, _ now: Instant) -> UInt32 {
    guard let lastSent else { return last.timestamp }
    return last.timestamp &+ max(1, now.ticks(clockRate) &- lastSent.ticks(clockRate))
  }
}
