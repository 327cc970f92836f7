import Contract
import MediaModel

extension QualityNumbers {
  /// Numbers that no client can have measured would spoil everybody's sum.
  func check() throws(RequestError) {
    let bounds: [(String, Double?, Double)] = [
      ("rtt", rtt, 60_000), ("loss", loss, 1), ("jitter", jitter, 60_000), ("freezes", freezes, 1_000_000),
      ("firstFrameMs", firstFrameMs, 600_000),
    ]
    for (name, value, most) in bounds {
      // False for NaN, too.
      guard value.map({ $0 >= 0 && $0 <= most }) ?? true else {
        throw RequestError(.requestInvalid, "\(name) is 0 to \(Int(most))", field: name)
      }
    }
  }
}
