/// Divides a receiver's rate among its streams: screens, then the enlarged picture, then the rest, with hysteresis, so that no picture flaps.
///
/// It runs a few times a second for each receiver, outside the packet path.
package struct LayerAllocator: Sendable {
  private static let paused = -1
  /// The first-ranked camera reaches this height before others get their second step.
  private static let preferredHeight = 360
  /// In this time cameras resume for at most a quarter of the rate, and at least one does: the key frames of many at once are a queue that looks
  /// like a path that is too narrow.
  private static let returnTime = 300 * Microseconds.millisecond
  private static let returnShare = 4

  /// The step of each stream; −1 if paused by the rate.
  private var steps: [Int] = []
  /// The layers of `steps`, because the rates of a ladder are measured and steps come and go.
  private var layers: [(spatial: UInt8, temporal: UInt8)?] = []
  private var overSince: Microseconds?
  /// When a camera last resumed.
  private var returnedAt: Microseconds = .min

  package init() {}

  /// It has not divided anything yet.
  package var isNew: Bool { steps.isEmpty }

  /// The step of each stream, by its index in `streams`; nil if paused.
  package func step(_ stream: Int) -> Int? {
    stream < steps.count && steps[stream] >= 0 ? steps[stream] : nil
  }

  /// Divides `target`.
  /// - Parameters:
  ///   - streams: in a stable order; a stream keeps its index.
  ///   - target: bit/s for all streams, without audio.
  ///   - proven: the part of the target that packets or a probe have recently shown, in bit/s. Steps up stay within it.
  ///   - isCongested: a queue stands on the path.
  /// - Returns: whether a step has changed.
  package mutating func allocate(
    _ streams: [StreamWish], target: Int, proven: Int, isCongested: Bool, now: Microseconds
  ) -> Bool {
    let isFirst = isNew
    recall(streams)
    defer {
      layers = streams.indices.map { i in step(i).map { (streams[i].steps[$0].spatial, streams[i].steps[$0].temporal) }
      }
    }
    let spent = rate(of: streams)
    if spent > target {
      let since = overSince ?? now
      overSince = since
      let isOver = spent / 103 * 100 > target && now - since >= 200 * .millisecond
      return isOver || isCongested ? lower(streams, to: target) : false
    }
    overSince = nil
    guard !isCongested else { return false }
    return raise(streams, to: min(target, proven / 105 * 100), isFirst: isFirst, now: now)
  }

  /// The rate of all streams as allocated, in bit/s.
  package func rate(of streams: [StreamWish]) -> Int {
    streams.indices.reduce(0) { sum, i in
      sum + (step(i).flatMap { $0 < streams[i].steps.count ? streams[i].steps[$0].rate : nil } ?? 0)
    }
  }

  /// The lowest rate with one more wanted step, in bit/s; nil if all wishes are met. The first of the streams that show nothing replaces the streams
  /// that it precedes.
  package func nextStep(of streams: [StreamWish]) -> Int? {
    let rate = rate(of: streams)
    guard var next = Self.cheapest(streams, above: steps).map({ rate + $0 }) else { return nil }
    let waiting = streams.indices.filter { step($0) == nil && streams[$0].highest >= 0 }
    if let first = waiting.min(by: { streams[$0].precedes(streams[$1]) }) {
      let replaced = streams.indices.filter { streams[first].precedes(streams[$0]) }
      let room = replaced.reduce(0) { sum, i in sum + (step(i).map { streams[i].steps[$0].rate } ?? 0) }
      next = min(next, rate - room + streams[first].steps[0].rate)
    }
    return next
  }

  /// Finds the layer of each stream in its current ladder: that one, or the best one below.
  private mutating func recall(_ streams: [StreamWish]) {
    steps = streams.indices.map { i in
      guard i < layers.count, let layer = layers[i] else { return Self.paused }
      let step = streams[i].steps.lastIndex { ($0.spatial, $0.temporal) <= layer }
      return min(step ?? (streams[i].steps.isEmpty ? Self.paused : 0), streams[i].highest)
    }
  }

  // MARK: Hysteresis

  private mutating func lower(_ streams: [StreamWish], to target: Int) -> Bool {
    overSince = nil
    let lower = Self.divide(streams, budget: target) { [steps] i in steps[i] }
    defer { steps = lower }
    return lower != steps
  }

  private mutating func raise(_ streams: [StreamWish], to budget: Int, isFirst: Bool, now: Microseconds) -> Bool {
    var higher = higher(streams, budget: budget) { streams[$0].highest }
    let back = isFirst ? [] : streams.indices.filter { isBack($0, in: higher, of: streams) }
    if !back.isEmpty {
      let due = due(back, in: higher, of: streams, budget: budget, now: now)
      if due.count < back.count {
        higher = self.higher(streams, budget: budget) { [steps] i in
          steps[i] >= 0 || streams[i].isScreen || due.contains(i) ? streams[i].highest : Self.paused
        }
      }
      if back.contains(where: { higher[$0] >= 0 }) { returnedAt = now }
    }
    defer { steps = higher }
    return higher != steps
  }

  /// The division of `budget` that takes nothing from one stream to give it to another, unless the other would show
  /// nothing.
  private func higher(_ streams: [StreamWish], budget: Int, highest: (Int) -> Int) -> [Int] {
    let best = Self.divide(streams, budget: budget, highest: highest)
    let shown = streams.indices.filter { steps[$0] < 0 && best[$0] >= 0 }
    let takes = streams.indices.contains { i in
      guard best[i] < steps[i] else { return false }
      return best[i] >= 0 ? shown.isEmpty : !shown.contains { streams[$0].precedes(streams[i]) }
    }
    // The best division waits until all fit or the target falls. Meanwhile the rest goes to streams for which it suffices: a proven step
    // that no stream takes would be the last, because no probe goes beyond it.
    return takes ? Self.divide(streams, budget: budget, from: steps, highest: highest) : best
  }

  // MARK: Return

  /// A camera resumes after a pause.
  private func isBack(_ i: Int, in higher: [Int], of streams: [StreamWish]) -> Bool {
    steps[i] < 0 && higher[i] >= 0 && !streams[i].isScreen
  }

  /// Those of the cameras `back` that may resume now.
  private func due(_ back: [Int], in higher: [Int], of streams: [StreamWish], budget: Int, now: Microseconds) -> [Int] {
    guard returnedAt == .min || now - returnedAt >= Self.returnTime else { return [] }
    var room = budget / Self.returnShare
    return Self.order(streams).filter { i in
      guard back.contains(i), room > 0 else { return false }
      room -= streams[i].steps[higher[i]].rate
      return true
    }
  }

  // MARK: Passes

  /// The indices in `streams`, those served first first.
  private static func order(_ streams: [StreamWish]) -> [Int] {
    streams.indices.sorted { a, b in
      streams[a].precedes(streams[b]) || (!streams[b].precedes(streams[a]) && a < b)
    }
  }

  /// The cost of the cheapest step beyond the best division of `budget`, in bit/s; nil if it has room for all.
  package static func nextCost(_ streams: [StreamWish], budget: Int) -> Int? {
    cheapest(streams, above: divide(streams, budget: budget) { streams[$0].highest })
  }

  private static func cheapest(_ streams: [StreamWish], above steps: [Int]) -> Int? {
    streams.indices.filter { $0 < steps.count && steps[$0] < streams[$0].highest }.map { i in
      let rates = streams[i].steps
      return rates[steps[i] + 1].rate - (steps[i] >= 0 ? rates[steps[i]].rate : 0)
    }.min()
  }

  /// The best division of `budget`: the base of each stream, screens in full, the first camera up to 360 lines, then one step each,
  /// round-robin.
  /// - Parameters:
  ///   - present: steps that no stream may lose.
  ///   - highest: the highest step of a stream, by its index.
  /// - Returns: the step of each stream; −1 if paused.
  package static func divide(
    _ streams: [StreamWish], budget: Int, from present: [Int]? = nil, highest: (Int) -> Int
  ) -> [Int] {
    let order = order(streams)
    var steps = present ?? [Int](repeating: paused, count: streams.count)
    var rest = streams.indices.reduce(budget) { $0 - (steps[$1] >= 0 ? streams[$1].steps[steps[$1]].rate : 0) }
    func raise(_ i: Int) -> Bool {
      let next = steps[i] + 1
      guard next <= highest(i) else { return false }
      let cost = streams[i].steps[next].rate - (steps[i] >= 0 ? streams[i].steps[steps[i]].rate : 0)
      guard cost <= rest else { return false }
      rest -= cost
      steps[i] = next
      return true
    }
    for i in order where steps[i] < 0 { _ = raise(i) }
    for i in order where streams[i].isScreen && steps[i] >= 0 { while raise(i) {} }
    if let first = order.first(where: { !streams[$0].isScreen }), steps[first] >= 0 {
      while streams[first].steps[steps[first]].height < preferredHeight, raise(first) {}
    }
    while true {
      var raised = false
      for i in order where steps[i] >= 0 && raise(i) { raised = true }
      if !raised { return steps }
    }
  }
}
