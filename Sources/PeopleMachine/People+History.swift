import CallMessages
import Contract
import MediaModel

/// History requests are checked here and answered from the disk (protocol section 8).
extension People {
  mutating func answer(_ request: HistoryRequest, _ asker: Asker) throws(RequestError) {
    let user = asker.identity.device.user
    switch request {
    case .list(let body):
      guard (1...200).contains(body.limit ?? 50) else {
        throw RequestError(.requestInvalid, "limit is 1 to 200", field: "limit")
      }
      // The calls have to say which may be rejoined.
      send(.history(asker.session, id: asker.id, asker.identity.device, calls: calls(of: user), body))
    case .delete(let body): out.effects.append(.history(asker.session, id: asker.id, try query(body, of: user)))
    case .totals(let body):
      guard body.with != user else {
        throw RequestError(.requestInvalid, "totals are with another user", field: "with")
      }
      out.effects.append(.history(asker.session, id: asker.id, .totals(user, with: body.with)))
    }
  }

  private func query(_ body: DeleteHistory, of user: UserID) throws(RequestError) -> HistoryQuery {
    if body.all == true, body.calls == nil { return .delete(user, calls: nil) }
    guard body.all == nil || body.all == false, let calls = body.calls else {
      throw RequestError(.requestInvalid, "either calls or \"all\":true is deleted", field: "calls")
    }
    guard calls.count <= 1_000 else {
      throw RequestError(.requestTooLarge, "at most 1,000 calls at once", field: "calls")
    }
    return .delete(user, calls: calls)
  }
}
