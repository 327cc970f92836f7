import MediaModel

extension SFU {
  /// Fills the slots of all peers of a call anew and tells those whose map changed.
  func allocateSlots(in call: Call, now: Instant) {
    let (audio, video) = rankedTracks(of: call)
    call.allocationDue = nil
    for peer in call.peers where fillSlots(of: peer, audio: audio, video: video, now: now) {
      events.append(.slots(peer.id, peer.slotMap))
    }
    schedule(call.deadline)
  }

  /// Fills the slots of one peer anew; its map is told otherwise.
  func allocateSlots(of peer: Peer, now: Instant) {
    let (audio, video) = rankedTracks(of: peer.call)
    _ = fillSlots(of: peer, audio: audio, video: video, now: now)
    schedule(peer.call.deadline)
  }

  /// Lets `allocateSlots` run for the whole call soon, so that who toggles something all the time costs no more than who does it once.
  func allocateSlotsSoon(in call: Call, now: Instant) {
    let due = now.advanced(by: configuration.allocationDelay)
    call.allocationDue = min(call.allocationDue ?? due, due)
    schedule(call.deadline)
  }

  private func rankedTracks(of call: Call) -> (audio: [UpTrack], video: [UpTrack]) {
    let tracks = call.peers.lazy.filter { !$0.isHeld }.flatMap(\.upTracks)
    return (
      SlotAllocator.ranked(tracks.filter { $0.kind == .audio }),
      SlotAllocator.ranked(tracks.filter { $0.kind == .video })
    )
  }

  /// Returns whether the peer's map changed.
  private func fillSlots(of peer: Peer, audio: [UpTrack], video: [UpTrack], now: Instant) -> Bool {
    let isHeld = peer.isHeld
    let audio = isHeld ? [] : audio
    let video = isHeld ? [] : peer.wishes.applied(to: video)
    let unsupported = allocate(audio, .audio, to: peer, now: now) + allocate(video, .video, to: peer, now: now)
    if !isHeld { updateNeed(of: peer, audio: audio, video: video, now: now) }
    let slots = peer.downTracks.compactMap { down in
      down.source.map { SlotAssignment(mid: down.slot.mid, track: $0.track, source: $0.description.source) }
    }
    guard slots != peer.slotMap.slots || unsupported != peer.slotMap.unsupported || peer.slotMap.revision == 0 else {
      return false
    }
    peer.slotMap = SlotMap(revision: peer.slotMap.revision + 1, slots: slots, unsupported: unsupported)
    return true
  }

  /// Returns the tracks that no slot carries.
  private func allocate(_ ranked: [UpTrack], _ kind: MediaKind, to peer: Peer, now: Instant) -> [TrackID] {
    let slots = peer.downTracks.filter { $0.slot.kind == kind }
    guard !slots.isEmpty else { return [] }
    let wishes = kind == .video ? peer.wishes : .none
    let choice = SlotAllocator.choose(ranked, for: slots, of: peer, wishes, now: now)
    if let until = choice.heldUntil { peer.call.allocationDue = min(peer.call.allocationDue ?? until, until) }
    // First all that leave, so that a track is never in two slots of one peer.
    for (slot, track) in zip(slots, choice.tracks) where slot.source !== track { slot.setSource(nil, now: now) }
    for (slot, track) in zip(slots, choice.tracks) where slot.source !== track {
      slot.setSource(track, now: now)
      if let track, peer.link.isOpen { requestKeyFrame(of: track, now: now, isNewSource: true) }
    }
    let call = peer.call
    let missing = call.formats.indices.contains { key in !slots.contains { $0.carries(key, of: call.formats) } }
    guard missing || ranked.contains(where: { $0.formatKey < 0 }) else { return [] }
    return ranked.filter { track in
      track.peer !== peer && !slots.contains { $0.carries(track.formatKey, of: call.formats) }
    }.map(\.track).sorted()
  }

  private func updateNeed(of peer: Peer, audio: [UpTrack], video: [UpTrack], now: Instant) {
    let own = peer.upTracks.count { $0.kind == .audio }
    let videos = min(configuration.videoNeed, max(0, peer.wishes.lastN))
    let wanted = Need.Slots(
      audio: min(configuration.audioNeed, audio.count - own),
      video: min(videos, video.count - (peer.upTracks.count - own)))
    let existing = Need.Slots(
      audio: peer.downTracks.count { $0.slot.kind == .audio },
      video: peer.downTracks.count { $0.slot.kind == .video })
    peer.need.update(wanted: wanted, existing: existing, now: now)
    schedule(peer, peer.need.deadline)
  }
}
