import Contract
import MediaModel

/// Events of the server, and effects of the key agreement.
extension CallClient {
  /// How many requests of one call's key agreement may wait. Further ones fail immediately.
  static let requestLimit = 1_024
  /// How many members' devices may wait to be examined: as many as a call has.
  static let examinationLimit = 2_000
  /// How many rings' keys are kept.
  static let maximumRings = 32

  func receive(_ arrival: IncomingMessage) {
    switch arrival {
    case .event(let delivery): receive(delivery)
    case .state(let id, let result): take(result, of: id)
    }
  }

  private func receive(_ delivery: ReceivedEvent) {
    // After the event, which may be the state that makes a call rejoin: then there is nothing to catch up on.
    defer { if delivery.followsGap { for id in calls.keys { noteGap(in: id) } } }
    guard let id = delivery.message.call else {
      switch delivery.message.body {
      case .presence(let state): tell(.presence(Presence(state)))
      case .linkChanged(let change): linkChanged(change.link)
      case .linkWaiting(let waiting): tell(.somebodyWaits(link: waiting.link.text))
      case .pairing(let message): receive(message)
      case let body: if let news = RecordingEvent(body) { tell(.recording(news)) }
      }
      return acknowledge(delivery)
    }
    announceRing(delivery.message.body, of: id)
    if case .knockOver(let over) = delivery.message.body, over.user == identity.address.user {
      doors[id]?.yield(.over(over.outcome))
      return acknowledge(delivery)
    }
    route(delivery, to: id)
  }

  /// Passes an event to its call.
  func route(_ delivery: ReceivedEvent, to id: CallID) {
    guard let call = calls[id], !call.recovery.isRejoining else {
      guard isEntering(id), early.keep(delivery, of: id) else {
        calls[id]?.isCurrent = false
        return acknowledge(delivery)
      }
      return
    }
    if case .beginning(let keepsState) = call.phase {
      guard delivery.message.body.begins(call.session.participant) else {
        return pass(delivery, to: id, keepsState: keepsState)
      }
      call.phase = .present
    }
    if case .envelope(let envelope) = delivery.message.body {
      deliveries[delivery.seq] = delivery
      calls[id]?.deliveries.insert(delivery.seq)
      feed(.envelope(envelope, delivery: delivery.seq), to: id)
      return
    }
    apply(delivery.message.body, rev: delivery.message.rev, at: delivery.message.at, to: id)
    acknowledge(delivery)
  }

  func acknowledge(_ delivery: ReceivedEvent, accepted: Bool = true) {
    connection.acknowledge(delivery, accepted: accepted)
  }

  /// Events were lost. A rejoining call asks for them afterwards.
  private func noteGap(in id: CallID) {
    calls[id]?.isCurrent = false
    if !isComingBack(to: id) { catchUp(id) }
  }

  /// Requests the state that lost events would have reported.
  func catchUp(_ id: CallID) {
    guard let call = calls[id] else { return }
    askState(of: id)
    guard case .none = call.catchUp else { return call.catchUp = .askingAgain }
    call.catchUp = .asking
    Task { await askForLists(of: id) }
  }

  /// One request at a time, however many events are lost.
  private func askForLists(of id: CallID) async {
    guard let call = calls[id] else { return }
    defer { call.catchUp = .none }
    while true {
      call.catchUp = .asking
      let stay = call.keys.join.joinId
      let request = Request.inCall(id, .listKeys(ListKeys(since: call.keys.newestAccepted)))
      let list = try? await requestAgain(request, reply: KeyList.self)
      guard calls[id] === call else { return }
      if isGoingOn(id, call, stay) { feed(.list(list), to: id) }
      guard case .askingAgain = call.catchUp else { return }
    }
  }

  private func announceRing(_ body: EventBody, of id: CallID) {
    switch body {
    case .answeredElsewhere, .declinedElsewhere, .cancelled, .missed, .ended:
      rings[id] = nil
      rung[id] = nil
    default: break
    }
    if case .ended = body { ringers.forget(id) }
    switch body {
    case .ring(let ring):
      // A ring for a call that this device is in came late, and does not say who lets it in.
      if calls[id] == nil {
        if ringers[id] != ring.from { rings[id] = nil }
        ringers.note(ring.from, of: id)
      }
      if ring.envelope != nil, rings.count < Self.maximumRings {
        rings[id] = ring
        lookUp(ring)
      }
      if rung.count < Self.maximumRings { rung[id] = RungPeople(ring) }
      tell(
        .ring(
          IncomingCall(
            id: id.text, from: ring.from.text, media: CallSnapshot.Media(rawValue: ring.media.rawValue) ?? .video,
            members: ring.members.map(CallSnapshot.Member.init), isWaiting: ring.waiting,
            expiresAt: ring.expiresAt.milliseconds, metadata: ring.metadata?.bytes)))
    case .answeredElsewhere: tell(.ringStopped(call: id.text, .answeredElsewhere))
    case .declinedElsewhere: tell(.ringStopped(call: id.text, .declinedElsewhere))
    case .cancelled: tell(.ringStopped(call: id.text, .cancelled))
    case .missed: tell(.ringStopped(call: id.text, .missed))
    case .state(let state) where calls[id] == nil && joining[id] == nil:
      tell(.interrupted(CallSnapshot(state, speakers: [])))
    case .ended where calls[id] == nil: tell(.ringStopped(call: id.text, .cancelled))
    default: break
    }
  }

  func apply(_ body: EventBody, rev: UInt64? = nil, at time: Timestamp? = nil, to id: CallID) {
    guard let call = calls[id] else { return }
    let change = call.session.handle(body, rev: rev, at: time)
    switch change {
    case .none, .lost: break
    case .outdated: return feed(.stateFailed, to: id)
    case .members, .speakers:
      call.updates.yield(.changed)
    case .slots:
      assignSlots(of: id)
      call.updates.yield(.slots(call.session.slots.values.map(ReceivedTrack.init).sorted { $0.mid < $1.mid }))
    case .need: call.updates.yield(.need(audio: call.session.need?.audio ?? 0, video: call.session.need?.video ?? 0))
    case .gone(let cause): return call.isLeaving ? forget(id) : end(id, reason: cause.rawValue)
    case .ended: return end(id, reason: call.session.ended?.reason.rawValue ?? "")
    }
    noteRecording(body, in: call)
    switch body {
    case .rotate(let rotation): feed(.rotate(rotation), to: id)
    case .switchKeys(let change): feed(.switchKeys(epoch: change.epoch), to: id)
    case .keyRequest(let request): feed(.keyRequest(request), to: id)
    case .state(let state):
      calls[id]?.isCurrent = true
      if change != .lost { feed(.state(state), to: id) }
      recover(id, .state(call.session.standing))
    case .member, .members: take(CallSession.changes(in: body), of: id)
    case .devicesChanged(let change): examineDevices(of: change.user, id)
    case .confirmed(let confirmed): feed(.confirmed(confirmed), to: id)
    case .knock(let knock): feed(.knock(knock), to: id)
    case .knockOver(let over): feed(.knockOver(over.user), to: id)
    case .keyWaiting(let waiting): call.updates.yield(.keyWaiting(participant: waiting.participant))
    case .message(let message): receive(message, of: id)
    case .wanted(let wanted):
      guard let layers = call.session.layers(of: wanted) else { break }
      call.updates.yield(.wanted(track: wanted.track.description, layers: layers))
    case .quality(let quality): call.updates.yield(.quality(level: quality.level, bitrate: quality.bitrate))
    default: break
    }
    settleRecording(of: id)
  }

  /// Changes of members that the session has applied.
  private func take(_ changes: [MemberChange], of id: CallID) {
    guard !changes.isEmpty else { return }
    feed(.members(changes.map(\.member)), to: id)
    guard let session = calls[id]?.session, changes.contains(where: { session.isOwn($0.member) }) else { return }
    recover(id, .standing(session.standing))
  }

  /// The call is over for this device.
  func end(_ id: CallID, reason: String) {
    calls[id]?.updates.yield(.ended(reason: reason))
    forget(id)
  }

  func feed(_ input: KeyInput, to id: CallID) {
    guard let call = calls[id], !call.isLeaving else { return }
    perform(lend(to: call) { $0.handle(input, now: Self.now, using: &generator) }, of: id)
  }

  /// Lends a call's key agreement what this device knows about others. All calls share it, and none keeps a copy, because that would be copied again at
  /// each change.
  func lend<Result>(to call: Ongoing, _ body: (inout KeyAgreement) -> Result) -> Result {
    func exchange() {
      swap(&pins, &call.keys.known.pins)
      swap(&directory, &call.keys.known.directory)
    }
    exchange()
    defer { exchange() }
    return body(&call.keys)
  }

  func perform(_ effects: [KeyEffect], of id: CallID) {
    guard let call = calls[id] else { return }
    for effect in effects {
      switch effect {
      case .request(let request): run(request, of: id)
      case .askState: askState(of: id)
      case .acknowledge(let seq, let opened):
        calls[id]?.deliveries.remove(seq)
        if let delivery = deliveries.removeValue(forKey: seq) { acknowledge(delivery, accepted: opened) }
      case .drop(let seq):
        calls[id]?.deliveries.remove(seq)
        deliveries[seq] = nil
      case .install(let keys):
        call.cipher.install(keys)
        openWaiting(of: id)
      case .send(let key):
        call.cipher.send(key)
        call.updates.yield(.keyChanged(epoch: key.epoch))
      case .stopSending: call.cipher.stopSending()
      case .silence(let causes): call.updates.yield(.silence(causes))
      case .exclude(let fingerprint): call.cipher.exclude(fingerprint)
      case .retire(let epoch): call.cipher.retire(epoch)
      case .pin: note(effect)
      case .warn(let warning): tell(warning, in: call)
      case .code(let digits): call.updates.yield(.code(digits))
      case .confirmation(let state): call.updates.yield(.confirmation(state))
      case .letInByService(let isByService): call.updates.yield(.letInByService(isByService))
      case .waitingGuests(let guests): call.updates.yield(.guestsWaiting(guests))
      case .tilesChanged: call.updates.yield(.changed)
      case .rejoin:
        guard calls[id]?.hasBegunAnew == false else { continue }
        calls[id]?.hasBegunAnew = true
        recover(id, .historyBroken)
      case .refused(let refusal): call.updates.yield(.warning(refusal))
      }
    }
    settleRecording(of: id)
    scheduleTimer()
  }

  /// Sends a request of a key agreement and passes the reply to it.
  private func run(_ request: Request, of id: CallID) {
    guard let call = calls[id] else { return }
    guard call.requests < Self.requestLimit else {
      if let failure = KeyInput(failed: request) { feed(failure, to: id) }
      return
    }
    call.requests += 1
    let stay = call.keys.join.joinId
    Task { await carryOut(request, of: id, call, stay) }
  }

  /// Since the request was made, the call, the stay or the epoch may have ended. Nothing is posted then.
  private func carryOut(_ request: Request, of id: CallID, _ call: Ongoing, _ stay: Base64Bytes) async {
    defer { call.requests -= 1 }
    guard isGoingOn(id, call, stay) else { return }
    guard call.keys.isDue(request) else {
      if let failure = KeyInput(failed: request) { feed(failure, to: id) }
      return
    }
    func take(_ reply: KeyInput) { if isGoingOn(id, call, stay) { feed(reply, to: id) } }
    switch request {
    case .people(.listDevices):
      let reply = try? await requestAgain(request, reply: Devices.self)
      if let reply { learn(reply) }
      take(.directory(reply))
    case .calls(.inCall(_, .listKeys)):
      take(.list(try? await requestAgain(request, reply: KeyList.self)))
    case .calls(.inCall(_, .confirmKey(let confirmation))):
      let reply = try? await connection.request(request, reply: NoBody.self)
      take(.confirmationSent(epoch: confirmation.epoch, taken: reply != nil))
    case .calls(.inCall(_, .listConfirmations(let wanted))):
      let reply = try? await connection.request(request, reply: ConfirmationTags.self)
      take(.confirmations(epoch: wanted.epoch, bucket: wanted.bucket, reply))
    case .calls(.inCall(_, .keys(let handedOut))):
      take(.handedOut(epoch: handedOut.epoch, taken: await handOut(request)))
    default:
      try? await perform(request)
    }
  }

  /// Whether it is still the same call and stay: a reply to a previous one does not apply to the current one.
  private func isGoingOn(_ id: CallID, _ call: Ongoing, _ stay: Base64Bytes) -> Bool {
    calls[id] === call && !call.isLeaving && call.keys.join.joinId == stay
  }

  /// Whether the server accepted the envelopes; nil if it could not say.
  private func handOut(_ request: Request) async -> Bool? {
    do {
      _ = try await connection.request(request, reply: KeysDelivered.self)
      return true
    } catch {
      if case .refused = error { return false }
      return nil
    }
  }

  /// Wakes up when a call has something to forget, to request again or to retry.
  func scheduleTimer() {
    let dues = calls.values.flatMap {
      [$0.keys.nextTimeout, $0.recovery.nextTimeout, $0.leftovers?.due, $0.consent.nextTimeout]
    }
    // A timer that fires too early finds nothing to do and is set again, which is cheaper than a new timer at each
    // event.
    guard let due = dues.compactMap({ $0 }).min(), timer.map({ due < $0.due }) ?? true else { return }
    timer?.task.cancel()
    let task = Task {
      try? await Task.sleep(for: max(.zero, Self.now.duration(to: due)))
      if !Task.isCancelled { timeout() }
    }
    timer = (task, due)
  }

  private func timeout() {
    timer = nil
    for id in calls.keys {
      if let call = calls[id], !call.isLeaving { perform(lend(to: call) { $0.handleTimeout(now: Self.now) }, of: id) }
      if let action = calls[id]?.recovery.handleTimeout(now: Self.now) { carryOut(action, of: id) }
      forgetLeftovers(of: id)
    }
    scheduleTimer()
  }
}

extension KeyInput {
  /// The outcome of a request that was not made; nil if nothing waits for its reply.
  fileprivate init?(failed request: Request) {
    switch request {
    case .people(.listDevices): self = .directory(nil)
    case .calls(.inCall(_, .listKeys)): self = .list(nil)
    case .calls(.inCall(_, .confirmKey(let confirmation))):
      self = .confirmationSent(epoch: confirmation.epoch, taken: false)
    case .calls(.inCall(_, .listConfirmations(let wanted))):
      self = .confirmations(epoch: wanted.epoch, bucket: wanted.bucket, nil)
    case .calls(.inCall(_, .keys(let handedOut))): self = .handedOut(epoch: handedOut.epoch, taken: nil)
    default: return nil
    }
  }
}

extension EventBody {
  /// Whether it is the first event with this participant in it: the call's state, or the change by which it came.
  func begins(_ participant: ParticipantNumber) -> Bool {
    let members =
      if case .state(let state) = self { state.members } else { CallSession.changes(in: self).map(\.member) }
    return members.contains { $0.participants.contains { $0.participant == participant } }
  }
}
