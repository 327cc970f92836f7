import Octets

/// One packet's dependency descriptor (RTP payload format for AV1, appendix A): the frame that the packet belongs to, and what that frame depends on.
package struct DependencyDescriptor: Sendable {
  /// A descriptor that cannot be used.
  package enum Fault: Error {
    /// It ends too early, or breaks a limit.
    case malformed
    /// Its template is not in the structure, which has not arrived yet or was replaced.
    case unknownTemplate
  }

  /// The packet is the first of its frame, or the last.
  package private(set) var startsFrame: Bool
  package private(set) var endsFrame: Bool
  /// Modulo 65,536; all layers of a track share the numbers.
  package private(set) var frameNumber: UInt16
  /// It brought a new structure.
  package private(set) var hasStructure = false
  /// The decode targets that are produced from this frame on, one bit each; nil if the descriptor does not say.
  package private(set) var activeTargets: UInt32?
  package private(set) var frame: FrameDependencies

  /// Bytes of the part that every descriptor has.
  private static let mandatoryLength = 3

  /// Reads the data of a header extension element.
  ///
  /// - Parameter structure: the stream's. A structure in the descriptor replaces it; it keeps its value if this throws.
  package init(parsing element: RawSpan, by structure: inout DependencyStructure) throws(Fault) {
    guard element.byteCount >= Self.mandatoryLength else { throw .malformed }
    startsFrame = element[0] & 0x80 != 0
    endsFrame = element[0] & 0x40 != 0
    let templateID = element[0] & 0x3f
    frameNumber = element.uint16(at: 1)
    guard element.byteCount > Self.mandatoryLength else {
      guard let template = structure.template(templateID) else { throw .unknownTemplate }
      frame = template
      return
    }
    let flags = element[3]
    var reader = BitReader(at: 29, bits: element.byteCount * 8)
    guard flags & 0x80 != 0 else {
      guard let template = structure.template(templateID) else { throw .unknownTemplate }
      frame = template
      try readFrame(&reader, flags, targets: structure.targetCount, chains: structure.chainCount, element)
      return
    }
    // A.8.3: only the first packet of a frame has one.
    guard startsFrame, let new = DependencyStructure(&reader, element), let template = new.template(templateID) else {
      throw .malformed
    }
    hasStructure = true
    activeTargets = UInt32.max >> UInt32(32 - new.targetCount)
    frame = template
    try readFrame(&reader, flags, targets: new.targetCount, chains: new.chainCount, element)
    structure = new
  }

  /// Nothing that precedes it in its stream is referenced by the frame.
  package var isKeyFrame: Bool { hasStructure && frame.referenceCount == 0 }

  private mutating func readFrame(
    _ reader: inout BitReader, _ flags: UInt8, targets: Int, chains: Int, _ element: RawSpan
  ) throws(Fault) {
    if flags & 0x40 != 0 { activeTargets = reader.bits(targets, element) }
    if flags & 0x20 != 0 { frame.readIndications(&reader, targets: targets, element) }
    if flags & 0x10 != 0 {
      frame.removeReferences()
      while case let size = reader.bits(2, element), size != 0 {
        let difference = UInt16(reader.bits(4 * Int(size), element)) + 1  // in range: 12 bits
        guard frame.appendReference(difference) else { throw .malformed }
      }
    }
    if flags & 0x08 != 0 { for _ in 0..<chains { _ = reader.bits(8, element) } }
    if reader.isBroken { throw .malformed }
  }
}

extension DependencyDescriptor {
  /// Adds to the numbers of a descriptor, in place. References stay unchanged, because they are differences.
  ///
  /// - Parameters:
  ///   - frameNumber: added to the frame's number, modulo 65,536.
  ///   - templates: added to the ids of templates, modulo 64: to the packet's, and to the first one's of a structure.
  ///   - element: the element's data.
  package static func shift(
    frameNumber: UInt16, templates: UInt8, in element: UnsafeMutableRawBufferPointer
  ) {
    guard element.count >= mandatoryLength else { return }
    element[0] = element[0] & 0xc0 | (element[0] &+ templates) & 0x3f
    element.store(UnsafeRawBufferPointer(element).bytes.uint16(at: 1) &+ frameNumber, at: 1)
    guard element.count >= 5, element[3] & 0x80 != 0 else { return }
    // The 6 bits after the five flags.
    let first = (element[3] << 3 | element[4] >> 5) &+ templates
    element[3] = element[3] & 0xf8 | first >> 3 & 0x07
    element[4] = element[4] & 0x1f | first << 5
  }
}
