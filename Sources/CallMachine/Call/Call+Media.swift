import CallMessages
import Contract
import MediaModel

/// Offers and tracks (protocol section 6).
extension Call {
  /// Takes an offer and names its tracks.
  /// - Throws: `call.not-joined`, the SDP's error, `media.sdp-invalid` for another DTLS fingerprint, `request.invalid` for tracks that
  ///   are not in the offer, `media.unsupported`, `media.too-many-tracks`, `screen.busy`. Nothing has changed then.
  mutating func offer(
    _ read: Result<MediaOffer, RequestError>, tracks: [MediaRequest.Track], from device: Device, now: Timestamp,
    out: inout Outputs
  ) throws(RequestError) -> Negotiate {
    let participant = try participant(of: device)
    let offer = try read.get()
    if let fingerprint = participant.fingerprint, fingerprint != offer.fingerprint {
      throw RequestError(
        .mediaSDPInvalid, "a=fingerprint is another one: a new PeerConnection needs a rejoin", field: "sdp")
    }
    let wanted = try wanted(tracks, in: offer)
    guard participant.tracks.hasRoom(for: wanted) else {
      throw RequestError(.mediaTooManyTracks, "a participant sends at most 255 tracks in its life")
    }
    let replaced = try screensToReplace(for: wanted, from: participant)
    for screen in replaced { end(screen, out: &out) }
    let update = withParticipant(of: device) { participant in
      participant.fingerprint = offer.fingerprint
      return participant.tracks.update(to: wanted, now: now)
    }
    guard let update else { throw RequestError(.internal, "the participant is not there") }
    recording?.tracksChanged(of: participant.number)
    // Only from here on does the media plane know the peer.
    if !participant.isNegotiated {
      if participant.isHeld { out.add(.media(.hold(participant.peer, true))) }
      if let wishes = participant.wishes { out.add(.media(.receive(participant.peer, wishes))) }
    }
    let devices = participantDevices
    for track in update.removed { out.event(.trackRemoved(TrackChange(track.state)), to: .devices(devices)) }
    for track in update.added { out.event(.trackAdded(TrackChange(track.state)), to: .devices(devices)) }
    return Negotiate(
      peer: participant.peer, call: id, participant: participant.number,
      isOnKeyList: epochs.keyedDevices[device]?.number == participant.number, isGuest: device.user.isGuest,
      member: place(of: device.user) ?? Int(participant.number), offer: offer, tracks: update.names,
      codecs: rules.codecs)
  }

  /// The named sections that actually send; a paused or rejected section is a track that has ended.
  private func wanted(
    _ tracks: [MediaRequest.Track], in offer: MediaOffer
  ) throws(RequestError) -> [TrackTable.Wanted] {
    var sections: [String: MediaOffer.Section] = [:]
    for section in offer.sections { sections[section.mid] = section }
    var wanted: [TrackTable.Wanted] = []
    for (place, track) in tracks.enumerated() {
      let field = "tracks.\(place)"
      guard let section = sections.removeValue(forKey: track.mid) else {
        throw RequestError(.requestInvalid, "each mid is one m-line of the offer", field: "\(field).mid")
      }
      guard section.kind == .media(track.source.kind) else {
        throw RequestError(.requestInvalid, "the m-line is of another kind than the source", field: "\(field).source")
      }
      guard !section.isRejected, section.direction == .sendonly || section.direction == .sendrecv else { continue }
      if track.source.kind == .video, !section.formats.contains(where: { allows($0.codec) }) {
        throw RequestError(.mediaUnsupported, "this call's video codecs are \(rules.codecs.joined(separator: ", "))")
      }
      if track.source.kind == .audio, !section.formats.contains(where: { $0.codec.lowercased() == "opus" }) {
        throw RequestError(.mediaUnsupported, "audio is Opus: offer it on this m-line")
      }
      wanted.append(
        TrackTable.Wanted(mid: track.mid, source: track.source, replaces: track.replace ?? false))
    }
    return wanted
  }

  private func allows(_ codec: String) -> Bool { rules.codecs.contains { $0.lowercased() == codec.lowercased() } }

  /// The screens of others that new ones replace, oldest first; throws if the policy's limit is reached.
  private func screensToReplace(
    for wanted: [TrackTable.Wanted], from participant: Participant
  ) throws(RequestError) -> [TrackTable.Track] {
    let screens = wanted.filter { $0.source == .screen }
    let new = screens.filter { !participant.tracks.isLive(mid: $0.mid, source: .screen) }
    guard !new.isEmpty else { return [] }
    let others = members.flatMap { member in
      member.participants.filter { $0.number != participant.number }.flatMap(\.tracks.live)
        .filter { $0.source == .screen }
    }
    let surplus = others.count + screens.count - rules.screens
    guard surplus > 0 else { return [] }
    guard surplus <= others.count, surplus <= new.count(where: \.replaces) else {
      throw RequestError(.screenBusy, "another participant shares the screen: \"replace\":true ends that one")
    }
    let oldest = others.sorted {
      ($0.liveSince?.milliseconds ?? 0, $0.id) < ($1.liveSince?.milliseconds ?? 0, $1.id)
    }
    return Array(oldest.prefix(surplus))
  }

  /// Ends another participant's screen, and the screen audio with that participant's last screen.
  private mutating func end(_ screen: TrackTable.Track, out: inout Outputs) {
    guard let device = participant(screen.id.participant)?.device else { return }
    let ended = withParticipant(of: device) { participant in
      var ended = [participant.tracks.end(screen.id)]
      if !participant.tracks.live.contains(where: { $0.source == .screen }) {
        for track in participant.tracks.live where track.source == .screenAudio {
          ended.append(participant.tracks.end(track.id))
        }
      }
      return (participant.peer, ended.compactMap { $0 })
    }
    guard let (peer, tracks) = ended else { return }
    for track in tracks {
      out.add(.media(.removeTrack(peer, track.id)))
      out.event(.trackRemoved(TrackChange(track.state, cause: .replaced)), to: .devices(participantDevices))
    }
  }

  /// `tracks/{track}`: mute or unmute one's own.
  mutating func mute(_ track: TrackID, _ muted: Bool, from device: Device, out: inout Outputs) throws(RequestError) {
    let participant = try participant(of: device)
    guard participant.tracks.live(track) != nil else {
      let isOther = members.contains { $0.participants.contains { $0.tracks.live(track) != nil } }
      throw isOther
        ? RequestError(.trackNotOwn, "only the participant that sends a track may change it")
        : RequestError(.trackNotFound, "there is no such track now")
    }
    guard let changed = withParticipant(of: device, { $0.tracks.mute(track, muted) }) ?? nil else { return }
    out.add(.media(.mute(participant.peer, track, muted)))
    out.event(.trackUpdated(TrackChange(changed.state)), to: .devices(participantDevices))
  }

  // MARK: what the SFU says

  /// Only for the device of this peer.
  func tellPeer(_ peer: PeerID, of user: UserID, _ body: EventBody, out: inout Outputs) {
    guard let participant = participant(with: peer, of: user) else { return }
    out.event(body, to: .devices([participant.device]))
  }

  mutating func noteSlots(_ count: Int, of peer: PeerID, _ user: UserID) {
    guard let participant = participant(with: peer, of: user) else { return }
    _ = withParticipant(of: participant.device, isStored: false) { $0.quality.filled(slots: count) }
  }

  mutating func tellSlots(_ slots: Slots, _ peer: PeerID, of user: UserID, out: inout Outputs) {
    guard let participant = participant(with: peer, of: user) else { return }
    noteSlots(slots.receive.count, of: peer, user)
    out.event(.slots(slots), to: .devices([participant.device]))
  }

  mutating func tellQuality(
    _ level: Int, bitrate: Int, _ peer: PeerID, of user: UserID, now: Timestamp, out: inout Outputs
  ) {
    guard let participant = participant(with: peer, of: user) else { return }
    _ = withParticipant(of: participant.device, isStored: false) {
      $0.quality.judged(level, bitrate: bitrate, now: now)
    }
    let quality = Quality(participant: participant.number, level: level, bitrate: bitrate)
    out.event(.quality(quality), to: .devices([participant.device]))
  }

  /// Announces the speakers without held or departed participants; an unchanged list is not repeated.
  mutating func speak(_ loudest: [ParticipantNumber], out: inout Outputs) {
    let heard = loudest.filter { participant($0)?.isHeld == false }
    guard joinedCount > 0, heard != speakers else { return }
    speakers = heard
    out.event(.speakers(Speakers(participants: heard)), to: .devices(participantDevices))
  }
}

/// `hold`: nothing is forwarded to or from a participant, which stays a participant for keys and events (protocol
/// section 4).
extension Call {
  mutating func hold(_ isHeld: Bool, _ device: Device, out: inout Outputs) throws(RequestError) {
    let participant = try participant(of: device)
    guard participant.isHeld != isHeld else { return }
    _ = withParticipant(of: device) { $0.isHeld = isHeld }
    // Before the first offer the media plane does not know the participant; it learns this with the offer.
    if participant.isNegotiated { out.add(.media(.hold(participant.peer, isHeld))) }
    announce(device.user, .held, out: &out)
  }

  /// The device has been speaking in another call since that turn. It may have left this one meanwhile, or speak here because of a
  /// later request.
  mutating func holdUnlessHeld(_ device: Device, since turn: UInt64, out: inout Outputs) {
    guard let participant = try? participant(of: device), !participant.isHeld, participant.turn < turn else { return }
    try? hold(true, device, out: &out)
  }
}
