import Contract
import MediaModel

/// History requests are checked here and answered from the disk (protocol section 8).
extension People {
  /// nil for other requests. `history/list` is checked, but the calls have to say which may be rejoined.
  func historyQuery(_ request: Request, _ user: UserID) throws(RequestError) -> HistoryQuery? {
    switch request {
    case .listHistory(let body):
      let limit = body.limit ?? 50
      guard (1...200).contains(limit) else {
        throw RequestError(.requestInvalid, "limit is 1 to 200", field: "limit")
      }
      return nil
    case .deleteHistory(let body):
      if body.all == true, body.calls == nil { return .delete(user, calls: nil) }
      guard body.all == nil || body.all == false, let calls = body.calls else {
        throw RequestError(.requestInvalid, "either calls or \"all\":true is deleted", field: "calls")
      }
      guard calls.count <= 1_000 else {
        throw RequestError(.requestTooLarge, "at most 1,000 calls at once", field: "calls")
      }
      return .delete(user, calls: calls)
    case .historyTotals(let body):
      guard body.with != user else {
        throw RequestError(.requestInvalid, "totals are with another user", field: "with")
      }
      return .totals(user, with: body.with)
    default: return nil
    }
  }
}
