import CongestionControl
import Seeded

/// A publisher's simulcast: three layers of 150, 500 and 1,700 kbit/s with three temporal layers of 40, 60 and 100 %, 30 frames a second,
/// encrypted with SFrame. It follows requests with a delay.
struct VideoSource {
  struct Frame {
    var bytes: Int
    var isKey: Bool
    var isDiscardable: Bool
  }

  static let rates = [150_000, 500_000, 1_700_000]
  static let shares = [0.4, 0.6, 1.0]
  static let heights = [180, 360, 720]
  static let payload = 1_130
  /// IP, UDP, RTP with extensions, SRTP's tag.
  static let overhead = 70
  static let frameInterval: Microseconds = 33_333
  private static let pattern = [0, 2, 1, 2]

  /// The steps for an allocator, in rates on the wire.
  static let steps: [LayerStep] = LayerStep.ladder(
    (0..<3).flatMap { spatial in
      (0..<3).map { temporal in
        let framesPerSecond = [7.5, 15, 30][temporal]
        let bytes = Double(rates[spatial]) * shares[temporal] / 8 / framesPerSecond + 20
        let packets = max(1, (bytes / Double(payload)).rounded(.up))
        return LayerStep(
          spatial: UInt8(spatial), temporal: UInt8(temporal),
          rate: Int(framesPerSecond * 8 * (bytes + packets * Double(overhead))), height: heights[spatial])
      }
    })

  private(set) var spatial: Int?
  private var temporal = 0
  private var ordered: Int?
  private var orderDue: Microseconds = 0
  private var nextFrame: Microseconds
  private var count = 0

  init(random: inout SeededGenerator) {
    nextFrame = Microseconds(random.uniform() * Double(Self.frameInterval))
  }

  /// The selector's request: temporal layers change at once, spatial layers with the key frame. Until it arrives, a
  /// lower request falls back to the base.
  mutating func select(_ step: LayerStep?, random: inout SeededGenerator, now: Microseconds) {
    guard let step else {
      spatial = nil
      ordered = nil
      return
    }
    if Int(step.spatial) == spatial {
      temporal = Int(step.temporal)
      orderTemporal = temporal
      if ordered != spatial { ordered = nil }
      return
    }
    if let spatial, Int(step.spatial) < spatial { temporal = 0 }
    if ordered != Int(step.spatial) {
      ordered = Int(step.spatial)
      // The round trip to the publisher, its encoder's next frame, and its pacer.
      orderDue = now + Microseconds(150 + 150 * random.uniform()) * millisecond
    }
    orderTemporal = Int(step.temporal)
  }

  private var orderTemporal = 0

  /// The SFU asks for a key frame of the layer that it sends.
  mutating func needsKeyFrame(now: Microseconds) {
    guard ordered == nil, let spatial else { return }
    ordered = spatial
    orderTemporal = temporal
    orderDue = now + 200 * millisecond
  }

  /// The frame that is forwarded now, if one is.
  mutating func frame(random: inout SeededGenerator, now: Microseconds) -> Frame? {
    guard now >= nextFrame else { return nil }
    nextFrame += Self.frameInterval
    count += 1
    var isKey = false
    if let ordered, now >= orderDue {
      spatial = ordered
      temporal = orderTemporal
      self.ordered = nil
      isKey = true
      count = 0
    }
    guard let spatial else { return nil }
    let layer = Self.pattern[count % 4]
    guard layer <= temporal else { return nil }
    let average = Double(Self.rates[spatial]) / 8 / 30
    let share = [1.6, 0.8, 0.8][layer]
    let noise = 0.7 + 0.6 * random.uniform()
    return Frame(bytes: Int(average * (isKey ? 4 : share) * noise) + 20, isKey: isKey, isDiscardable: layer == 2)
  }
}
