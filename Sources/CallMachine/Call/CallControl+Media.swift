import CallMessages
import Contract
package import MediaModel

/// Offers, and the events of the SFU.
extension CallControl {
  mutating func take(
    _ offer: Result<MediaOffer, RequestError>, _ tracks: [MediaRequest.Track], of id: CallID, _ identity: Identity,
    session: SessionID, id request: String
  ) {
    var negotiate: Negotiate?
    do throws(RequestError) {
      guard !identity.isService else { throw .notForServices }
      guard identity.guestOf ?? id == id else { throw .notForGuests }
      let done = try run(id, by: identity.device.user) { call, now, out throws(RequestError) in
        negotiate = try call.offer(offer, tracks: tracks, from: identity.device, now: now, out: &out)
        return .done
      }
      if let negotiate { out.effects.append(.negotiate(session, id: request, negotiate)) }
      carryOut(done.outputs, of: id)
    } catch {
      out.messages.append(.reply(session, id: request, .failed(error)))
    }
  }

  package mutating func take(_ event: MediaEvent, now time: Timestamp) {
    now = max(now, time)
    switch event {
    case .configured(let peer, _, let slots):
      withPeer(peer) { call, user, _, _ in call.noteSlots(slots.slots.count, of: peer, user) }
    case .slots(let peer, let map):
      let slots = Slots(
        rev: map.revision, receive: map.slots.map(Slot.init), unsupported: map.unsupported)
      withPeer(peer) { call, user, _, out in call.tellSlots(slots, peer, of: user, out: &out) }
    case .need(let peer, let audio, let video):
      let need = Need(audio: audio, video: video)
      withPeer(peer) { call, user, _, out in call.tellPeer(peer, of: user, .need(need), out: &out) }
    case .wanted(let peer, let track, let layers):
      let wanted = Wanted(track: track, layers: layers)
      withPeer(peer) { call, user, _, out in call.tellPeer(peer, of: user, .wanted(wanted), out: &out) }
    case .connected(let peer):
      withPeer(peer) { call, user, now, out in call.mediaConnected(peer, of: user, now: now, out: &out) }
    case .disconnected(let peer, let silence):
      withPeer(peer) { call, user, now, out in
        call.mediaLost(peer, of: user, lastHeard: min(now, now - silence), out: &out)
      }
    case .quality(let peer, let level, let bitrate):
      withPeer(peer) { call, user, now, out in
        call.tellQuality(min(max(0, level), 4), bitrate: bitrate, peer, of: user, now: now, out: &out)
      }
    case .speakers(let id, let participants):
      change(id) { call, _, out in call.speak(participants, out: &out) }
    // Reported to the operator; it does not concern one call.
    case .tooMuch: break
    }
  }

  private mutating func withPeer(
    _ peer: PeerID, _ transition: (inout Call, UserID, Timestamp, inout Outputs) -> Void
  ) {
    guard let (id, user) = peers[peer] else { return }
    change(id) { call, now, out in transition(&call, user, now, &out) }
  }
}
