import MediaModel

/// Fills pinned slots: each shows the track that its pin names, for as long as that track exists.
///
/// Tracks are found by their peers, so a pin costs the same in a call of any size. Only peers with `SlotFilling.pinned` are publishers here, and only those of
/// the subscriber's own call are found.
final class PinFiller {
  private let output: SFUOutput
  /// The pinned peers, local and remote.
  private var publishers: [PeerID: Peer] = [:]
  /// For each publisher, whether it has come or not, the peers with a pin on a track of it.
  private var subscribers: [PeerID: [PeerID: Peer]] = [:]

  init(output: SFUOutput) { self.output = output }

  /// A pinned peer came.
  func add(_ peer: Peer) { publishers[peer.id] = peer }

  /// A pinned peer goes.
  func remove(_ peer: Peer) {
    publishers[peer.id] = nil
    forgetPins(of: peer)
    enqueueSubscribers(of: peer)
  }

  /// The tracks of a pinned peer have changed, or whether they may be shown: the slots of its subscribers are filled in the next passes.
  func enqueueSubscribers(of peer: Peer) {
    guard let subscribers = subscribers[peer.id] else { return }
    output.counts.pointee.visits &+= UInt64(subscribers.count)
    // In one order, whatever the dictionary's is. Pins on a track of another call show nothing, now and later.
    for subscriber in subscribers.values.sorted(by: { $0.id.rawValue < $1.id.rawValue })
    where subscriber.call === peer.call {
      peer.call.enqueue(subscriber)
    }
    output.schedule(peer.call)
  }

  /// Replaces the peer's pins. `fill` follows.
  func pin(_ pins: [SlotPin], of peer: Peer) {
    forgetPins(of: peer)
    peer.pins = Dictionary(pins.map { ($0.mid, $0) }, uniquingKeysWith: { _, last in last })
    for pin in pins { subscribers[pin.source.peer, default: [:]][peer.id] = peer }
  }

  private func forgetPins(of peer: Peer) {
    for pin in peer.pins.values {
      subscribers[pin.source.peer]?[peer.id] = nil
      if subscribers[pin.source.peer]?.isEmpty ?? false { subscribers[pin.source.peer] = nil }
    }
    peer.pins = [:]
  }

  /// Returns whether the peer's map changed.
  func fillSlots(of peer: Peer, now: Instant) -> Bool {
    output.counts.pointee.visits &+= UInt64(peer.downTracks.count)
    var unsupported: Set<TrackID> = []
    for slot in peer.downTracks {
      let pin = peer.pins[slot.description.mid]
      var track = pin.flatMap { self.track($0, for: peer) }
      if let found = track, !slot.carries(found.formatKey, of: peer.call.formats) {
        unsupported.insert(found.track)
        track = nil
      }
      let isNew = slot.source !== track
      slot.setSource(track, now: now)
      var needed = slot.setCeiling(pin?.ceiling ?? LayerCeiling())
      if isNew { needed = slot.encoding }
      if let needed, peer.transport.isOpen { output.requestKeyFrame(of: needed, now: now) }
    }
    return peer.updateSlotMap(unsupported: unsupported.sorted())
  }

  /// nil while the pin has nothing to show.
  private func track(_ pin: SlotPin, for peer: Peer) -> UpTrack? {
    guard !pin.isPaused, !peer.isHeld, let publisher = publishers[pin.source.peer], publisher.call === peer.call,
      !publisher.isHeld
    else { return nil }
    return publisher.upTracks.first { $0.track == pin.source.track }
  }
}
