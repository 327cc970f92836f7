import RTP

/// Decides which frames of one stream a receiver gets: the frames of its decode target whose references it got.
///
/// A pure value. It remembers the last 256 frame numbers; each frame is decided once, regardless of how many packets it has and how late they
/// arrive.
struct FrameSelector {
  /// In frame numbers. Layers of one track share a series.
  static let window: UInt64 = 256

  /// The decode target that the receiver gets.
  private(set) var target: Int
  /// A frame of the target was refused because it refers to one that was not sent. Only a key frame helps.
  private(set) var isBroken = false
  private let first: UInt64
  private var newest: UInt64
  /// The timestamp of the newest frame: layers of one picture have the same.
  private var picture: UInt32
  private var decided = FrameSet()
  private var sent = FrameSet()
  /// Frames that had not arrived when a frame that refers to them was sent.
  private var owed = FrameSet()

  /// Begins with a key frame that has not been decided yet.
  init(at frame: EncodedFrame, target: Int) {
    self.target = target
    first = frame.number
    newest = frame.number &- 1
    picture = frame.timestamp
  }

  /// Whether the packets of `frame` are to be sent.
  /// - Parameter wanted: the decode target that the receiver should get. The selector switches to it, or closer to it, at the first picture that
  ///   allows that.
  mutating func admits(_ frame: EncodedFrame, wanted: Int, _ structure: borrowing DependencyStructure) -> Bool {
    if frame.number <= newest {
      guard frame.number >= first, newest &- frame.number < Self.window else { return false }
      if decided.contains(frame.number) { return sent.contains(frame.number) }
    } else {
      // Within a picture the receiver already has the marker of the old target.
      if wanted != target, frame.timestamp != picture || frame.isKeyFrame { change(to: wanted, at: frame, structure) }
      decided.clear(after: newest, through: frame.number)
      sent.clear(after: newest, through: frame.number)
      owed.clear(after: newest, through: frame.number)
      newest = frame.number
      picture = frame.timestamp
    }
    decided.insert(frame.number)
    guard frame.dependencies.present >> UInt32(target) & 1 != 0 || owed.contains(frame.number) else { return false }
    guard !lacksReference(frame) else {
      isBroken = true
      return false
    }
    if frame.isKeyFrame { isBroken = false }
    sent.insert(frame.number)
    owe(frame)
    return true
  }

  /// Whether a receiver that got `target` until now can decode `other` from this frame on: the frame says so, and everything that it refers to
  /// was sent.
  func canSwitch(to other: Int, at frame: EncodedFrame) -> Bool {
    guard frame.dependencies.switching >> UInt32(other) & 1 != 0 else { return false }
    for i in 0..<frame.dependencies.referenceCount where !wasSent(frame.reference(i)) { return false }
    return true
  }

  /// Whether the last packet of a sent frame gets the marker. Browsers do not decode a picture without it (RFC 7741 section 4.1).
  /// - Parameter endsPicture: the sender has set the marker, or it turned out that no higher layer of the picture follows.
  func marks(_ frame: FrameDependencies, endsPicture: Bool, _ structure: borrowing DependencyStructure) -> Bool {
    if endsPicture { return true }
    guard target < structure.targetCount else { return false }
    return Int(frame.spatialLayer) >= structure.spatialLayer(of: target)
  }

  private mutating func change(to wanted: Int, at frame: EncodedFrame, _ structure: borrowing DependencyStructure) {
    let count = structure.targetCount
    guard wanted < count else { return }
    // Lower temporal layers, and with full SVC lower spatial layers, need nothing that the receiver does not have.
    var isFree = frame.isKeyFrame
    if !isFree, target < count { isFree = structure.isNested(wanted, in: target) }
    if isFree || canSwitch(to: wanted, at: frame) {
      target = wanted
      return
    }
    guard target < count else { return }
    // A layer in between is better than no switch at all.
    var step = wanted
    while step > target + 1 {
      step -= 1
      guard structure.isNested(target, in: step), structure.isNested(step, in: wanted) else { continue }
      guard canSwitch(to: step, at: frame) else { continue }
      target = step
      return
    }
  }

  /// A reference that never arrived may still arrive by retransmission; one that was refused never will.
  private func lacksReference(_ frame: EncodedFrame) -> Bool {
    for i in 0..<frame.dependencies.referenceCount {
      let number = frame.reference(i)
      if number < first { return true }
      if newest &- number < Self.window, decided.contains(number), !sent.contains(number) { return true }
    }
    return false
  }

  /// Its references that have not arrived must be sent when they do, whatever the target is then.
  private mutating func owe(_ frame: EncodedFrame) {
    for i in 0..<frame.dependencies.referenceCount {
      let number = frame.reference(i)
      if number >= first, newest &- number < Self.window, !decided.contains(number) { owed.insert(number) }
    }
  }

  private func wasSent(_ number: UInt64) -> Bool {
    number >= first && number <= newest && newest &- number < Self.window && sent.contains(number)
  }
}

extension EncodedFrame {
  /// The number of a frame that this one refers to.
  fileprivate func reference(_ index: Int) -> UInt64 { number &- UInt64(dependencies.reference(index)) }
}

/// Frame numbers of the last window, one bit each.
private struct FrameSet {
  private var words = InlineArray<4, UInt64>(repeating: 0)

  func contains(_ number: UInt64) -> Bool { words[Int(number >> 6 & 3)] >> (number & 63) & 1 != 0 }

  mutating func insert(_ number: UInt64) { words[Int(number >> 6 & 3)] |= 1 << (number & 63) }

  /// Makes room for numbers that enter the window.
  mutating func clear(after old: UInt64, through new: UInt64) {
    guard new &- old < FrameSelector.window else { return words = .init(repeating: 0) }
    var number = old
    while number != new {
      number &+= 1
      words[Int(number >> 6 & 3)] &= ~(1 << (number & 63))
    }
  }
}
