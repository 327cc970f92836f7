import Contract

extension Request {
  /// Its cost beside its frame, in units of the simplest request (protocol section 10). The work that follows from it is charged when it is known.
  var weight: Int {
    switch self {
    case .start(let body): 2 + body.callees.count / 2 + (body.envelopes?.count ?? 0) / 16
    case .invite(_, let body): 2 + body.callees.count / 2
    case .cancel(_, let body): 2 + (body.callees?.count ?? 0) / 4
    case .listDevices(let body): body.users.count
    case .watchPresence(let body): (body.users?.count ?? 0) / 8
    case .keys(_, let body): body.envelopes.count / 16
    case .media: 8
    case .message(_, let body): (body.to?.count ?? 0) / 8
    case .accept, .join, .rejoin, .transfer, .listCalls, .listHistory, .deleteHistory, .historyTotals: 2
    default: 0
    }
  }
}
