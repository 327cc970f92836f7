import MediaModel
import Octets
import Transport

extension SFU {
  /// Adds the peer, or changes it: an ICE restart, more tracks, more slots. DTLS and SRTP continue.
  func configure(_ new: PeerConfiguration, request: UInt64, now: Instant, into outbox: Outbox) {
    let peer: Peer
    if let known = peersByID[new.peer] {
      paths.refuse(known)
      if known.configuration.remote != new.remote { known.checker = nil }
      known.configuration = new
      peer = known
    } else {
      peer = addPeer(new)
      peers.append(peer)
    }
    paths.admit(peer)
    describeTracks(of: peer, now: now)
    describeSlots(of: peer, now: now)
    peer.describeArrivals()
    if let feedback = new.feedback {
      peer.transport.estimate(by: feedback, firstNumber: UInt16(truncatingIfNeeded: random.next()), now: now)
    }
    slots.fill(peer, now: now, into: outbox)
    updateDemands(of: peer.call, now: now)
    slots.noteChange(of: peer.call)
    output.events.append(.configured(peer.id, request: request, peer.slotMap))
  }

  /// Frees everything that belongs to the peer. The others no longer receive its streams.
  func remove(_ id: PeerID, now: Instant, into outbox: Outbox) {
    guard let peer = peersByID.removeValue(forKey: id) else { return }
    peer.isGone = true
    output.unschedule(peer)
    if let pair = peer.pair { peer.association?.close { peer.transport.send($0, to: pair.address, in: outbox) } }
    paths.removeAll(of: peer)
    if peer.home == nil { peers.removeAll { $0 === peer } }
    let call = peer.call
    for down in peer.downTracks { down.setSource(nil, now: now) }
    for track in peer.upTracks { detach(track, now: now) }
    call.remove(peer, now: now)
    if peer.isPinned { pins.remove(peer) }
    if call.isEmpty {
      calls[call.id] = nil
      output.unschedule(call)
    } else {
      slots.noteChange(of: call)
    }
  }

  func mute(_ id: PeerID, _ name: TrackID, _ isMuted: Bool, now: Instant) {
    guard let peer = peersByID[id], let track = peer.upTracks.first(where: { $0.track == name }) else { return }
    silence(track, isMuted: isMuted, now: now)
    slots.fillSoon(peer.call, now: now)
  }

  /// The tracks of a held peer lose their slots to others and return with a key frame, like any track that takes a
  /// slot.
  func hold(_ id: PeerID, _ isHeld: Bool, now: Instant) {
    guard let peer = peersByID[id], peer.isHeld != isHeld else { return }
    peer.isHeld = isHeld
    peer.needsSlots = true
    peer.call.isRankingStale = true
    for track in peer.upTracks { silence(track, isMuted: track.isMuted, now: now) }
    if peer.isPinned {
      peer.call.enqueue(peer)
      pins.enqueueSubscribers(of: peer)
    }
    slots.noteChange(of: peer.call)
  }

  /// Delayed like a mute, so that a peer that changes its wishes all the time costs no more than one that does so once.
  func receive(_ id: PeerID, _ wishes: Wishes, now: Instant) {
    guard let peer = peersByID[id], peer.wishes != wishes else { return }
    peer.wishes = wishes
    peer.needsSlots = true
    // The number of wishes of a peer decides how far down the ranking matters.
    peer.call.isRankingStale = true
    slots.fillSoon(peer.call, now: now)
  }

  /// Not delayed: filling the slots of one peer costs no more than reading the command.
  func pin(_ id: PeerID, _ new: [SlotPin], now: Instant) {
    guard let peer = peersByID[id], peer.isPinned, peer.home == nil else { return }
    pins.pin(new, of: peer)
    peer.call.enqueue(peer)
    slots.noteChange(of: peer.call)
  }

  func removeTrack(_ id: PeerID, _ name: TrackID, now: Instant) {
    guard let peer = peersByID[id] else { return }
    peer.configuration.tracks.removeAll { $0.track == name }
    describeTracks(of: peer, now: now)
    slots.noteChange(of: peer.call)
  }

  /// Adds the peer of another worker, or changes it. Nothing is sent to it from here.
  func mirror(_ new: PeerConfiguration, home: RelayEnd, now: Instant) {
    var configuration = new
    configuration.slots = []
    // Its own worker compares the key IDs.
    configuration.isOnKeyList = false
    let known = peersByID[new.peer]
    guard known.map({ $0.home == home }) ?? !new.tracks.isEmpty else { return }
    known?.configuration = configuration
    let peer = known ?? addPeer(configuration, home: home)
    peer.isEncryptedElsewhere = new.isOnKeyList
    describeTracks(of: peer, now: now)
    peer.wishReminder = WishReminder(from: now)
    output.schedule(peer, peer.wishReminder.deadline)
    slots.noteChange(of: peer.call)
  }

  private func beginCall(_ id: CallID) -> ForwardedCall {
    callsBegun += 1
    let call = ForwardedCall(id, number: callsBegun)
    calls[id] = call
    return call
  }

  private func addPeer(_ configuration: PeerConfiguration, home: RelayEnd? = nil) -> Peer {
    let call = calls[configuration.call] ?? beginCall(configuration.call)
    let peer = Peer(configuration, home: home, call: call, limits: self.configuration)
    call.add(peer)
    if peer.isPinned { pins.add(peer) }
    peersByID[configuration.peer] = peer
    return peer
  }

  private func describeTracks(of peer: Peer, now: Instant) {
    let descriptions = peer.configuration.tracks
    peer.call.isRankingStale = true
    // With other layers it is a different track.
    for old in peer.upTracks
    where !descriptions.contains(where: { $0.track == old.track && $0.rids == old.description.rids }) {
      detach(old, now: now)
    }
    peer.upTracks = descriptions.map { description in
      let key = peer.call.formatKey(description.formats.first)
      guard let track = peer.upTracks.first(where: { $0.track == description.track && !$0.isDetached }) else {
        return UpTrack(description, of: peer, formatKey: key, configuration, histories)
      }
      silence(track, isMuted: description.muted, now: now)
      track.describe(description, configuration, histories)
      track.formatKey = key
      if let encoding = track.restartedEncoding {
        encoding.restart(ssrc: description.ssrcs[0])
        output.requestKeyFrame(of: encoding, now: now)
      }
      for down in track.encodings.lazy.flatMap(\.downTracks) {
        down.mapSource()
        down.noteAwaiting()
        down.peer.needsSlots = true
      }
      return track
    }
    peer.announceStreams()
    if peer.isPinned { pins.enqueueSubscribers(of: peer) }
  }

  private func describeSlots(of peer: Peer, now: Instant) {
    let extensions = peer.configuration.extensions
    let slots = peer.configuration.slots
    let leaving = peer.downTracks.filter { old in !slots.contains { $0.ssrc == old.description.ssrc } }
    for old in leaving { old.rest(now: now) }
    let known = peer.downTracks + peer.restingSlots
    let resting = (peer.restingSlots + leaving).filter { old in
      peer.configuration.restingSlots.contains(old.description.ssrc)
    }
    peer.setSlots(
      slots.map { slot in
        guard let down = known.first(where: { $0.description.ssrc == slot.ssrc }) else {
          return DownTrack(slot, of: peer, configuration, histories, random: &random)
        }
        down.describe(slot, extensions: extensions, configuration, histories)
        return down
      }, resting: resting)
  }

  private func silence(_ track: UpTrack, isMuted: Bool, now: Instant) {
    track.peer.call.isRankingStale = true
    guard track.set(isMuted: isMuted, isHeld: track.peer.isHeld) else { return }
    if track.isSilent {
      if track.isMicrophone { track.peer.call.speakers.forget(track.peer, now: now) }
      for encoding in track.encodings { encoding.reception.pointee.nacks.reset() }
      for down in track.encodings.lazy.flatMap(\.downTracks) {
        down.pause()
        // It may keep its slot against better ranked tracks.
        down.peer.needsSlots = true
      }
    } else {
      for encoding in track.encodings { output.requestKeyFrame(of: encoding, now: now) }
    }
  }

  private func detach(_ track: UpTrack, now: Instant) {
    track.isDetached = true
    if track.isMicrophone { track.peer.call.speakers.forget(track.peer, now: now) }
    if let home = track.peer.home { relays.endWishes(for: track, to: home) }
    for encoding in track.encodings {
      while let down = encoding.downTracks.last {
        down.setSource(nil, now: now)
        down.peer.needsSlots = true
      }
    }
  }
}
