import MediaModel

/// Finds the peers whose slots may change, and fills their slots by the ranking of their call's tracks. Hands peers with pinned slots to `PinFiller`.
final class SlotFiller {
  /// Peers whose slots are filled in one pass. The rest follows in the next passes, so that packets do not wait for a large
  /// call.
  static let peersPerPass = 32

  /// This worker's: the first of a call's workers tells who speaks.
  private let address: WorkerAddress
  private let configuration: SFUConfiguration
  private let histories: HistoryBudget
  private let output: SFUOutput
  private let pins: PinFiller
  /// Calls whose peers or tracks were changed by the current commands.
  private var changed: [ForwardedCall] = []

  init(
    _ configuration: SFUConfiguration, of address: WorkerAddress, histories: HistoryBudget, output: SFUOutput,
    pins: PinFiller
  ) {
    self.configuration = configuration
    self.address = address
    self.histories = histories
    self.output = output
    self.pins = pins
  }

  /// The slots of the call's peers are filled once all current commands have been carried out.
  func noteChange(of call: ForwardedCall) {
    if !changed.contains(where: { $0 === call }) { changed.append(call) }
  }

  /// The calls noted since the last time.
  func takeChanged() -> [ForwardedCall] { exchange(&changed, with: []) }

  /// Finds the peers of a call whose slots may change. The next passes fill them: examining a thousand peers takes a whole pass.
  func enqueueAffected(in call: ForwardedCall, now: Instant) {
    updateRanking(of: call)
    call.allocationDue = nil
    for peer in call.peers where peer.home == nil {
      output.counts.pointee.visits &+= 1
      if isAffected(peer, by: call.rankingChange, now: now) {
        call.enqueue(peer)
      } else if let until = peer.heldUntil {
        call.allocationDue = min(call.allocationDue ?? until, until)
      }
    }
    call.rankingChange = .none
    output.schedule(call)
  }

  /// Fills the slots of the next waiting peers and tells those whose map changed.
  func fillNext(of call: ForwardedCall, now: Instant, into outbox: Outbox) {
    updateRanking(of: call)
    for peer in call.takeUnfilled(Self.peersPerPass) where fillSlots(of: peer, now: now, into: outbox) {
      output.events.append(.slots(peer.id, peer.slotMap))
    }
    output.schedule(call)
  }

  /// Fills the slots of one peer again. Sends no `.slots` event: the caller reports the new map.
  func fill(_ peer: Peer, now: Instant, into outbox: Outbox) {
    updateRanking(of: peer.call)
    _ = fillSlots(of: peer, now: now, into: outbox)
    output.schedule(peer.call)
  }

  /// The timers find the affected peers of the call after a while, so a peer that toggles something all the time costs no more than one that does so once.
  func fillSoon(_ call: ForwardedCall, now: Instant) { fill(call, after: configuration.allocationDelay, now: now) }

  /// The timers find the affected peers of the call: other commands wait.
  func fillAfterBurst(_ call: ForwardedCall, now: Instant) { fill(call, after: configuration.burstDelay, now: now) }

  private func fill(_ call: ForwardedCall, after delay: Duration, now: Instant) {
    let due = now.advanced(by: delay)
    call.allocationDue = min(call.allocationDue ?? due, due)
    output.schedule(call)
  }

  /// A microphone's packet may have changed who is heard. The next timer passes give a new voice slots: at most as many times in 2 s as there are
  /// voices.
  func note(_ change: CallSpeakers.Change, in call: ForwardedCall, now: Instant) {
    guard !change.isEmpty else { return }
    if change.contains(.voices), call.ranking.audio.isShort {
      call.isRankingStale = true
      call.allocationDue = now
    }
    output.schedule(call)
  }

  /// Determines who speaks. A call has at most as many speakers as any of its peers has voice slots; without such peers, as many as it may have voices.
  func updateSpeakers(of call: ForwardedCall, now: Instant) {
    let most = call.peers.isEmpty ? configuration.voices : call.countVoices()
    let isChanged = call.speakers.update(
      call.allPeers, most: most, places: configuration.voices, interval: configuration.speakersInterval, now: now)
    output.counts.pointee.visits &+= call.speakers.takeVisits()
    if isChanged {
      if call.workers.first ?? address == address { output.events.append(.speakers(call.id, call.speakers.current)) }
      call.isRankingStale = true
      call.allocationDue = now
    }
    output.schedule(call)
  }

  private func updateRanking(of call: ForwardedCall) {
    guard call.isRankingStale else { return }
    var new = Ranking(of: call.peers)
    output.counts.pointee.visits &+= new.takeVisits()
    call.rankingChange = max(call.rankingChange, call.ranking.change(to: new, need: configuration))
    if call.ranking.audio.isShort || new.audio.isShort { keepPreRolls(in: call, isShort: new.audio.isShort) }
    call.ranking = new
    call.isRankingStale = false
  }

  /// Only a microphone that somebody may not hear can have a first syllable that was not sent.
  private func keepPreRolls(in call: ForwardedCall, isShort: Bool) {
    for peer in call.peers {
      output.counts.pointee.visits &+= 1
      for track in peer.upTracks where track.isMicrophone {
        track.encodings[0].keepPreRoll(isShort && !track.isSilent, histories)
      }
    }
  }

  private func isAffected(_ peer: Peer, by change: Ranking.Change, now: Instant) -> Bool {
    if peer.needsSlots || change == .withinReach || change == .beyondReach && peer.lacksFormats { return true }
    return peer.heldUntil.map { $0 <= now } ?? false
  }

  /// Returns whether the peer's map changed.
  private func fillSlots(of peer: Peer, now: Instant, into outbox: Outbox) -> Bool {
    peer.needsSlots = false
    if peer.isPinned { return pins.fillSlots(of: peer, now: now) }
    peer.lacksFormats = false
    peer.heldUntil = nil
    let call = peer.call
    let unsupported =
      allocate(&call.ranking.audio, .audio, to: peer, now: now, into: outbox)
      + allocate(&call.ranking.video, .video, to: peer, now: now, into: outbox)
    if let until = peer.heldUntil { call.allocationDue = min(call.allocationDue ?? until, until) }
    if !peer.isHeld { updateNeed(of: peer, now: now) }
    output.counts.pointee.visits &+= call.ranking.takeVisits()
    return peer.updateSlotMap(unsupported: unsupported)
  }

  /// Reports the peer's map if some of its videos are shown in another quality than it says. Called with each report to
  /// it.
  func judgePictures(of peer: Peer) {
    var hasChanged = false
    for down in peer.videoSlots where down.judgePicture() { hasChanged = true }
    guard hasChanged else { return }
    peer.slotMap.revision += 1
    peer.slotMap.slots = peer.assignments
    output.events.append(.slots(peer.id, peer.slotMap))
  }

  /// Returns the tracks that no slot carries.
  private func allocate(
    _ ranked: inout RankedTracks, _ kind: MediaKind, to peer: Peer, now: Instant, into outbox: Outbox
  ) -> [TrackID] {
    let slots = kind == .audio ? peer.audioSlots : peer.videoSlots
    guard !slots.isEmpty else { return [] }
    let wishes = kind == .video ? peer.wishes : peer.wishes.forAudio
    let carried = peer.carriedFormats(kind)
    let limit = max(0, min(slots.count, wishes.lastN))
    let candidates =
      peer.isHeld ? [] : ranked.first(limit + 1, for: peer, carried: carried, wishes)
    let choice = SlotAllocator.choose(candidates, for: slots, of: peer, wishes, limit: limit, now: now)
    output.counts.pointee.visits &+= UInt64(slots.count)
    if let until = choice.heldUntil { peer.heldUntil = min(peer.heldUntil ?? until, until) }
    // First the slots of all tracks that leave, so that a track is never in two slots of one peer.
    for (slot, track) in zip(slots, choice.tracks) where slot.source !== track { slot.setSource(nil, now: now) }
    for (slot, track) in zip(slots, choice.tracks) where slot.source !== track {
      slot.setSource(track, now: now)
      if kind == .audio { output.counts.pointee.forwarded &+= slot.sendPreRoll(now: now, into: outbox) }
      if let encoding = slot.encoding, peer.transport.isOpen {
        output.requestKeyFrame(of: encoding, now: now)
      }
    }
    if kind == .video { setHeights(of: slots, wishes, isOpen: peer.transport.isOpen, now: now) }
    guard !peer.isHeld, !ranked.areAll(in: carried) else { return [] }
    peer.lacksFormats = true
    return ranked.unsupported(peer, carried: carried, wishes)
  }

  private func setHeights(of slots: [DownTrack], _ wishes: Wishes, isOpen: Bool, now: Instant) {
    for slot in slots {
      guard let track = slot.source else { continue }
      let height = wishes.videos.isEmpty ? nil : wishes.videos[track.track]?.maxHeight
      if let needed = slot.setMaxHeight(height), isOpen { output.requestKeyFrame(of: needed, now: now) }
    }
  }

  private func updateNeed(of peer: Peer, now: Instant) {
    let call = peer.call
    let own = peer.upTracks.count { $0.kind == .audio }
    let videos = min(configuration.videoNeed, max(0, peer.wishes.lastN))
    let paused = call.ranking.video.paused(peer.wishes, by: peer)
    let wanted = SlotNeed.Slots(
      audio: min(configuration.voices, call.ranking.audio.count - own),
      video: min(videos, call.ranking.video.count - (peer.upTracks.count - own) - paused))
    let existing = SlotNeed.Slots(audio: peer.audioSlots.count, video: peer.videoSlots.count)
    peer.need.update(wanted: wanted, existing: existing, now: now)
    output.schedule(peer, peer.need.deadline)
  }
}

extension Peer {
  /// Takes over what the slots show now. Returns whether the map changed.
  /// - Parameter unsupported: the tracks that no slot carries.
  func updateSlotMap(unsupported: [TrackID]) -> Bool {
    let slots = assignments
    guard slots != slotMap.slots || unsupported != slotMap.unsupported || slotMap.revision == 0 else { return false }
    slotMap = SlotMap(revision: slotMap.revision + 1, slots: slots, unsupported: unsupported)
    return true
  }

  fileprivate var assignments: [SlotAssignment] {
    downTracks.compactMap { down in
      down.source.map { source in
        SlotAssignment(
          mid: down.description.mid, track: source.track, source: source.description.source, picture: down.picture)
      }
    }
  }
}
