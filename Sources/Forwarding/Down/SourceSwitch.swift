import MediaModel
import RTP

/// Makes one stream out of the sources that stand in a slot one after the other: numbers, times and VP8's picture ids run on.
///
/// Within a source a packet has the same numbers however often and late it is sent: its sequence number is the `SequenceMap`'s, all others
/// are its own with a constant added. A source's first sequence number is one more than the newest that went out, its first timestamp as much
/// later as time has passed.
///
/// The stream's numbers are its own. A receiver guesses the upper half of an index from the last packet that it got (RFC 3711 section 3.3.1), so
/// a source whose numbers jump could leave it behind for good. Numbers stay unused only for packets that can have been lost on their way
/// here: a source that jumps further has to begin anew.
struct SourceSwitch {
  /// Numbers that may stay unused between two packets: as many as are asked for again.
  static let longestGap = NackGenerator.maximumGap
  /// Numbers that may stay unused in all, beyond one for each packet that went out since. So half of 65,536 numbers are at least
  /// 16,000 packets, and a receiver that misses so many is away anyway.
  static let unusedNumbers: UInt64 = 256
  /// A late packet goes out if it is not further behind the newest. With `longestGap`, two packets that go out one after the other are at most 1,001 apart.
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

  /// The source's first packet has gone out; false while the slot waits for one.
  private(set) var isRunning = false
  /// How the next packet goes on from the last source.
  private enum Continuation {
    case newSource
    /// The source was heard in this slot before a pause.
    case resumed
    /// Another layer of the same track, with the difference that turns its timestamps into those of the previous layer, if known.
    case layer(UInt32?)
  }

  private var continuation = Continuation.newSource
  private var sequence: SequenceMap
  /// From the source's timestamps to the stream's, in the source's clock rate.
  private(set) var timestampOffset: UInt32 = 0
  private var pictureOffset: UInt16 = 0
  private var tl0Offset: UInt8 = 0
  private var keyOffset: UInt8 = 0
  /// The newest packet that went out, and when.
  private var last: Numbers
  private var lastSent: Instant?
  /// Numbers that may stay unused now.
  private var spare = SourceSwitch.unusedNumbers

  /// The newest sequence number that went out.
  var newest: UInt16 { last.sequenceNumber }

  /// The timestamp of the newest packet that went out.
  var lastTimestamp: UInt32 { last.timestamp }

  /// - Parameter first: the stream's first sequence number.
  init(first: UInt16) {
    last = Numbers(index: 65_536 + UInt64(first) - 1, timestamp: 0)
    sequence = SequenceMap(first: 1, output: last.index &+ 1)
  }

  /// The source pauses; it may go on with `start` at a later packet.
  mutating func pause() {
    if isRunning { continuation = .resumed }
    isRunning = false
  }

  /// Another source will follow.
  mutating func endSource() {
    continuation = .newSource
    isRunning = false
  }

  /// Another layer of the same track follows.
  /// - Parameter difference: is added to its timestamps to get those of the previous layer; nil if it is not known.
  mutating func changeLayer(_ difference: UInt32?) {
    switch continuation {
    case .newSource where !isRunning: break
    // The layer before never began here.
    case .layer(let before) where !isRunning:
      continuation = .layer(before.flatMap { before in difference.map { before &+ $0 } })
    default: continuation = .layer(difference)
    }
    isRunning = false
  }

  /// The next packet is the first of another layer.
  var isBetweenLayers: Bool { if case .layer = continuation { !isRunning } else { false } }

  /// The next packet of the stream is `packet`, the source's first, or its first after a pause.
  /// - Parameter clockRate: of the source, in Hz.
  mutating func start(_ packet: borrowing Packet, clockRate: UInt32, now: Instant) {
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
    isRunning = true
  }

  /// Whether the packet with this index is newer than all others of the running source.
  func isAhead(_ index: UInt64) -> Bool { isRunning && sequence.isAhead(index) }

  /// The numbers of a packet that is to go out. nil for one from before the source's beginning here, for one that is too old, and when the source
  /// has jumped.
  mutating func map(_ packet: borrowing Packet) -> Numbers? {
    guard let index = sequence.map(packet.index), index &- last.index &+ Self.reach <= Self.reach &+ 1 &+ gapLimit
    else {
      return nil
    }
    return numbers(packet, index: index)
  }

  /// Whether `map` refused the packet with this index because it would leave more numbers unused than it may. Then the source has to begin anew.
  func hasJumped(to index: UInt64) -> Bool {
    guard let output = sequence.output(of: index), output > last.index else { return false }
    return output &- last.index > 1 &+ gapLimit
  }

  private var gapLimit: UInt64 { min(Self.longestGap, spare) }

  /// The numbers that a packet has gone out with. nil for one that has none.
  func numbers(of packet: borrowing Packet) -> Numbers? {
    guard let index = sequence.output(of: packet.index) else { return nil }
    return numbers(packet, index: index)
  }

  /// Leaves a packet of the running source out, so that the receiver does not miss it.
  mutating func omit(_ packet: borrowing Packet) { omit(packet.index) }

  /// Leaves out the packet with this index, also when it has a number: the number stays unused then.
  mutating func omit(_ index: UInt64) { if isRunning { sequence.omit(index) } }

  /// The packet with these numbers of `map` went out.
  mutating func sent(_ numbers: Numbers, now: Instant) {
    guard numbers.index > last.index else { return }
    use(numbers.index)
    last = numbers
    lastSent = now
  }

  /// A packet waits. Times and picture ids go on from it, and `released` follows when it goes out under a sequence number.
  mutating func queued(_ packet: borrowing Packet, now: Instant) {
    let numbers = numbers(packet, index: last.index)
    guard Int32(bitPattern: numbers.timestamp &- last.timestamp) >= 0 else { return }
    last = numbers
    lastSent = now
  }

  /// A packet that waited went out under this index.
  mutating func released(_ index: UInt64) {
    guard index > last.index else { return }
    use(index)
    last.index = index
  }

  /// `index` is above the newest, by what `map` allows.
  private mutating func use(_ index: UInt64) {
    let unused = index &- last.index &- 1
    spare = min(Self.unusedNumbers, spare &- unused &+ 1)
  }

  /// The source's packet that went out under `sequenceNumber`; nil when it was another source's, or never sent.
  func sourceIndex(_ sequenceNumber: UInt16) -> UInt64? {
    let behind = SequenceNumber.distance(from: sequenceNumber, to: newest)
    guard isRunning, behind >= 0 else { return nil }
    return sequence.index(of: last.index &- UInt64(behind))
  }

  /// The unwrapped number of the packet that went out under `sequenceNumber`, whichever source's it was.
  func index(of sequenceNumber: UInt16) -> UInt64? {
    let behind = SequenceNumber.distance(from: sequenceNumber, to: newest)
    return behind >= 0 ? last.index &- UInt64(behind) : nil
  }

  /// Whether no packet goes out under `sequenceNumber`, or none any more: the receiver does not get that packet, or the source before left the gap, and
  /// nothing behind this source's key frame refers to it.
  func isUnused(_ sequenceNumber: UInt16) -> Bool {
    let behind = SequenceNumber.distance(from: sequenceNumber, to: newest)
    guard isRunning, behind >= 0 else { return false }
    return sequence.isUnused(last.index &- UInt64(behind))
  }

  private func numbers(_ packet: borrowing Packet, index: UInt64) -> Numbers {
    // A field that the packet lacks keeps its last value, for the next source to go on from.
    var numbers = last
    numbers.index = index
    numbers.timestamp = packet.header.timestamp &+ timestampOffset
    if let id = packet.vp8?.pictureID { numbers.pictureID = (id &+ pictureOffset) & 0x7fff }
    if let index = packet.vp8?.tl0PictureIndex { numbers.tl0PictureIndex = index &+ tl0Offset }
    if let index = packet.vp8?.keyIndex { numbers.keyIndex = (index &+ keyOffset) & 0x1f }
    return numbers
  }

  /// The time of the same instant in the layer before, if that can be true.
  private func layerTimestamp(
    _ packet: borrowing Packet, _ difference: UInt32?, _ clockRate: UInt32, _ now: Instant
  ) -> UInt32 {
    let latest = nextTimestamp(clockRate, now)
    guard let difference else { return latest }
    let timestamp = packet.header.timestamp &+ timestampOffset &+ difference
    let ahead = Int32(bitPattern: timestamp &- last.timestamp)
    // The old layer's picture may be the newer one; the times of one track never fall.
    if ahead <= 0, ahead > -Int32(clockRate / 20) { return last.timestamp &+ 1 }
    let limit = Int32(bitPattern: latest &- last.timestamp) &+ Int32(clockRate / 2)
    return ahead > 0 && ahead <= limit ? timestamp : latest
  }

  /// As much later than the last packet as time has passed, but later.
  private func nextTimestamp(_ clockRate: UInt32, _ now: Instant) -> UInt32 {
    guard let lastSent else { return last.timestamp }
    return last.timestamp &+ max(1, now.ticks(clockRate) &- lastSent.ticks(clockRate))
  }
}
