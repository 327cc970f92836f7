import MediaModel
import RTP

extension SFU {
  /// Examines a packet of a track with several layers: whether a layer began or stopped flowing, and whether this is the key frame that slots
  /// wait for.
  func watchLayers(
    of track: UpTrack, _ encoding: Encoding, _ packet: borrowing Packet, isRetransmission: Bool, now: Instant
  ) {
    let height = encoding.knownHeight
    encoding.knownHeight = encoding.height
    if let frame = packet.frame, frame.startsFrame, !isRetransmission {
      track.clock.began(frame.number, timestamp: frame.timestamp, of: encoding.rank, at: now)
    }
    var hasChanged = height != encoding.knownHeight
    if !isRetransmission, track.noteArrival(of: encoding, endsFrame: packet.header.marker, now: now) {
      hasChanged = true
    }
    if hasChanged { chooseLayers(of: track, now: now) }
    if packet.isKeyFrame, !encoding.waiting.isEmpty {
      for down in encoding.takeWaiting() {
        down.takeNext()
        counts.pointee.layerSwitches &+= 1
      }
    }
    if track.isDemandNoted { updateDemands(of: track.peer.call, now: now) }
  }

  /// Chooses the layer for each slot that shows the track.
  private func chooseLayers(of track: UpTrack, now: Instant) {
    for down in track.encodings.flatMap(\.downTracks) {
      if let needed = down.chooseLayer() { output.requestKeyFrame(of: needed, now: now) }
    }
  }

  /// Finds the peers of a call whose slots may change, and fills the slots of the first of them.
  func allocateSlots(in call: ForwardedCall, now: Instant, into outbox: Outbox) {
    slots.enqueueAffected(in: call, now: now)
    fillSlots(in: call, now: now, into: outbox)
  }

  /// Fills the slots of the call's next waiting peers. Their senders learn what is shown now.
  func fillSlots(in call: ForwardedCall, now: Instant, into outbox: Outbox) {
    slots.fillNext(of: call, now: now, into: outbox)
    updateDemands(of: call, now: now)
  }

  /// Informs the senders of the call's layered tracks whose receivers changed, and the workers of the other tracks.
  func updateDemands(of call: ForwardedCall, now: Instant) {
    for track in call.takeDemands() { updateDemand(of: track, now: now) }
  }

  func updateDemand(of track: UpTrack, now: Instant) {
    if let home = track.peer.home { return relays.tellWishes(for: track, to: home) }
    if let layers = track.updateDemand(now: now) { output.events.append(.wanted(track.peer.id, track.track, layers)) }
    output.schedule(track.peer, track.demand.deadline)
  }
}
