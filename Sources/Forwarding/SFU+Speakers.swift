import MediaModel
import RTP

extension SFU {
  /// Reads the audio level of a microphone's packet (RFC 6464). The level, not the V bit, for browsers set that always. An element of
  /// another length than one byte is no level: an empty one may lie at the packet's end.
  func hear(_ packet: borrowing Packet, of peer: Peer, now: Instant) {
    let id = peer.configuration.extensions.audioLevel
    guard id != 0, let element = packet.extensions?.element(id, in: packet.bytes), element.length == 1 else { return }
    peer.loudness.heard(level: packet.bytes[element.offset] & 0x7f, now: now)
    if now >= peer.call.nextSpeakers { updateSpeakers(of: peer.call, now: now) }
  }

  func updateSpeakers(of call: Call, now: Instant) {
    call.nextSpeakers = now.advanced(by: configuration.speakersInterval)
    let first = call.speakers.current.first
    let entries = call.peers.lazy.map {
      Speakers.Entry(participant: $0.configuration.participant, loudness: $0.loudness.value(at: now))
    }
    guard call.speakers.update(entries) else { return schedule(call.deadline) }
    let speakers = call.speakers.current
    events.append(.speakers(call.id, speakers))
    for peer in call.peers {
      let participant = peer.configuration.participant
      let isSpeaker = speakers.contains(participant)
      if isSpeaker, !peer.isSpeaker || participant == speakers.first && participant != first { peer.spokeAt = now }
      peer.isSpeaker = isSpeaker
    }
    allocateSlots(in: call, now: now)
    schedule(call.deadline)
  }
}
