/// A frame's place among the layers of its stream, the decode targets that contain it, and the frames that it refers to.
package struct FrameDependencies: Sendable {
  /// The most references; Chrome uses 5.
  package static let maximumReferences = 8

  package internal(set) var spatialLayer: UInt8 = 0
  package internal(set) var temporalLayer: UInt8 = 0
  /// The decode targets that contain the frame, one bit each; target 0 is the lowest.
  package private(set) var present: UInt32 = 0
  /// The decode targets to which a receiver can switch at this frame, if it has all frames to which this one refers.
  package private(set) var switching: UInt32 = 0
  /// The decode targets in which no other frame refers to this one.
  package private(set) var discardable: UInt32 = 0
  package private(set) var referenceCount = 0
  private var differences = InlineArray<8, UInt16>(repeating: 0)

  package init() {}

  /// How many frame numbers the one at `index` precedes this frame: 1 to 4,096.
  package func reference(_ index: Int) -> UInt16 { differences[index] }

  /// Reads an indication for each of `targets` decode targets (A.8.3, 2 bits: not present, discardable, switch, required).
  mutating func readIndications(_ reader: inout BitReader, targets: Int, _ bytes: RawSpan) {
    present = 0
    switching = 0
    discardable = 0
    for target in 0..<targets {
      let indication = reader.bits(2, bytes)
      if indication != 0 { present |= 1 << UInt32(target) }
      if indication == 1 { discardable |= 1 << UInt32(target) }
      if indication == 2 { switching |= 1 << UInt32(target) }
    }
  }

  mutating func removeReferences() { referenceCount = 0 }

  /// False if there are too many.
  mutating func appendReference(_ difference: UInt16) -> Bool {
    guard referenceCount < Self.maximumReferences else { return false }
    differences[referenceCount] = difference
    referenceCount += 1
    return true
  }
}
