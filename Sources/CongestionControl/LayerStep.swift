/// A quality in which a stream can be sent.
package struct LayerStep: Equatable, Sendable {
  package var spatial: UInt8
  package var temporal: UInt8
  /// In bit/s on the wire, of this layer with everything that it needs.
  package var rate: Int
  /// The height of the picture in lines; 0 if unknown.
  package var height: Int

  package init(spatial: UInt8, temporal: UInt8, rate: Int, height: Int) {
    self.spatial = spatial
    self.temporal = temporal
    self.rate = rate
    self.height = height
  }

  /// Sorts `steps` by rate and omits those that cost more than a better one.
  package static func ladder(_ steps: [LayerStep]) -> [LayerStep] {
    var ladder: [LayerStep] = []
    for step in steps.sorted(by: { ($0.rate, $0.spatial, $0.temporal) < ($1.rate, $1.spatial, $1.temporal) }) {
      // A lower layer at a higher rate is not an improvement.
      if let last = ladder.last, step.spatial < last.spatial { continue }
      if let last = ladder.last, step.spatial == last.spatial, step.temporal <= last.temporal { continue }
      ladder.append(step)
    }
    return ladder
  }
}

/// One slot of a receiver, as the allocator sees it.
package struct StreamWish: Equatable, Sendable {
  package var isScreen: Bool
  /// The receiver's wish: higher is served first.
  package var priority: Int
  /// The lines that the receiver shows. The stream gets no more than the lowest layer with that many.
  package var height: Int
  /// Lower is served first: minus the time when the sender last spoke, in nanoseconds, so the latest speaker comes
  /// first.
  package var speakerRank: Int
  /// From `LayerStep.ladder`.
  package var steps: [LayerStep]

  package init(isScreen: Bool = false, priority: Int = 0, height: Int, speakerRank: Int = 0, steps: [LayerStep]) {
    self.isScreen = isScreen
    self.priority = priority
    self.height = height
    self.speakerRank = speakerRank
    self.steps = steps
  }

  /// The highest step that the wish allows; −1 if there are no steps. A stream with one layer is sent even above the
  /// wish.
  package var highest: Int {
    guard let enough = steps.map(\.height).filter({ $0 >= height }).min() else { return steps.count - 1 }
    return steps.lastIndex { $0.height <= enough } ?? steps.count - 1
  }

  /// Whether it is served before `other`.
  func precedes(_ other: StreamWish) -> Bool {
    if isScreen != other.isScreen { return isScreen }
    if priority != other.priority { return priority > other.priority }
    if height != other.height { return height > other.height }
    return speakerRank < other.speakerRank
  }
}
