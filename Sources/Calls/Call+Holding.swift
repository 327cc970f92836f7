import Contract
import MediaModel

/// `hold`: nothing is forwarded to or from a participant, which stays one for keys and events (protocol section 4).
extension Call {
  mutating func hold(_ isHeld: Bool, _ device: Device, out: inout Outputs) throws(RequestError) {
    let participant = try participant(of: device)
    guard participant.isHeld != isHeld else { return }
    _ = withParticipant(of: device) { $0.isHeld = isHeld }
    // One that had no offer yet is told to the media plane with its first.
    if participant.isNegotiated { out.add(.media(.hold(participant.peer, isHeld))) }
    announce(device.user, .held, out: &out)
  }
}
