package import CallMessages
package import Contract
package import MediaModel

/// The state machine of calls: running calls by id, and what is kept of those that ended.
///
/// A message becomes a transition of one `Call`, whose `Outputs` are then carried out here: news goes to the people's side, commands to the media plane,
/// timers to `Timers`.
package struct CallControl {
  package var configuration: CallConfiguration
  let hashing: Hashing
  let random: () -> UInt64
  var calls: [CallID: Call] = [:]
  var peers: [PeerID: (call: CallID, user: UserID)] = [:]
  /// Running calls, by what started them (rule 14).
  var starts: [JoinToken: CallID] = [:]
  var ended: EndedCalls
  var timers = Timers()
  /// The server is about to stop.
  var isDraining = false
  package var journal = Journal()
  var now = Timestamp(milliseconds: 0)
  package var out = MachineOutput<ToPeople>()
  private let incarnation: Incarnation
  private var lastPeer: UInt64 = 0

  /// The stored state that may have changed since changes were last taken.
  package struct Journal {
    var calls: Set<CallID> = []
    /// Changes that cannot be derived later: of ended calls and of forgotten members.
    var changes: [StoreChange] = []
  }

  package init(
    configuration: CallConfiguration, incarnation: Incarnation, hashing: Hashing, random: @escaping () -> UInt64
  ) {
    self.configuration = configuration
    self.incarnation = incarnation
    self.hashing = hashing
    self.random = random
    ended = EndedCalls(capacity: configuration.maximumEndedCalls)
  }

  package mutating func handle(_ message: ToCalls, now time: Timestamp) {
    now = max(now, time)
    switch message {
    case .request(let request): respond(to: request)
    case .offer(let session, let id, let identity, let call, let offer, let tracks):
      take(offer.result, tracks, of: call, identity, session: session, id: id)
    case .history(let session, let id, let device, let calls, let body):
      out.messages.append(.history(session, id: id, history(body, of: device, in: calls)))
    case .greet(let session, let device, let id): greet(session, device, in: id)
    case .readTopic(let session, let user, let id): out.messages.append(.topic(session, id, topic(of: id, for: user)))
    case .signaling(let device, let isUp, let id):
      change(id) { call, now, out in call.signaling(of: device, isUp: isUp, now: now, out: &out) }
    case .hold(let device, let turn, let id):
      change(id) { call, _, out in call.holdUnlessHeld(device, since: turn, out: &out) }
    case .acknowledged(let device, let epoch, let accepted, let id):
      change(id) { call, now, out in
        call.acknowledge(device, epoch: epoch, accepted: accepted, now: now, out: &out)
      }
    case .ringAcknowledged(let device, let id): change(id) { call, _, _ in call.ringAcknowledged(device) }
    case .pushed(let user, let id):
      guard calls[id] != nil else { return tell(.pushOver(user), of: id) }
      change(id) { call, _, out in call.pushed(user, out: &out) }
    case .devicesChanged(let user, let id): change(id) { call, _, out in call.devicesChanged(user, out: &out) }
    case .voidLinks(_, let id): change(id) { call, now, out in call.closeLinks(now: now, out: &out) }
    case .remove(let leaver, let id): remove(leaver, from: id)
    case .forget(let user):
      ended.forget(user)
      for id in calls.keys where calls[id]?.silenced.names[user] != nil {
        // A member is removed from each call by a letter of its own.
        guard calls[id]?.member(user) == nil else {
          calls[id]?.silenced.forget(user)
          continue
        }
        calls[id]?.forget(user)
        journal.calls.insert(id)
      }
    }
  }

  /// Fires the timer that has been due the longest. Returns false when none is due.
  package mutating func handleTimeout(now time: Timestamp) -> Bool {
    now = max(now, time)
    guard let key = timers.popDue(at: now) else { return false }
    change(key.call) { call, now, out in call.handleTimeout(key.timer, now: now, out: &out) }
    return true
  }

  package var nextDeadline: Timestamp? { timers.next }

  package mutating func drain() { isDraining = true }

  /// The operator ends the call.
  package mutating func end(_ id: CallID, now time: Timestamp) {
    now = max(now, time)
    change(id) { call, now, out in call.endFromOutside(.endedByOperator, now: now, out: &out) }
  }

  package mutating func stopRecording(
    _ recording: RecordingID, of id: CallID, _ reason: RecordingStopped.Reason, now time: Timestamp
  ) {
    now = max(now, time)
    change(id) { call, now, out in
      if call.recording?.id == recording { call.endRecording(reason, now: now, out: &out) }
    }
  }

  package mutating func countFailures(_ count: Int, in id: CallID, now time: Timestamp) {
    now = max(now, time)
    change(id) { call, _, _ in call.failures += count }
  }

  /// Runs a transition in place, because a copy of the call would copy all its members.
  mutating func change(_ id: CallID, _ transition: (inout Call, Timestamp, inout Outputs) -> Void) {
    guard calls[id] != nil else { return }
    var outputs = Outputs()
    transition(&calls[id]!, now, &outputs)
    carryOut(outputs, of: id)
  }

  mutating func makePeer() -> PeerID {
    lastPeer &+= 1
    return PeerID(lastPeer, of: incarnation)
  }

  // MARK: what the people's side asks

  private mutating func greet(_ session: SessionID, _ device: Device, in id: CallID) {
    let call = calls[id]
    let isIn = call?.member(device.user)?.participant(on: device) != nil
    out.messages.append(.greeting(session, id, state: isIn ? call?.state : nil, ring: call?.ring(for: device)))
  }

  private func topic(of id: CallID, for user: UserID) -> ToPeople.TopicAnswer {
    if calls[id]?.member(user)?.isListening == true { return .listener }
    guard let event = ended.end(of: id, for: user), case .ended(let end) = event.body else { return .stranger }
    return .over(end, at: event.at)
  }

  private mutating func remove(_ leaver: Leaver, from id: CallID) {
    switch leaver {
    case .device(let device): change(id) { call, now, out in call.remove(device, now: now, out: &out) }
    case .user(let user):
      change(id) { call, now, out in call.dismiss(user, now: now, out: &out) }
      // `forget` may have come before the call's end.
      if calls[id] == nil { ended.forget(user) }
      if calls[id]?.member(user) != nil {
        calls[id]?.forget(user)
        journal.changes.append(.memberGone(id, user))
      }
    }
    out.messages.append(.removed(leaver, from: id))
  }

  // MARK: carrying out

  mutating func carryOut(_ outputs: Outputs, of id: CallID) {
    journal.calls.insert(id)
    // The end removes the listeners, so they are told what waited before it.
    if calls[id]?.isEnded == true, let listeners = outputs.formerListeners { tellChanges(of: id, to: listeners) }
    for item in outputs.items { carryOut(item, of: id) }
    // After the transition, because it may have announced an epoch.
    for change in calls[id]?.takeRecorded() ?? [] { out.effects.append(.recorded(change)) }
  }

  private mutating func carryOut(_ item: Outputs.Item, of id: CallID) {
    switch item {
    case .tell(let news):
      if case .event(_, let body) = news, body.followsChanges { tellChanges(of: id) }
      tell(news, of: id)
    case .ring(let users): ring(users, id)
    case .made: tellOfNewCall(id)
    case .changed(let change): wait(change, of: id)
    case .changesDue(let listeners): tellChanges(of: id, to: listeners)
    case .listens(let user, let isListening): listens(user, isListening, in: id)
    case .memberMoved(let user):
      if let part = calls[id]?.part(of: user) { tell(.member(user, part), of: id) }
    case .peerAdded(let peer, let user): peers[peer] = (id, user)
    case .peerGone(let peer):
      if peers.removeValue(forKey: peer) != nil { out.effects.append(.media(.remove(peer))) }
    case .media(let command): out.effects.append(.media(command))
    case .keyless(let participant, let state): out.effects.append(.keyless(id, participant, state))
    case .measured(let numbers): out.effects.append(.measured(numbers))
    case .recorded(let change): out.effects.append(.recorded(change))
    case .setTimer(let timer, let due):
      timers.set(timer, of: id, at: due)
      note(timer, due, of: id)
    case .cancelTimer(let timer):
      timers.cancel(timer, of: id)
      note(timer, nil, of: id)
    case .ended(let ended): end(id, ended)
    }
  }

  /// A change of the call's state gets the next revision. A state includes all changes that were announced before it, so it gets
  /// the newest.
  mutating func tell(_ news: CallNews, of id: CallID) {
    switch news {
    case .event(_, let body) where body.changesState:
      calls[id]?.revision += 1
      out.messages.append(.news(news, of: id, rev: calls[id]?.revision))
    case .event(let audience, .state(var state)):
      state.rev = calls[id]?.revision
      out.messages.append(.news(.event(audience, .state(state)), of: id, rev: nil))
    default: out.messages.append(.news(news, of: id, rev: nil))
    }
  }

  private mutating func tellOfNewCall(_ id: CallID) {
    guard var state = calls[id]?.start.reply?.call else { return }
    state.metadata = nil
    tell(.made(state), of: id)
  }

  private mutating func ring(_ users: [UserID], _ id: CallID) {
    guard !users.isEmpty, let call = calls[id] else { return }
    let members = call.members.map(\.state)
    let rings = users.compactMap { user in
      call.ring(of: user, members: members).map { MemberRing(user: user, ring: $0) }
    }
    let rung = Set(users)
    let envelopes = call.epochs.ringEnvelopes.filter { rung.contains($0.key.user) }
    let topic = users.lazy.compactMap { call.topicRing(of: $0, members: members) }.first
    tell(
      .ring(rings, envelopes: envelopes, list: envelopes.isEmpty ? [] : call.epochs.newest.list, topic: topic), of: id)
  }

  private mutating func end(_ id: CallID, _ end: Ended) {
    guard var call = calls.removeValue(forKey: id) else { return }
    close(&call, end)
    timers.cancelAll(of: id)
    starts[call.start.token] = nil
    tell(.over(call.members.map(\.user)), of: id)
    if let reply = call.start.reply {
      ended.add(call, end: EventMessage(at: now, call: id, body: .ended(end)), reply: reply)
    }
  }
}
