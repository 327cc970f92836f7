import MediaModel
import Octets

// The server's offers to subscribers, and their answers.

extension JanusGateway {
  /// Makes an offer that says what changed, unless one is under way or the subscriber does not want it.
  mutating func offerByItself(_ handle: UInt64) {
    guard let subscription = handles[handle]?.subscription, subscription.isOutdated, subscription.followsPublishers,
      subscription.phase == .settled, handles[handle]?.pending == nil
    else { return }
    let event: JSONObject = ["videoroom": "updated", "room": subscription.room.tree, "streams": subscription.tree]
    makeOffer(handle, name: "update", transaction: nil, event, isFirst: false)
  }

  mutating func makeOffer(
    _ handle: UInt64, name: String, transaction: String?, _ event: JSONObject, isFirst: Bool
  ) {
    guard var subscription = handles[handle]?.subscription, let room = rooms[subscription.room] else { return }
    let number = nextNumber()
    let peer = subscription.peer ?? nextPeer()
    if subscription.peer == nil {
      peers[peer] = handle
      rooms[room.id]?.peers += 1
    }
    let lines = subscription.lines.map { line in
      SubscriberOffer.Line(
        mid: line.mid, kind: line.kind, format: line.format, pin: line.pin(isPaused: subscription.isPaused),
        label: line.label(usingIDs: subscription.usesMediaStreamIDs))
    }
    let offer = SubscriberOffer(
      number: number, peer: peer, call: room.call, lines: lines, restartsICE: subscription.restartsICE)
    subscription.peer = peer
    subscription.phase = .offering
    subscription.offer = number
    subscription.isOutdated = false
    subscription.restartsICE = false
    handles[handle]?.role = .subscriber(subscription)
    wait(
      handle,
      PendingRequest(
        number: number, name: name, transaction: transaction, step: .offering(event: event), isFirst: isFirst))
    counters.offers += 1
    media(.offer(offer))
  }

  /// The media plane has written the offer.
  mutating func offered(_ sdp: String, _ pending: PendingRequest, _ event: JSONObject, _ handle: UInt64) {
    guard let subscription = handles[handle]?.subscription else { return }
    changeSubscription(handle) { $0.phase = .offered }
    timers.add(
      .answer(handle: handle, number: pending.number), key: now.advanced(by: configuration.answerTimeout))
    let description = ("offer", sdp, subscription.isEncrypted ?? false)
    guard let transaction = pending.transaction else { return tell(handle, event, description: description) }
    succeed(pending.name, transaction, event, handle, description: description)
  }

  /// The media plane has taken the answer.
  mutating func answered(refused: Set<String>, _ pending: PendingRequest, _ handle: UInt64) {
    guard let subscription = handles[handle]?.subscription else { return }
    changeSubscription(handle) { subscription in
      subscription.phase = .settled
      for index in subscription.lines.indices {
        let line = subscription.lines[index]
        subscription.lines[index].isRefused = line.isRefused || refused.contains(line.mid)
        subscription.lines[index].isReady =
          subscription.isUp && line.source != nil && !subscription.lines[index].isRefused
      }
    }
    if let transaction = pending.transaction {
      succeed("start", transaction, event(subscription.room, "started", "ok"), handle)
    }
    offerOutdated(handle)
  }

  /// After an answer: the changes that came meanwhile, in one offer.
  private mutating func offerOutdated(_ handle: UInt64) {
    guard let subscription = handles[handle]?.subscription, subscription.isOutdated, subscription.phase == .settled
    else { return }
    let event: JSONObject = ["videoroom": "updated", "room": subscription.room.tree, "streams": subscription.tree]
    makeOffer(handle, name: "update", transaction: nil, event, isFirst: false)
  }

  /// Ends a subscriber's PeerConnection. Its lines go with it; the handle stays in the room.
  mutating func closePeer(ofSubscriber handle: UInt64, reason: String) {
    guard let subscription = handles[handle]?.subscription, let peer = subscription.peer else { return }
    cancelPending(handle, because: "The PeerConnection has ended")
    drop(peer, of: subscription.room)
    changeSubscription(handle) { subscription in
      subscription.peer = nil
      subscription.phase = .none
      subscription.lines = []
      subscription.isOutdated = false
      subscription.isUp = false
      subscription.isEncrypted = nil
    }
    tell(handle, core: "hangup", reason: reason)
  }
}
