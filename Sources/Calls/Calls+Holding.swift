import Contract
import MediaModel

/// Call waiting: of the calls that a device is in, all but one are held.
extension Calls {
  mutating func hold(_ id: CallID, _ request: Hold, _ device: Device) throws(RequestError) -> Outcome {
    var outcome = try with(id, device.user) { call, _, out throws(RequestError) in
      try call.hold(request.held, device, out: &out)
      return NoBody()
    }
    if !request.held { outcome.speaker = device }
    return outcome
  }

  /// The device speaks in this call now: its others are held.
  mutating func holdOthers(of device: Device, but id: CallID) {
    for other in memberships[device.user] ?? [] where other != id && isUnheld(device, in: other) {
      var out = Outputs()
      try? calls[other]?.hold(true, device, out: &out)
      carryOut(out, of: other)
    }
  }

  private func isUnheld(_ device: Device, in id: CallID) -> Bool {
    guard let member = calls[id]?.member(device.user), member.isJoined else { return false }
    return member.participant(on: device)?.isHeld == false
  }
}
