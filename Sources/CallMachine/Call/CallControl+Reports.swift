import CallMessages
import Contract
import MediaModel
import Octets

/// Clients' reports to the operator: abuse and media quality (protocol section 6).
extension CallControl {
  private static let reportTime = Duration.seconds(24 * 3_600)

  /// `report`: by members, until 24 h after the end.
  func report(_ id: CallID, _ request: ReportAbuse, _ device: Device) throws(RequestError) -> Report {
    try checkMayReport(device.user, of: id)
    guard (1...4_096).contains(request.text.utf8.count) else {
      throw RequestError(
        request.text.isEmpty ? .requestInvalid : .requestTooLarge, "a report has 1 to 4,096 bytes", field: "text")
    }
    let reported = try reported(by: request, in: id)
    return Report(by: device.user, user: reported, participant: request.participant, text: request.text)
  }

  private func checkMayReport(_ user: UserID, of id: CallID) throws(RequestError) {
    if calls[id]?.member(user) != nil { return }
    guard ended.wasMember(user, of: id), let end = ended.end(of: id) else { throw .notFound }
    guard now < end + Self.reportTime else {
      throw RequestError(.callEnded, "the call ended more than 24 hours ago")
    }
  }

  /// The reported user: a participant's user, or a member.
  private func reported(by request: ReportAbuse, in id: CallID) throws(RequestError) -> UserID {
    guard request.participant != nil || request.user != nil else {
      throw RequestError(.requestInvalid, "a report names a participant or a user", field: "participant")
    }
    let owner = request.participant.flatMap { calls[id]?.device(of: $0) ?? ended.device(of: $0, in: id) }?.user
    let user = request.participant == nil ? request.user : owner
    guard let user, request.user == nil || request.user == user,
      calls[id]?.member(user) != nil || ended.wasMember(user, of: id)
    else {
      throw RequestError(
        .userNotFound, "nobody of this name was in the call", field: request.participant == nil ? "user" : "participant"
      )
    }
    return user
  }
}

extension QualityNumbers {
  /// Numbers that no client can have measured would distort the sum for everybody.
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
