/// Divides the time of a worker that cannot keep up among its calls.
///
/// Each call gets what it needs up to a level that is the same for all. So the most expensive calls are reduced first, and a call below the
/// level loses nothing by the flood of another.
struct FairShares {
  struct Need {
    /// The part that is not shed. It counts before the video.
    var fixed: Double
    var video: Double
  }

  /// The most that a call may cost.
  private let level: Double

  /// - Parameter share: the share of the video of all calls together for which there is time, 0...1.
  init(of calls: [Need], share: Double) {
    // Most calls of a large server may be without video.
    let needs = calls.filter { $0.video > 0 }
    guard share > 0, share < 1, !needs.isEmpty else {
      level = share > 0 ? .infinity : -1
      return
    }
    let budget = share * needs.reduce(0) { $0 + $1.video }
    var low = 0.0
    var high = needs.reduce(0) { max($0, $1.fixed + $1.video) }
    // The granted video rises with the level: 40 bisections find it to one part in 10^12.
    for _ in 0..<40 {
      let middle = (low + high) / 2
      let granted = needs.reduce(0) { $0 + min(max(0, middle - $1.fixed), $1.video) }
      if granted > budget { high = middle } else { low = middle }
    }
    level = low
  }

  /// The share of its video that a call gets, 0...1.
  subscript(need: Need) -> Double {
    guard need.video > 0 else { return level > need.fixed ? 1 : 0 }
    return min(max(0, level - need.fixed) / need.video, 1)
  }
}
