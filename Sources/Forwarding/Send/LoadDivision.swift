import CongestionControl
import MediaModel

/// How a receiver's share of the video is divided among its slots while the worker cannot keep up.
struct LoadDivision {
  /// Between two looks at the slots, which may have got other tracks.
  static let interval = Duration.milliseconds(500)

  var nextPass: Instant
  /// 0..<1, another for each receiver. A share that lies between two steps becomes the higher step for so many receivers that their mean is the share.
  private let phase: Double
  /// The division below is kept while this and the share last, so that no picture comes and goes with its rate.
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
  ///   - share: of the rate of all that `streams` wish, 0...1.
  /// - Returns: what each stream gets.
  mutating func divide(_ streams: [StreamWish], of tracks: [TrackID?], share: Double) -> [Allotment] {
    let key = zip(tracks, streams).map { Key(track: $0, highest: $1.highest) }
    guard key != self.key || share != self.share else { return allotments }
    (self.key, self.share) = (key, share)
    let wished = streams.reduce(0) { $0 + ($1.highest >= 0 ? $1.steps[$1.highest].rate : 0) }
    let budget = Int(Double(wished) * share)
    let next = LayerAllocator.nextCost(streams, budget: budget) ?? 0
    let steps = LayerAllocator.divide(streams, budget: budget + Int(Double(next) * (1 - phase))) { streams[$0].highest }
    allotments = streams.indices.map { i in
      // A track whose rate is not measured yet has no step.
      streams[i].highest < 0 ? .everything : Allotment(steps[i] < 0 ? nil : steps[i], of: streams[i])
    }
    return allotments
  }
}
