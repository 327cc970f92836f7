import MediaModel

// Results and events of the media plane.

extension JanusGateway {
  mutating func wait(_ handle: UInt64, _ pending: PendingRequest) {
    handles[handle]?.pending = pending
    waiters[pending.number] = handle
  }

  mutating func received(_ result: RoomMediaResult, number: UInt64) {
    // A request that was given up is no longer there.
    guard let handle = waiters.removeValue(forKey: number), let pending = handles[handle]?.pending,
      pending.number == number
    else { return }
    handles[handle]?.pending = nil
    do throws(JanusError) {
      try proceed(handle, with: pending, result)
    } catch {
      giveUp(pending, error, handle)
    }
    offerByItself(handle)
    proceed(handle)
  }

  private mutating func proceed(
    _ handle: UInt64, with pending: PendingRequest, _ result: RoomMediaResult
  ) throws(JanusError) {
    switch (pending.step, result) {
    case (.reading(let request, let wish, let joined), .read(let read)):
      try publish(accepted(read), request, wish, joined: joined, handle)
    case (.negotiating(let request, let wish, let joined, let offer), .negotiated(let negotiated)):
      published(try accepted(negotiated), request, wish, joined: joined, offer: offer, handle)
    case (.offering(let event), .offered(let offered)): self.offered(try accepted(offered), pending, event, handle)
    case (.answering, .answered(let answered)):
      do throws(JanusError) {
        self.answered(refused: try accepted(answered), pending, handle)
      } catch {
        // The client may send another answer.
        changeSubscription(handle) { $0.phase = .offered }
        throw error
      }
    default: throw JanusError(.roomUnknownError, "The server failed")
    }
  }

  private func accepted<Value>(_ result: Result<Value, DescriptionRefusal>) throws(JanusError) -> Value {
    switch result {
    case .success(let value): return value
    case .failure(let refusal): throw JanusError(.roomInvalidDescription, "Invalid SDP: \(refusal.reason)")
    }
  }

  private mutating func giveUp(_ pending: PendingRequest, _ error: JanusError, _ handle: UInt64) {
    if let transaction = pending.transaction { fail(pending.name, transaction, error, handle) }
    undo(pending, handle)
    switch pending.step {
    case .negotiating:
      // A first offer that was refused leaves no PeerConnection.
      guard case .participant(let room, let id) = handles[handle]?.role,
        rooms[room]?[id]?.publication?.streams.isEmpty ?? false
      else { return }
      unpublish(room, id, reason: nil)
    case .offering:
      if pending.isFirst, let subscription = handles[handle]?.subscription {
        if let peer = subscription.peer { drop(peer, of: subscription.room) }
        handles[handle]?.role = .fresh
        rooms[subscription.room]?.subscribers.remove(handle)
        noteEmptiness(of: subscription.room)
      } else {
        closePeer(ofSubscriber: handle, reason: "Close PC")
      }
    case .reading, .answering: break
    }
  }

  /// A `joinandconfigure` joins and publishes, or does neither.
  mutating func undo(_ pending: PendingRequest, _ handle: UInt64) {
    switch pending.step {
    case .reading(_, _, .some), .negotiating(_, _, .some, _):
      guard case .participant(let room, let id) = handles[handle]?.role else { return }
      leave(room, id, .leaving)
      handles[handle]?.role = .fresh
    default: break
    }
  }

  // MARK: Events

  mutating func received(_ event: RoomMediaEvent) {
    switch event {
    case .connected(let peer): connected(peer)
    case .disconnected(let peer, let silence):
      guard let handle = peers[peer] else { return }
      if silence > .zero, case .participant(let room, let id) = handles[handle]?.role {
        rooms[room]?.change(id) { $0.isSilent = true }
      }
      hangUp(handle, reason: silence > .zero ? "ICE failed" : "DTLS alert")
    case .receiving(let peer, let mid, let isReceiving):
      guard let handle = peers[peer], case .participant(let room, let id) = handles[handle]?.role,
        let stream = rooms[room]?[id]?.publication?.stream(mid: mid), let session = handles[handle]?.session
      else { return }
      deliver(
        [
          "janus": "media", "session_id": JSONTree(session), "sender": JSONTree(handle), "mid": .text(mid),
          "type": .text(stream.kind.rawValue), "receiving": .boolean(isReceiving),
        ], to: session)
    case .speakers(let call, let numbers): speak(call, Set(numbers))
    }
  }

  private mutating func connected(_ peer: PeerID) {
    guard let handle = peers[peer] else { return }
    switch handles[handle]?.role {
    case .participant(let room, let id):
      guard rooms[room]?[id]?.publication?.isUp == false else { return }
      rooms[room]?.change(id) { $0.publication?.isUp = true }
      tell(handle, core: "webrtcup")
      announce(id, in: room)
    case .subscriber(let subscription):
      guard !subscription.isUp else { return }
      changeSubscription(handle) { subscription in
        subscription.isUp = true
        for index in subscription.lines.indices {
          let line = subscription.lines[index]
          subscription.lines[index].isReady = line.source != nil && !line.isRefused
        }
      }
      tell(handle, core: "webrtcup")
    default: break
    }
  }

  /// Ends the PeerConnection of a handle, which stays in its room.
  mutating func hangUp(_ handle: UInt64, reason: String) {
    switch handles[handle]?.role {
    case .participant(let room, let id):
      cancelPending(handle, because: "The PeerConnection has ended")
      unpublish(room, id, reason: reason)
    case .subscriber: closePeer(ofSubscriber: handle, reason: reason)
    default: return
    }
    proceed(handle)
  }

  private mutating func speak(_ call: CallID, _ numbers: Set<ParticipantNumber>) {
    guard call.text.hasPrefix(Room.callPrefix) else { return }
    let text = call.text.dropFirst(Room.callPrefix.utf8.count)
    let id =
      configuration.ids == .numbers ? UInt64(text).flatMap { PluginID(number: $0) } : PluginID(text: String(text))
    guard let id, let room = rooms[id], room.settings.tellsSpeakers else { return }
    rooms[id]?.speakers = numbers
    for participant in room.ordered
    where numbers.contains(participant.number) != room.speakers.contains(participant.number) {
      let isTalking = numbers.contains(participant.number)
      tell(
        room: id, except: nil,
        [
          "videoroom": isTalking ? "talking" : "stopped-talking", "room": id.tree, "id": participant.id.tree,
        ])
    }
  }
}
