package import CallMessages
import Contract
package import MediaModel

/// Answers to the operator, the metrics and guests' tokens.
extension CallControl {
  package func answer(_ inquiry: CallsInquiry, now: Timestamp) -> InquiryAnswer {
    switch inquiry {
    case .counts: .counts(calls: calls.count, participants: calls.values.reduce(0) { $0 + $1.joinedCount })
    case .summaries: .summaries(calls.values.map(\.summary))
    case .inspection(let id): .inspection(inspection(of: id))
    case .admitsGuest(let link, let id): .truth(admitsGuest(by: link, to: id, now: now))
    case .runs(let id): .truth(calls[id] != nil)
    }
  }

  /// No call runs.
  package var isIdle: Bool { calls.isEmpty }

  /// The recordings of running calls.
  package var recordings: [RecordingID: CallID] {
    let recorded = calls.values.compactMap { call in call.recording.map { ($0.id, call.id) } }
    return Dictionary(recorded) { first, _ in first }
  }

  /// Running calls, in no particular order.
  package var tallies: [CallTally] {
    calls.values.map { call in
      CallTally(
        call: call.id, members: call.members.map(\.state), participants: Int(call.numbers.last), failures: call.failures
      )
    }
  }

  func inspection(of id: CallID) -> CallInspection? {
    if let call = calls[id] { return call.inspection }
    guard let event = ended.event(of: id), case .ended(let ended) = event.body else { return nil }
    return CallInspection(summary: nil, members: [], ended: ended, endedAt: event.at)
  }
}

extension Call {
  var summary: CallSummary {
    CallSummary(
      call: id, state: state(of: phase), media: media, startedAt: startedAt, epoch: epochs.current,
      members: members.count, ringing: ringingCount, joined: joinedCount,
      connected: members.count { $0.isJoined && $0.participant?.isConnected == true })
  }

  fileprivate var inspection: CallInspection {
    let members = members.map { member in
      CallInspection.Member(
        user: member.user, state: member.state.state, link: member.cameByLink ? true : nil,
        participants: member.participants.map(inspect))
    }
    return CallInspection(summary: summary, members: members, ended: nil, endedAt: nil)
  }

  private func inspect(_ participant: Participant) -> CallInspection.Participant {
    let (media, since): (CallInspection.MediaState, Timestamp?) =
      switch participant.media {
      case .never: (.never, nil)
      case .up(let since): (.up, since)
      case .gone(let since): (.gone, since)
      }
    return CallInspection.Participant(
      participant: participant.number, device: participant.device.device, joinedAt: participant.joinedAt,
      signaling: participant.isSignaling, media: media, mediaSince: since, quality: participant.quality,
      key: epochs.keyState(of: participant.device),
      held: participant.isHeld, tracks: participant.tracks.live.map(\.state))
  }
}

extension Epochs {
  func keyState(of device: Device) -> KeyState {
    guard let joined = keyedDevices[device] else { return .none }
    if waiting.contains(device) { return .untrusted }
    if unopened[device] != nil { return .unopened }
    return lacking.contains(device) || missing.contains(device) || !newest.holds(joined) ? .missing : .present
  }
}
