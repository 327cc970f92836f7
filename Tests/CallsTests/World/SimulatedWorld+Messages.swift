@testable import Calls
@testable import PeopleMachine
@testable import CallMachine
import Contract
import MediaModel
import Seeded
import Simulation

import CallMessages

/// `People` and `CallControl` separately: each handles a command or a message in its own step, and its messages to the
/// other are in flight for a while.
extension SimulatedWorld {
  func handleLate(_ command: NodeCommand, _ place: Int?) {
    switch command {
    case .media(let event): callStep(command) { $0.take(event, now: $1) }
    case .drain: callStep(command) { control, _ in control.drain() }
    case .timeout: fireTimers()
    default:
      late.note(command)
      if case .answer(let question, let allowed) = command { noteAnswer(question, allowed) }
      peopleStep(command, place.map { devices[$0].device }) { $0.handle(command, now: $1) }
    }
  }

  private func fireTimers() {
    while verdict.failure == nil, let due = node.control.nextDeadline, due <= now {
      callStep(.timeout) { _ = $0.handleTimeout(now: $1) }
    }
    if let due = node.people.nextDeadline, due <= now { peopleStep(.timeout, nil) { $0.handleTimeout(now: $1) } }
  }

  /// A letter arrives.
  func deliver() {
    for message in mail.take() where verdict.failure == nil {
      switch message {
      case .toPeople(let message, _): peopleStep(command(for: message), nil) { $0.handle(message, now: $1) }
      case .toCalls(let message): callStep(message.command ?? .drain, message) { $0.handle(message, now: $1) }
      }
    }
    verdict.require(.noGapStays, mail.due != nil || !mail.isWaiting, "a letter never arrived")
    guard verdict.failure == nil, mail.isEmpty else { return }
    checkQuiet()
  }

  /// Everything in flight arrives.
  func deliverAll() {
    while verdict.failure == nil, let due = mail.due { advance(max(due - now, .zero)) }
  }

  // MARK: steps

  private func callStep(
    _ command: NodeCommand, _ message: ToCalls? = nil, _ handle: (inout CallControl, Timestamp) -> Void
  ) {
    handle(&node.control, now)
    let touched = node.control.journal.calls
    let changes = node.control.takeChanges().map(CallMessages.Effect.store)
    disk.write(changes)
    var messages: [ToPeople] = []
    var effects: [CallMessages.Effect] = []
    node.control.out.move(to: &messages, &effects)
    let before = views
    for id in touched { views[id] = node.control.calls[id].map(CallView.init) }
    let replies = messages.compactMap { message in
      if case .reply(let session, let id, let reply) = message {
        CallMessages.Effect.client(.reply(session, id: id, reply))
      } else {
        nil
      }
    }
    for case .client(.reply(_, let id, .ok(.joined(let body)))) in replies { late.note(body, by: id) }
    var request: BriefedRequest?
    if case .request(let asked) = message { request = asked }
    look(
      WorldStep(
        command: command, asker: message?.device, isService: request?.caller.identity.isService == true,
        allowed: request.flatMap { $0.asks ? nil : late.allowed[$0.id] }, isTimeout: command.isTimeout,
        isDraining: isDraining, effects: changes + replies, before: before, after: views,
        changed: touched.filter { node.control.calls[$0] != nil }, node: node, now: now, devices: [:],
        part: .calls(request)),
      messages.compactMap(told), effects.compactMap(\.recorded))
    let asked = message?.call ?? touched.first { before[$0] == nil }
    for message in messages { post(.toPeople(message, from: message.call ?? asked)) }
    spreadLate(effects, command)
  }

  private func look(_ step: WorldStep, _ told: [EventInvariants.Told], _ recorded: [CallRecordingChange]) {
    members.check(step)
    keys.check(step, told)
    checkConsents(step, recorded)
    chain.check(step, told) { disk.call($0) }
    history.check(step)
    events.checkAudiences(told, step)
  }

  /// The event that a call's message causes, with the devices that have to get it. Only `People` knows about rings.
  private func told(_ message: ToPeople) -> EventInvariants.Told? {
    guard case .news(.event(let audience, let body), let call, let rev) = message else { return nil }
    let event = EventMessage(at: now, call: call, rev: rev, body: body)
    switch audience {
    case .devices(let devices): return EventInvariants.Told(message: event, devices: Set(devices))
    case .users(let users):
      return EventInvariants.Told(message: event, devices: Set(users.flatMap(node.people.directory.devices)))
    case .alone(let user):
      return EventInvariants.Told(message: event, devices: Set(node.people.directory.devices(of: user)))
    case .rung: return nil
    }
  }

  private func peopleStep(
    _ command: NodeCommand, _ asker: Device?, _ handle: (inout People, Timestamp) -> Void
  ) {
    handle(&node.people, now)
    node.people.tellPresence()
    disk.write(node.people.takeChanges().map(CallMessages.Effect.store))
    var messages: [ToCalls] = []
    var effects: [CallMessages.Effect] = []
    node.people.out.move(to: &messages, &effects)
    let known = places.mapValues { devices[$0].device }
    let reply = effects.lazy.compactMap { effect -> (SessionID, String)? in
      if case .client(.reply(let session, let id, .ok)) = effect { (session, id) } else { nil }
    }.first
    watchers.check(
      WorldStep(
        command: command, asker: asker ?? reply.flatMap { known[$0.0] }, isService: false,
        allowed: reply.flatMap { late.allowed[$0.1] }, isTimeout: command.isTimeout,
        isDraining: isDraining, effects: effects, before: [:], after: [:], changed: [], node: node, now: now,
        devices: known, part: .people))
    rest.checkNumbers(effects, boots: boots)
    let directory = node.people.directory
    late.check(effects, known) { directory.connection(of: $0)?.events != nil }
    for message in messages { post(.toCalls(message)) }
    if case .disconnect(let session) = command { places[session] = nil }
    spreadLate(effects, command)
  }

  private func spreadLate(_ effects: [CallMessages.Effect], _ command: NodeCommand) {
    for case .negotiate(let session, let id, _) in effects { late.answered(id, session) }
    for effect in effects {
      if case .ask(let question, .authorize) = effect, case .request(_, let id, _) = command {
        late.allowed[id] = []
        late.waiting[question] = id
      }
      spread(effect, command)
    }
  }

  private func post(_ message: DelayedMail.Message) {
    do {
      switch mutant?.fault() {
      case .losesMessage: return
      case .losesLetter: mail.lose(message)
      case .repeatsMessage:
        try mail.post(message, now: now)
        try mail.post(message, now: now)
      case .swapsMessages:
        try mail.post(message, now: now)
        mail.swapLast(of: message)
      default: try mail.post(message, now: now)
      }
      verdict.require(.messagesAreReadable, true, "")
    } catch {
      verdict.require(.messagesAreReadable, false, "a message cannot be written or read: \(error)")
    }
  }

  // MARK: requests

  /// The request that a call's message continues, or the device's subscription that it completes.
  private func command(for message: ToPeople) -> NodeCommand {
    switch message {
    case .reply(let session, let id, _): late.requests[id].map { .request(session, id: id, $0) } ?? .drain
    case .checked(let request): .request(request.session, id: request.id, .calls(request.request))
    case .greeting(let session, _, _, _): .subscribe(session, .events, .auto)
    default: .drain
    }
  }

  private func noteAnswer(_ question: QuestionID, _ allowed: Set<UserID>) {
    guard let asked = asked.removeValue(forKey: question), asked.due > now,
      let id = late.waiting.removeValue(forKey: question)
    else { return }
    late.allowed[id] = allowed
  }

  // MARK: when nothing is under way

  private func checkQuiet() {
    for call in node.control.calls.values {
      for member in call.members { members.checkHolds(member, node) }
    }
    let connected = Set(places.keys).union([service].compactMap { $0 })
    asked = asked.filter { $0.value.due > now }
    late.checkQuiet(
      node, connected: connected, waiting: Set(asked.values.map(\.command.requestID)), changes: events.waiting)
    watchers.checkPresence(node, places.mapValues { devices[$0].device })
    if random.chance(10) {
      rest.checkQueues(node, disk)
      rest.checkDisk(disk.contents, node)
    }
  }
}

extension CallMessages.Effect {
  var recorded: CallRecordingChange? { if case .recorded(let change) = self { change } else { nil } }
}

extension NodeCommand {
  var isTimeout: Bool { if case .timeout = self { true } else { false } }

  fileprivate var requestID: String {
    switch self {
    case .request(_, let id, _), .offer(_, let id, _, _, _): id
    default: ""
    }
  }
}
