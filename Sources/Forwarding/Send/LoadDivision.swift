import CongestionControl
import MediaModel

/// How a receiver's share of the video is divided among its slots while the worker cannot keep up.
struct LoadDivision {
  /// Interval between two examinations of the slots, which may have other tracks by then.
  static let interval = Duration.milliseconds(500)

  var nextPass: Instant
  /// 0..<1, different for each receiver. A share between two steps becomes the higher step for as many receivers as make the mean equal to the share.
  private let phase: Double
  /// The division below is kept as long as this and the share stay the same, so that pictures do not come and go with
  /// their rates.
  private var key: [Key] = []
  private var share = 1.0
  private var allotments: [Allotment] = []

  private struct Key: Equatable {
    var track: TrackID?
    var highest: Int
  }

  init(phase: Double, now: Instant) {
    nextPass = now
    self.phase = phase
  }

  /// - Parameters:
  ///   - tracks: those in the slots.
  ///   - share: of the total wished rate of `streams`, 0...1.
  /// - Returns: what each stream gets.
  mutating func divide(_ streams: [StreamWish], of tracks: [TrackID?], share: Double) -> [Allotment] {
    let key = zip(tracks, streams).map { Key(track: $0, highest: $1.highest) }
    guard key != self.key || share != self.share else { return allotments }
    (self.key, self.share) = (key, share)
    let wished = streams.map { $0.highest >= 0 ? $0.steps[$0.highest].rate : 0 }
    let whole = Int(Double(wished.reduce(0, +)) * share)
    // The most expensive senders are reduced first, so a flood takes nothing from the pictures beside it.
    let level = Self.level(of: wished, budget: whole)
    let isDear = wished.map { $0 > level }
    let budget = whole - zip(wished, isDear).reduce(0) { $0 + ($1.1 ? 0 : $1.0) }
    let dear = streams.indices.filter { isDear[$0] }
    let next = LayerAllocator.nextCost(dear.map { streams[$0] }, budget: budget) ?? 0
    let steps = LayerAllocator.divide(dear.map { streams[$0] }, budget: budget + Int(Double(next) * (1 - phase))) {
      streams[dear[$0]].highest
    }
    allotments = streams.indices.map { i in
      // A track whose rate is not measured yet has no step.
      guard streams[i].highest >= 0 else { return .everything }
      let step = dear.firstIndex(of: i).map { steps[$0] } ?? streams[i].highest
      return Allotment(step < 0 ? nil : step, of: streams[i])
    }
    return allotments
  }

  /// The rate, in bit/s, that each stream may have at most so that all together have `budget`. Streams that wish no more than that get what
  /// they wish.
  static func level(of wished: [Int], budget: Int) -> Int {
    var (left, waiting) = (budget, wished.count)
    for rate in wished.sorted() {
      guard rate <= left / waiting else { return left / waiting }
      left -= rate
      waiting -= 1
    }
    return .max
  }
}
