import CallMessages
import Contract
import MediaModel

/// The requests that need nothing but the call.
extension Call {
  /// A request of a participant.
  mutating func answer(
    _ request: ParticipantRequest, from device: Device, records: Policy.Record?, hashing: Hashing, now: Timestamp,
    out: inout Outputs
  ) throws(RequestError) -> Transition.Answer {
    switch request {
    case .media(let body):
      // Checked before the SDP is read, which is far more expensive.
      _ = try participant(of: device)
      return .read(body, of: id)
    case .track(let track, let body): try mute(track, body.muted, from: device, out: &out)
    case .receive(let body): try receive(body, device: device, out: &out)
    case .message(let body): try message(body, from: device, now: now, out: &out)
    case .stats(let numbers): try measure(numbers, device, now: now, out: &out)
    case .keys(let body): return .reply(.keys(try handOut(body, from: device, now: now, out: &out)))
    case .requestKey(let body): try requestKey(body.epoch, from: device, now: now, out: &out)
    case .listKeys(let body): return .reply(.keyList(try keyList(body, for: device)))
    case .waitForKey(let body): try waitForKey(body, from: device, now: now, out: &out)
    case .confirmKey(let body): try confirmKey(body, from: device, now: now, out: &out)
    case .listConfirmations(let body): return .reply(.confirmations(try confirmations(body, for: device)))
    case .startRecording(let body):
      try startRecording(body, from: device, records: records, hashing: hashing, now: now, out: &out)
    case .consentToRecording(let body):
      return .reply(.consented(try consent(body, from: device, now: now, out: &out)))
    case .exportTrackKeys(let body): try export(body, from: device, out: &out)
    case .stopRecording(let body): try stopRecording(body, by: device, now: now, out: &out)
    }
    return .done
  }

  private mutating func measure(
    _ numbers: QualityNumbers, _ device: Device, now: Timestamp, out: inout Outputs
  ) throws(RequestError) {
    _ = try participant(of: device)
    try numbers.check()
    _ = withParticipant(of: device, isStored: false) { $0.quality.told(numbers, now: now) }
    out.add(.measured(numbers))
  }
}
