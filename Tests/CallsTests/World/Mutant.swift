@testable import PeopleMachine
@testable import CallMachine
import Contract
import MediaModel
import Seeded
import Simulation

import CallMessages
@testable import Calls

/// Sits between the server and the invariants, and sometimes breaks one rule.
struct Mutant {
  let mutation: Mutation
  var random: SeededGenerator
  /// An envelope that its device has acknowledged.
  private var opened: (device: Device, delivery: EventDelivery)?
  private var sent: [Device: [UInt64: EventDelivery]] = [:]

  init(mutation: Mutation, random: SeededGenerator) {
    self.mutation = mutation
    self.random = random
  }

  mutating func change(
    _ effects: inout [CallMessages.Effect], _ node: inout Node, _ world: SimulatedWorld, _ command: NodeCommand
  ) {
    note(effects, world, command)
    if mutation == .startsWhileDraining { node.control.isDraining = false }
    guard random.chance(30) else { return }
    switch mutation {
    case .dropsEvent, .sendsToAnother, .swapsEvents, .repeatsEvent, .losesStatesOfMembers: changeEvents(&effects, world)
    case .resurrectsEnvelope, .forgesSender, .envelopeForUnlisted, .namesAnotherLeader, .takesSecondAnswer,
      .breaksChain, .forgesConfirmation, .keepsOldJoinKey:
      changeKeys(&effects, world, node, command)
    case .forgetsStoreChange, .forgetsEpoch, .wrongOutcome, .forgetsStay: changeStores(&effects)
    case .losesUnacknowledged, .greetsWithoutState, .hidesPresence, .dropsPublication, .dropsWebhook, .swapsWebhooks:
      drop(from: &effects, command)
    case .lowersEpoch, .makesTwoLists, .listsAbsent, .letsOneBlock, .keepsEnvelope, .beginsTwoEpochs, .stopsTimers:
      changeEpochs(&node, world, command)
    case .keepsRevision:
      for id in node.control.calls.keys where node.control.calls[id]!.revision > 0 {
        node.control.calls[id]!.revision -= 1
      }
    case .dropsWaiting, .skipsListener, .tellsWaitingAgain, .reordersWaiting, .waitsOn: changeWaiting(&node)
    case .storesTooEarly, .storesOn: changeRecordings(&effects)
    case .letsStrangerEnd: letStrangerEnd(&effects, &node, command)
    case .keepsTimer, .keepsMembership: keepAfterEnd(&node, effects)
    default: changeMembers(&node, command, effects, world)
    }
  }

  /// The contents read from the disk, at a restart.
  mutating func change(_ stored: inout Stored) {
    switch mutation {
    case .dropsEnvelopeAtRestart:
      for device in stored.mailboxes.keys { stored.mailboxes[device]?.envelopes = [] }
    case .keepsNumbersAtRestart: stored.boots = 0
    case .losesEpochAtRestart:
      for place in stored.calls.indices where stored.calls[place].epoch.number > 2 {
        stored.calls[place].epoch.number -= 1
        stored.calls[place].epochLinks.removeLast()
      }
    case .losesMemberAtRestart: if !stored.calls.isEmpty { stored.calls[0].members.removeLast() }
    default: break
    }
  }

  /// The command that the mutant executes.
  func heard(_ command: NodeCommand, _ world: SimulatedWorld) -> NodeCommand {
    guard mutation == .ignoresAnswer, case .answer(let id, _) = command else { return command }
    return .answer(id, allowed: Set(world.devices.map(\.device.user)))
  }

  /// The network fault for the next message.
  mutating func fault() -> Mutation? {
    mutation.isOfMail && mutation != .takesRepeats && random.chance(5) ? mutation : nil
  }

  // MARK: recordings

  /// Stores frames before their key was exported, or goes on after a withdrawal.
  private func changeRecordings(_ effects: inout [CallMessages.Effect]) {
    for place in effects.indices.reversed() {
      guard case .recorded(.keeps(var peer)) = effects[place] else { continue }
      if mutation == .storesTooEarly {
        peer.keys.formUnion(peer.awaited)
        effects[place] = .recorded(.keeps(peer))
      } else if peer.keys.isEmpty {
        effects.remove(at: place)
      }
    }
  }

  // MARK: events

  /// Omits events, or sends them in the wrong order.
  private mutating func drop(from effects: inout [CallMessages.Effect], _ command: NodeCommand) {
    let greets = if case .subscribe(_, .events, _) = command { true } else { false }
    let places = effects.indices.filter { place in
      switch (mutation, effects[place]) {
      case (.losesUnacknowledged, .client(.event(_, let delivery))): delivery.redelivered
      case (.greetsWithoutState, .client(.event(_, let delivery))): greets && delivery.message.body.name == .callState
      case (.hidesPresence, .client(.event(_, let delivery))): delivery.message.body.name == .presence
      case (.dropsPublication, .client(.publish(_, .call, _, _))): true
      case (.dropsWebhook, .webhook), (.swapsWebhooks, .webhook): true
      default: false
      }
    }
    guard let place = places.randomElement(using: &random) else { return }
    guard mutation == .swapsWebhooks else {
      effects.remove(at: place)
      return
    }
    if let next = places.first(where: { $0 > place }) { effects.swapAt(place, next) }
  }

  private mutating func changeEvents(_ effects: inout [CallMessages.Effect], _ world: SimulatedWorld) {
    let places = effects.indices.filter { Mutant.isCallEvent(effects[$0]) }
    guard let place = places.randomElement(using: &random),
      case .client(.event(let session, let delivery)) = effects[place]
    else { return }
    switch mutation {
    case .dropsEvent: effects.remove(at: place)
    case .losesStatesOfMembers:
      effects.removeAll {
        if case .client(.event(_, let event)) = $0 { event.message.body.name == .callMember } else { false }
      }
    case .repeatsEvent: effects.insert(effects[place], at: place)
    case .sendsToAnother:
      let user = world.places[session].map { world.devices[$0].device.user }
      let others = world.places.filter {
        world.devices[$0.value].device.user != user && world.isMember(of: delivery, $0.value) == false
      }
      if let other = others.keys.sorted(by: { $0.rawValue < $1.rawValue }).first {
        effects.insert(.client(.event(other, delivery)), at: place)
      }
    default:
      let next = places.first { other in
        if other > place, case .client(.event(session, _)) = effects[other] { true } else { false }
      }
      if let next { effects.swapAt(place, next) }
    }
  }

  private static func isCallEvent(_ effect: CallMessages.Effect) -> Bool {
    guard case .client(.event(_, let delivery)) = effect else { return false }
    return delivery.message.call != nil
  }

  // MARK: keys

  private mutating func note(_ effects: [CallMessages.Effect], _ world: SimulatedWorld, _ command: NodeCommand) {
    for case .client(.event(let session, let delivery)) in effects where delivery.message.body.isEnvelope {
      if let place = world.places[session] { sent[world.devices[place].device, default: [:]][delivery.seq] = delivery }
    }
    if case .acknowledge(let session, let seqs, true) = command, let seq = seqs.last, let place = world.places[session],
      let delivery = sent[world.devices[place].device]?[seq]
    {
      opened = (world.devices[place].device, delivery)
    }
  }

  private mutating func changeKeys(
    _ effects: inout [CallMessages.Effect], _ world: SimulatedWorld, _ node: Node, _ command: NodeCommand
  ) {
    switch (mutation, command) {
    case (.resurrectsEnvelope, .subscribe(let session, .events, _)):
      guard let (device, old) = opened, let place = world.places[session], world.devices[place].device == device else {
        return
      }
      var again = old
      again.redelivered = true
      effects.append(.client(.event(session, again)))
    case (.takesSecondAnswer, .request(_, let id, .calls(.inCall(_, .keys)))):
      for place in effects.indices {
        if case .client(.reply(let session, id, .failed(let error))) = effects[place], error.code == .keysEpochStale {
          effects[place] = .client(.reply(session, id: id, .ok(.keys(KeysDelivered(delivered: [], missing: [])))))
        }
      }
    default:
      for place in effects.indices {
        guard case .client(.event(let session, var delivery)) = effects[place], !delivery.redelivered else { continue }
        if case .envelope(var envelope) = delivery.message.body {
          if mutation == .forgesSender { envelope.from = envelope.to }
          if mutation == .envelopeForUnlisted {
            envelope.to = Device(user: envelope.to.user, device: DeviceID(unchecked: "ghost"))
          }
          delivery.message.body = .envelope(envelope)
        } else {
          mutate(&delivery.message.body)
        }
        effects[place] = .client(.event(session, delivery))
      }
    }
  }

  private func mutate(_ body: inout EventBody) {
    switch (mutation, body) {
    case (.namesAnotherLeader, .rotate(var rotate)):
      guard rotate.deliver != nil else { return }
      rotate.leader += 1
      body = .rotate(rotate)
    case (.breaksChain, .rotate(var rotate)):
      rotate.previous = rotate.listHash
      body = .rotate(rotate)
    case (.keepsOldJoinKey, .rotate(var rotate)):
      for place in rotate.deliver?.indices ?? 0..<0 { rotate.deliver?[place].refresh = nil }
      body = .rotate(rotate)
    case (.forgesConfirmation, .confirmed(var confirmed)):
      confirmed.buckets[0].tag.bytes[3] ^= 1
      body = .confirmed(confirmed)
    default: break
    }
  }

  private mutating func changeEpochs(_ node: inout Node, _ world: SimulatedWorld, _ command: NodeCommand) {
    guard let id = node.control.calls.keys.sorted().randomElement(using: &random), let call = node.control.calls[id]
    else { return }
    let epoch = call.epochs.newest
    func replaced(_ entries: [ListEntry]) -> AnnouncedEpoch {
      AnnouncedEpoch(
        number: epoch.number, mode: epoch.mode, call: id, previous: epoch.previous, entries: entries,
        digest: node.control.hashing.digest)
    }
    switch mutation {
    case .lowersEpoch: if call.epochs.current > 1 { node.control.calls[id]?.epochs.current -= 1 }
    case .makesTwoLists:
      if epoch.list.count > 1 { node.control.calls[id]?.epochs.newest = replaced(Array(epoch.list.dropLast())) }
    case .listsAbsent:
      guard var entry = epoch.list.first else { return }
      entry.device = DeviceID(unchecked: "ghost")
      node.control.calls[id]?.epochs.newest = replaced(epoch.list + [entry])
    case .beginsTwoEpochs:
      // It has waited since an earlier step.
      guard case .spreading = call.epochs.phase else { return }
      if case .request(_, _, .calls(.inCall(_, .keys))) = command { return }
      node.control.calls[id]?.epochs.phase = .settled
      node.control.calls[id]?.epochs.newest = AnnouncedEpoch(
        number: epoch.number + 1, mode: .fresh, call: id, previous: epoch.listHash, entries: epoch.list,
        digest: node.control.hashing.digest)
    case .stopsTimers: node.control.timers.cancelAll(of: id)
    case .letsOneBlock:
      if case .spreading = call.epochs.phase {
        node.control.timers.set(.spread, of: id, at: node.control.now + .seconds(20))
      }
    default:
      guard let (device, old) = opened, node.people.directory[device] != nil else { return }
      let message = Message(
        id: Message.unshared, event: EventMessage(at: Stage.start, call: old.message.call, body: old.message.body))
      if old.message.call.flatMap({ node.control.calls[$0]?.epochs.newest.number }) != epoch.number {
        let limits = node.people.mailboxLimits
        let now = node.control.now
        _ = node.people.directory[device]?.mailbox.keep(message, limits: limits, now: now)
      }
    }
  }

  // MARK: what waits

  private mutating func changeWaiting(_ node: inout Node) {
    let waiting = node.control.calls.filter { !$0.value.waiting.isEmpty }
    guard let id = waiting.keys.sorted().randomElement(using: &random), var call = waiting[id] else { return }
    switch mutation {
    case .dropsWaiting: call.waiting = WaitingChanges()
    case .skipsListener: if let user = call.listeners.randomElement(using: &random) { call.waiting.skip(user) }
    // Devices that were told a part are told it again.
    case .tellsWaitingAgain: call.waiting = waits(call.waiting.takeAll().changes)
    case .reordersWaiting: call.waiting = waits(call.waiting.takeAll().changes.reversed())
    default: node.control.timers.set(.members, of: id, at: node.control.now + .milliseconds(400))
    }
    node.control.calls[id] = call
  }

  private func waits(_ changes: [MemberChange]) -> WaitingChanges {
    var waiting = WaitingChanges()
    for change in changes { waiting.add(change) }
    return waiting
  }

  // MARK: the disk

  private mutating func changeStores(_ effects: inout [CallMessages.Effect]) {
    let places = effects.indices.filter {
      switch (mutation, effects[$0]) {
      case (.forgetsStoreChange, .store), (.forgetsEpoch, .store(.epoch)): true
      case (.wrongOutcome, .store(.history(.part(_, _, _, _, .some)))): true
      case (.forgetsStay, .store(.history(.went))): true
      default: false
      }
    }
    guard let place = places.randomElement(using: &random) else { return }
    if mutation == .wrongOutcome,
      case .store(.history(.part(let id, let user, let name, let direction, let outcome))) = effects[place]
    {
      let other: HistoryEntry.Outcome = outcome == .missed ? .declined : .missed
      effects[place] = .store(.history(.part(id, user, name: name, direction, other)))
    } else {
      effects.remove(at: place)
    }
  }

  // MARK: members

  private func letStrangerEnd(_ effects: inout [CallMessages.Effect], _ node: inout Node, _ command: NodeCommand) {
    guard case .request(let session, let request, .calls(.call(let id, .end))) = command, node.control.calls[id] != nil,
      effects.contains(where: { if case .client(.reply(session, request, .failed)) = $0 { true } else { false } })
    else { return }
    var out = Outputs()
    node.control.calls[id]?.endFromOutside(.endedByService, now: node.control.now, out: &out)
    node.control.carryOut(out, of: id)
    effects = [.client(.reply(session, id: request, .ok(.nothing)))] + node.handle(.timeout, now: node.control.now)
  }

  private func keepAfterEnd(_ node: inout Node, _ effects: [CallMessages.Effect]) {
    for case .store(.ended(let end)) in effects {
      if mutation == .keepsTimer {
        node.control.timers.set(.expiry, of: end.call, at: node.control.now + .seconds(600))
      } else if let user = end.users.first {
        node.people.memberships[user, default: []].append(
          Membership(call: end.call, part: Membership.Part(phase: .away, devices: [])))
      }
    }
  }

  private mutating func changeMembers(
    _ node: inout Node, _ command: NodeCommand, _ effects: [CallMessages.Effect], _ world: SimulatedWorld
  ) {
    guard let (id, user) = world.asked(by: command), let call = node.control.calls[id] else { return }
    var out = Outputs()
    func guest(_ user: UserID, number: ParticipantNumber) -> Participant {
      let device = Device(user: user, device: DeviceID(unchecked: "second"))
      let joiner = Joiner(
        device: device, name: nil, joinId: joinId(77), joinKey: nil, keys: nil, peer: PeerID(rawValue: 1 << 40))
      return Participant(number: number, joiner: joiner, now: node.control.now)
    }
    switch mutation {
    case .secondDeviceAnswers:
      guard call.member(user)?.isJoined == true, call.member(user)?.arriving == nil else { return }
      node.control.calls[id]?.setArriving(guest(user, number: 900), of: user, out: &out)
    case .ringsOnTwice:
      guard let member = call.members.first(where: { $0.user != user && $0.isRinging }),
        case .ringing(var ring) = member.phase
      else { return }
      ring.expiresAt = ring.expiresAt + .seconds(1)
      node.control.calls[id]?.setPhase(.ringing(ring), of: member.user, out: &out)
    case .swapsState:
      guard let member = call.members.first(where: { if case .left = $0.phase { true } else { false } }) else { return }
      node.control.calls[id]?.setPhase(.declined, of: member.user, out: &out)
    case .letsStrangerIn:
      guard let member = call.members.first(where: { $0.user != user && !$0.isListening }) else { return }
      node.control.calls[id]?.setPhase(.joined(guest(member.user, number: 901)), of: member.user, out: &out)
    case .reusesNumber:
      guard case .joined(let participant)? = call.member(user)?.phase, world.hasEntered(command, effects),
        participant.number > 1
      else { return }
      let joiner = Joiner(
        device: participant.device, name: nil, joinId: participant.joinId, joinKey: nil, keys: nil,
        peer: participant.peer)
      node.control.calls[id]?.setPhase(
        .joined(Participant(number: 1, joiner: joiner, now: node.control.now)), of: user, out: &out)
    case .speaksInTwoCalls:
      guard case .request = command else { return }
      let calls = node.people.calls(of: user)
      for device in node.people.directory.devices(of: user) {
        let inside = calls.filter { (try? node.control.calls[$0]?.participant(of: device)) != nil }
        let held = inside.filter { (try? node.control.calls[$0]?.participant(of: device))?.isHeld == true }
        guard held.count < inside.count else { continue }
        for other in held { _ = node.control.calls[other]?.withParticipant(of: device) { $0.isHeld = false } }
      }
    case .removesMember:
      guard let member = call.members.first(where: { $0.user != user && $0.isJoined }), call.presentCount > 1 else {
        return
      }
      node.control.calls[id]?.setPhase(.left, of: member.user, out: &out)
    default: break
    }
  }
}

extension SimulatedWorld {
  /// Whether the device is of a member of the event's call.
  fileprivate func isMember(of delivery: EventDelivery, _ place: Int) -> Bool {
    delivery.message.call.flatMap { node.control.calls[$0]?.member(devices[place].device.user) } != nil
  }

  /// The call and the user of a request about a call.
  fileprivate func asked(by command: NodeCommand) -> (CallID, UserID)? {
    guard let session = SimulatedWorld.session(of: command), let place = places[session],
      let id = node.people.calls(of: devices[place].device.user).first
    else { return nil }
    return (id, devices[place].device.user)
  }

  fileprivate func hasEntered(_ command: NodeCommand, _ effects: [CallMessages.Effect]) -> Bool {
    effects.contains { if case .client(.reply(_, _, .ok(.joined))) = $0 { true } else { false } }
  }
}
