import MediaModel

/// Learns the differences between the RTP timestamps of a track's layers. Each layer's timestamps start at random, and all count the
/// same clock.
///
/// The layers of one picture have consecutive frame numbers. The difference of their timestamps is exact from the first picture on,
/// while sender reports arrive half a second later. It is used once it was seen twice.
struct LayerClock {
  /// Layers of one picture arrive in one burst; the next picture arrives at least 16 ms later.
  private static let burst = Duration.milliseconds(10)

  private struct Step {
    var difference: UInt32
    var isConfirmed = false
  }

  private var last: (layer: Int, number: UInt64, timestamp: UInt32, at: Instant)?
  /// From layer to layer, row by row.
  private var steps = InlineArray<9, Step?>(repeating: nil)

  static let maximumLayers = 3

  /// The first packet of a frame arrived.
  mutating func began(_ number: UInt64, timestamp: UInt32, of layer: Int, at now: Instant) {
    defer { last = (layer, number, timestamp, now) }
    guard let last, last.layer != layer, number == last.number &+ 1, last.at.duration(to: now) < Self.burst else {
      return
    }
    let difference = timestamp &- last.timestamp
    let place = last.layer * Self.maximumLayers + layer
    steps[place] = Step(difference: difference, isConfirmed: steps[place]?.difference == difference)
  }

  /// The timestamp of a picture in layer `b` minus its timestamp in layer `a`; nil until that is known.
  func difference(from a: Int, to b: Int) -> UInt32? {
    if let step = step(from: a, to: b) { return step }
    for middle in 0..<Self.maximumLayers {
      if let first = step(from: a, to: middle), let second = step(from: middle, to: b) { return first &+ second }
    }
    return nil
  }

  private func step(from a: Int, to b: Int) -> UInt32? {
    if let step = steps[a * Self.maximumLayers + b], step.isConfirmed { return step.difference }
    if let step = steps[b * Self.maximumLayers + a], step.isConfirmed { return 0 &- step.difference }
    return nil
  }
}
