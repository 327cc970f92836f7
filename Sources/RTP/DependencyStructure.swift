/// The templates to which the frames of a coded video sequence refer (RTP payload format for AV1, appendix A.8:
/// `template_dependency_structure`).
///
/// Invariant: `templates` up to `templateCount` are read, and the masks of each have bits only for `targetCount` targets.
package struct DependencyStructure: Sendable {
  package static let maximumTemplates = 64

  /// The id of the first template; the others follow it, modulo 64.
  package private(set) var firstTemplateID: UInt8 = 0
  /// 0 before the first structure.
  package private(set) var templateCount = 0
  package private(set) var targetCount = 0
  package private(set) var chainCount = 0
  package private(set) var spatialLayerCount = 0
  private var templates = InlineArray<64, FrameDependencies>(repeating: FrameDependencies())
  private var spatialLayers = InlineArray<32, UInt8>(repeating: 0)
  private var temporalLayers = InlineArray<32, UInt8>(repeating: 0)
  private var nested = InlineArray<32, UInt32>(repeating: 0)
  /// In pixels; 0 if the structure gives none.
  private var heights = InlineArray<4, Int32>(repeating: 0)

  /// Without templates: for a stream that has sent no structure yet.
  package init() {}

  /// The template of a frame; nil if the structure has none with this id.
  package func template(_ id: UInt8) -> FrameDependencies? {
    let index = Int((id &- firstTemplateID) & 63)
    return index < templateCount ? templates[index] : nil
  }

  /// The highest spatial and temporal layers that decode target `target` contains.
  package func spatialLayer(of target: Int) -> Int { Int(spatialLayers[target]) }
  package func temporalLayer(of target: Int) -> Int { Int(temporalLayers[target]) }

  /// Whether every template in `target` is also in `other`. A receiver of `other` then has everything that `target`
  /// needs.
  package func isNested(_ target: Int, in other: Int) -> Bool { nested[other] >> UInt32(target) & 1 != 0 }

  /// The height of the pictures of a spatial layer, in pixels; nil if the structure does not say.
  package func height(of spatialLayer: Int) -> Int? { heights[spatialLayer] == 0 ? nil : Int(heights[spatialLayer]) }

  /// Reads a structure, in the order of its bits. nil if it is incomplete or exceeds a limit.
  init?(_ reader: inout BitReader, _ bytes: RawSpan) {
    firstTemplateID = UInt8(reader.bits(6, bytes))
    targetCount = Int(reader.bits(5, bytes)) + 1
    guard readLayers(&reader, bytes) else { return nil }
    for index in 0..<templateCount { templates[index].readIndications(&reader, targets: targetCount, bytes) }
    guard readReferences(&reader, bytes) else { return nil }
    skipChains(&reader, bytes)
    if reader.flag(bytes) {
      for layer in 0..<spatialLayerCount {
        _ = reader.bits(16, bytes)
        heights[layer] = Int32(reader.bits(16, bytes)) + 1
      }
    }
    guard !reader.isBroken else { return nil }
    describeTargets()
  }

  private mutating func readLayers(_ reader: inout BitReader, _ bytes: RawSpan) -> Bool {
    var (spatial, temporal): (UInt8, UInt8) = (0, 0)
    while !reader.isBroken, templateCount < Self.maximumTemplates {
      templates[templateCount].spatialLayer = spatial
      templates[templateCount].temporalLayer = temporal
      templateCount += 1
      switch reader.bits(2, bytes) {
      case 0: break
      case 1: temporal += 1
      case 2: (spatial, temporal) = (spatial + 1, 0)
      default:
        spatialLayerCount = Int(spatial) + 1
        return true
      }
      guard spatial < 4, temporal < 8 else { return false }
    }
    return false
  }

  private mutating func readReferences(_ reader: inout BitReader, _ bytes: RawSpan) -> Bool {
    for index in 0..<templateCount {
      while reader.flag(bytes) {
        guard templates[index].appendReference(UInt16(reader.bits(4, bytes)) + 1) else { return false }
      }
    }
    return true
  }

  /// References contain everything that chains do, except about lost frames; nothing here uses chains.
  private mutating func skipChains(_ reader: inout BitReader, _ bytes: RawSpan) {
    chainCount = Int(reader.number(below: UInt32(targetCount) + 1, bytes))  // in range: 32 targets
    guard chainCount > 0 else { return }
    for _ in 0..<targetCount { _ = reader.number(below: UInt32(chainCount), bytes) }
    for _ in 0..<templateCount * chainCount { _ = reader.bits(4, bytes) }  // in range: 64 times 32
  }

  private mutating func describeTargets() {
    nested = .init(repeating: UInt32.max)
    for index in 0..<templateCount {
      let template = templates[index]
      for target in 0..<targetCount {
        if template.present >> UInt32(target) & 1 == 0 {
          nested[target] &= ~template.present
        } else {
          spatialLayers[target] = max(spatialLayers[target], template.spatialLayer)
          temporalLayers[target] = max(temporalLayers[target], template.temporalLayer)
        }
      }
    }
  }
}
