import RTP

/// Makes one series of frame numbers and template ids from the sources that are in a slot one after the other.
///
/// Within a source they are the source's own plus a constant. A browser drops frames whose numbers fall, and reads a frame of an old source
/// by a new structure where their template ids overlap.
struct FrameNumbers {
  private(set) var shift: UInt16 = 0
  private(set) var templateShift: UInt8 = 0
  /// The newest number that was sent, and the template id that follows the last structure that was sent.
  private var newest: UInt16 = 0
  private var nextTemplateID: UInt8 = 0

  /// The next frame to be sent is `frame`, the first of a source.
  /// - Parameter isSameTrack: it is another layer of the previous track, whose layers share one series.
  mutating func begin(_ frame: EncodedFrame, _ structure: borrowing DependencyStructure, isSameTrack: Bool) {
    let number = UInt16(truncatingIfNeeded: frame.number)
    if !isSameTrack || !SequenceNumber.isNewer(number &+ shift, than: newest) { shift = newest &+ 1 &- number }
    templateShift = nextTemplateID &- structure.firstTemplateID
  }

  /// A packet of `frame` was sent.
  mutating func sent(_ frame: EncodedFrame, _ structure: borrowing DependencyStructure) {
    let number = UInt16(truncatingIfNeeded: frame.number) &+ shift
    if SequenceNumber.isNewer(number, than: newest) { newest = number }
    guard frame.isKeyFrame else { return }
    nextTemplateID = (structure.firstTemplateID &+ templateShift &+ UInt8(structure.templateCount)) & 63
  }
}
