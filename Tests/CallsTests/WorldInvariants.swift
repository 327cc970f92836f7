import Contract
import MediaModel

@testable import Calls

/// What has to hold after each step of a `SimulatedWorld`; the first thing that does not is kept in `failure`.
struct WorldInvariants {
  struct Snapshot {
    var members: [CallID: [UserID: MemberState]] = [:]
    var epochs: [CallID: (current: UInt32, newest: UInt32)] = [:]
    var initiators: [CallID: UserID] = [:]
  }

  private(set) var failure: String?
  private var last = Snapshot()
  /// The last number of each device on its wire.
  private var lastSeq: [Device: UInt64] = [:]
  /// What went out under each number.
  private var sent: [Device: [UInt64: EventName]] = [:]
  private var numbers: [CallID: Set<ParticipantNumber>] = [:]
  private(set) var counts: [EventName: Int] = [:]
  private(set) var causes: [MemberCause: Int] = [:]

  private mutating func require(_ holds: Bool, _ what: @autoclosure () -> String) {
    if !holds, failure == nil { failure = what() }
  }

  /// The calls that a command can have changed, so that not all are looked at each time; nil: any.
  private func touched(_ command: Calls.Command, _ calls: Calls) -> [CallID]? {
    func ofUser(_ session: SessionID) -> [CallID]? {
      calls.directory.device(of: session).map { calls.memberships[$0.user] ?? [] }
    }
    switch command {
    case .timeout, .disconnect: return nil
    case .connect(let session, _), .subscribe(let session, _, _), .unsubscribe(let session, _),
      .acknowledge(let session, _, _), .request(let session, _, _), .offer(let session, _, _, _, _):
      return ofUser(session)
    case .media(.connected(let peer)), .media(.disconnected(let peer, _)), .media(.quality(let peer, _, _)):
      return calls.peers[peer].map { [$0.call] }
    case .media, .answer, .drain: return []
    case .forget: return nil
    }
  }

  private func snapshot(_ calls: Calls, _ touched: [CallID]?) -> Snapshot {
    var snapshot = touched == nil ? Snapshot() : last
    for id in touched ?? Array(calls.calls.keys) {
      guard let call = calls.calls[id] else { continue }
      snapshot.members[id] = Dictionary(uniqueKeysWithValues: call.members.map { ($0.user, $0.state) })
      snapshot.epochs[id] = (call.epochs.current, call.epochs.newest.number)
      snapshot.initiators[id] = call.initiator
    }
    for id in snapshot.members.keys where calls.calls[id] == nil {
      snapshot.members[id] = nil
      snapshot.epochs[id] = nil
      snapshot.initiators[id] = nil
    }
    return snapshot
  }

  mutating func check(
    _ command: Calls.Command, _ effects: [Calls.Effect], _ calls: Calls, now: Timestamp,
    _ devices: [SimulatedWorld.SimulatedDevice]
  ) {
    let before = last
    let touched = touched(command, calls)
    let after = snapshot(calls, touched)
    last = after
    let changed = (touched ?? Array(calls.calls.keys)).filter { calls.calls[$0] != nil }
    require(calls.nextDeadline.map { $0 > now } ?? true, "a timer that is due was left")
    checkMembers(changed, command, before, calls)
    checkEpochs(changed, before, after, calls)
    checkEnd(command, before, after, effects, calls)
    for case .event(let session, let delivery) in effects {
      guard let device = devices.first(where: { $0.session == session })?.device else {
        require(false, "an event goes to a connection that is gone")
        return
      }
      checkNumber(delivery, device, devices)
      checkEntitled(delivery.message, device, before, after, calls)
    }
    checkAllWereTold(changed, before, after, effects, devices)
  }

  // MARK: the disk

  /// All that survives a restart is there, and nothing else.
  mutating func checkDisk(_ contents: Set<StoreChange>, _ calls: Calls) {
    let storable = calls.storable
    let missing = names(storable.subtracting(contents))
    let surplus = names(contents.subtracting(storable))
    require(contents == storable, "the disk lacks \(missing), has \(surplus)")
  }

  private func names(_ changes: Set<StoreChange>) -> String {
    changes.map { String(describing: Mirror(reflecting: $0).children.first?.label ?? "?") }.sorted().joined(
      separator: ",")
  }

  /// After a restart all is as it was, but nobody is there.
  mutating func checkRestored(_ calls: Calls, from old: Calls) {
    let before = snapshot(old, nil)
    last = snapshot(calls, nil)
    for (id, members) in before.members {
      let cutOff = members.mapValues { member in
        var member = member
        for place in member.participants.indices { member.participants[place].connected = false }
        return member
      }
      require(last.members[id] == cutOff, "a member is another after a restart")
      require(last.epochs[id].map { $0 == before.epochs[id]! } == true, "an epoch is another after a restart")
      require(
        old.calls[id]?.epochs.newest.listHash == calls.calls[id]?.epochs.newest.listHash,
        "a list is another after a restart")
      require(calls.calls[id]?.presentCount == old.calls[id]?.presentCount, "the count of those present is wrong")
    }
    require(Set(last.members.keys) == Set(before.members.keys), "a call is lost, or came back")
    for device in old.directory.devices {
      let envelopes = old.directory[device]?.mailbox.stored ?? StoredMailbox(envelopes: [], rung: [])
      let restored = calls.directory[device]?.mailbox.stored ?? StoredMailbox(envelopes: [], rung: [])
      require(restored == envelopes, "a mailbox is another")
    }
  }

  // MARK: members and rings

  private mutating func checkMembers(
    _ changed: [CallID], _ command: Calls.Command, _ before: Snapshot, _ calls: Calls
  ) {
    for id in changed {
      guard let call = calls.calls[id] else { continue }
      var ringing = 0
      for member in call.members {
        let state = member.state
        let most = state.state == .joined ? 2 : member.isPresent ? 1 : 0
        require(
          (min(most, 1)...most).contains(state.participants.count), "\(state.state) has other participants")
        require(Set(state.participants.map(\.device)).count == state.participants.count, "a device is there twice")
        // Nothing else can hold or begin one.
        if case .request = command { checkHolds(member, calls) }
        ringing += state.state == .ringing ? 1 : 0
        let old = before.members[id]?[member.user]
        if old?.state == .ringing {
          require(
            [.ringing, .joined, .declined, .missed, .cancelled].contains(state.state), "a ring ended in \(state.state)")
        }
        let known = old?.participants.map(\.participant) ?? []
        for number in state.participants.map(\.participant) where !known.contains(number) {
          require(numbers[id, default: []].insert(number).inserted, "participant \(number) was used before")
        }
      }
      require(call.ringingCount == ringing, "the count of rings is wrong")
      require(call.presentCount == call.members.count(where: \.isPresent), "the count of those present is wrong")
      require(call.presentCount > 0 || call.awaitsFirst, "nobody is in a call that goes on")
      require(calls.timers.count(of: id) > 0, "a call has no timer")
    }
  }

  /// Of the calls that a device is in all but one are held.
  private mutating func checkHolds(_ member: Member, _ calls: Calls) {
    guard member.isJoined else { return }
    for participant in member.participants where !participant.isHeld {
      let unheld = (calls.memberships[member.user] ?? []).count { id in
        (try? calls.calls[id]?.participant(of: participant.device))?.isHeld == false
      }
      require(unheld == 1, "a device speaks in \(unheld) calls")
    }
  }

  private mutating func checkEnd(
    _ command: Calls.Command, _ before: Snapshot, _ after: Snapshot, _ effects: [Calls.Effect], _ calls: Calls
  ) {
    if case .request(let session, _, .end(let id)) = command, let initiator = before.initiators[id] {
      let isInitiator = calls.directory.device(of: session)?.user == initiator
      require(isInitiator == (after.members[id] == nil) || isInitiator, "somebody else ended the call")
      for case .reply(session, _, .ok) in effects { require(isInitiator, "somebody else may end the call") }
    }
    for id in before.members.keys where after.members[id] == nil {
      require(calls.timers.count(of: id) == 0, "a timer is left after the end")
      require(!calls.memberships.values.contains { $0.contains(id) }, "a member is left after the end")
    }
  }

  // MARK: epochs

  private mutating func checkEpochs(_ changed: [CallID], _ before: Snapshot, _ after: Snapshot, _ calls: Calls) {
    for id in changed {
      guard let call = calls.calls[id] else { continue }
      let epochs = call.epochs
      require(epochs.current <= epochs.newest.number, "an epoch is in use before it was announced")
      guard let old = before.epochs[id] else { continue }
      require(old.current <= epochs.current && old.newest <= epochs.newest.number, "an epoch went back")
      guard old.newest != epochs.newest.number else { continue }
      for entry in epochs.newest.list {
        let joined = [before.members[id], after.members[id]].contains { members in
          guard let member = members?[entry.user], member.state == .joined else { return false }
          return member.participants.contains { $0.device == entry.device && $0.joinId == entry.joinId }
        }
        require(joined, "a list holds a device that has not joined")
      }
    }
  }

  /// All is quiet: each call is in its newest epoch, and its list is who is there.
  mutating func checkSettled(_ calls: Calls) {
    for call in calls.calls.values {
      require(call.epochs.pending == nil, "an epoch is still called for")
      require(call.epochs.current == call.epochs.newest.number, "the newest epoch was not switched to")
      let seats = call.epochs.seats.keys.sorted()
      if call.epochs.newest.number > 1 {
        require(call.epochs.newest.list.map(\.address) == seats, "the list is not who is there")
      }
      require(call.epochs.unopened.isEmpty, "an envelope was not opened")
      require(call.members.allSatisfy { $0.arriving == nil }, "a transfer goes on for ever")
    }
  }

  mutating func checkEmpty(_ calls: Calls) {
    require(calls.calls.isEmpty, "a call is left")
    require(calls.timers.count == 0 && calls.nextDeadline == nil, "a timer is left")
    require(calls.peers.isEmpty && calls.starts.isEmpty && calls.memberships.isEmpty, "a call's traces are left")
    for device in sent.keys {
      for event in calls.directory[device]?.mailbox.kept ?? [] {
        require(
          !event.body.isEnvelope && !event.body.isForParticipants && !event.body.isRing, "a \(event.body.name) is left")
      }
    }
  }

  // MARK: events

  private mutating func checkNumber(
    _ delivery: EventDelivery, _ device: Device, _ devices: [SimulatedWorld.SimulatedDevice]
  ) {
    let name = delivery.message.body.name
    counts[name, default: 0] += 1
    if case .member(let change) = delivery.message.body { causes[change.cause, default: 0] += 1 }
    if delivery.redelivered {
      require(sent[device]?[delivery.seq] == name, "a repeated event is another one")
      require(name != .speakers && name != .callState, "\(name) was kept")
    } else {
      require(delivery.seq > lastSeq[device] ?? 0, "seq went back")
      lastSeq[device] = delivery.seq
      sent[device, default: [:]][delivery.seq] = name
    }
  }

  private mutating func checkEntitled(
    _ event: EventMessage, _ device: Device, _ before: Snapshot, _ after: Snapshot, _ calls: Calls
  ) {
    // `WatcherInvariants` looks at it.
    if case .presence = event.body { return }
    guard let id = event.call else { return require(false, "an event is about no call") }
    let states = [before, after].compactMap { $0.members[id]?[device.user] }
    let isParticipant = states.contains { state in
      state.state == .joined && state.participants.contains { $0.device == device.device }
    }
    switch event.body {
    case .ring: require(states.contains { $0.state == .ringing }, "a ring after its end")
    case .state:
      require(
        states.contains { $0.participants.contains { $0.device == device.device } }, "the state for a stranger")
    case .envelope(let envelope):
      require(isParticipant && envelope.to == device, "an envelope for a stranger")
      require(
        envelope.epoch == after.epochs[id]?.newest || envelope.epoch == before.epochs[id]?.newest, "an old envelope")
    case .speakers(let speakers):
      let heard = calls.calls[id]?.members.filter(\.isJoined).flatMap(\.participants).filter { !$0.isHeld } ?? []
      require(isParticipant, "speakers for a device that is no participant")
      require(Set(speakers.participants).isSubset(of: heard.map(\.number)), "somebody speaks who is held or gone")
    case .trackAdded, .trackUpdated, .trackRemoved, .rotate, .switchKeys, .keyRequest, .slots, .need,
      .quality, .message:
      require(isParticipant, "\(event.body.name) for a device that is no participant")
    case .member, .ended, .answeredElsewhere, .declinedElsewhere, .cancelled, .missed, .devicesChanged:
      require(!states.isEmpty || calls.ended.wasMember(device.user, of: id), "\(event.body.name) for a stranger")
    case .presence, .pushRing, .pushCancel, .report: require(false, "\(event.body.name) is about no call of a device")
    }
  }

  /// Who reads hears at once of each member whose state changed, of the end, and of each epoch it is on the list of.
  private mutating func checkAllWereTold(
    _ changed: [CallID], _ before: Snapshot, _ after: Snapshot, _ effects: [Calls.Effect],
    _ devices: [SimulatedWorld.SimulatedDevice]
  ) {
    let moved = changed.compactMap { id -> (id: CallID, users: [UserID])? in
      guard let old = before.members[id], let new = after.members[id] else { return nil }
      let users = new.filter { hasMoved(old[$0.key], $0.value) }.map(\.key)
      return users.isEmpty && before.epochs[id]?.newest == after.epochs[id]?.newest ? nil : (id, users)
    }
    let gone = before.members.keys.filter { after.members[$0] == nil }
    guard !moved.isEmpty || !gone.isEmpty else { return }
    var heard: [SessionID: [EventMessage]] = [:]
    for case .event(let session, let delivery) in effects { heard[session, default: []].append(delivery.message) }
    for device in devices where device.isSubscribed {
      let events = device.session.flatMap { heard[$0] } ?? []
      for id in gone where before.members[id]?[device.device.user] != nil {
        require(events.contains { $0.call == id && $0.body.name == .callEnded }, "the end was not told")
      }
      for (id, users) in moved {
        checkWasTold(id, of: users, events.filter { $0.call == id }, device, before, after)
      }
    }
  }

  private mutating func checkWasTold(
    _ id: CallID, of users: [UserID], _ events: [EventMessage], _ device: SimulatedWorld.SimulatedDevice,
    _ before: Snapshot, _ after: Snapshot
  ) {
    guard let me = after.members[id]?[device.device.user], before.members[id]?[device.device.user] != nil,
      [.ringing, .joined, .disconnected].contains(me.state)
    else { return }
    for user in users {
      let isTold = events.contains { event in
        if case .member(let change) = event.body { change.member.user == user } else { false }
      }
      require(isTold, "a member's change was not told")
    }
    if after.epochs[id]?.newest != before.epochs[id]?.newest, me.state == .joined,
      me.participants.contains(where: { $0.device == device.device.device }), device.hasKeys
    {
      require(events.contains { $0.body.name == .keysRotate }, "an epoch was not told")
    }
  }

  private func hasMoved(_ old: MemberState?, _ new: MemberState) -> Bool {
    func withoutTracks(_ state: MemberState?) -> MemberState? {
      var state = state
      for place in (state?.participants ?? []).indices { state?.participants[place].tracks = [] }
      return state
    }
    return withoutTracks(old) != withoutTracks(new)
  }
}
