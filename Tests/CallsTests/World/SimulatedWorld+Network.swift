@testable import PeopleMachine
@testable import Calls
import Contract
import MediaModel
import Seeded
import Simulation

import CallMessages

/// Connections, and the frames in flight on them.
extension SimulatedWorld {
  func connect(_ place: Int) {
    lastSession += 1
    let session = SessionID(rawValue: lastSession)
    let simulated = devices[place]
    devices[place].session = session
    devices[place].isDeaf = false
    devices[place].isSubscribed = true
    handle(.connect(session, Identity(device: simulated.device, name: "somebody", roles: simulated.roles)), place)
    if simulated.hasKeys, node.people.directory[simulated.device]?.entry == nil || random.chance(5) { register(place) }
    send(.subscribe(session, .events, simulated.mode), place)
  }

  func disconnect(_ place: Int) {
    guard let session = devices[place].session else { return }
    guard random.chance(70) else {
      // The server keeps writing to nobody for a while.
      devices[place].isDeaf = true
      agenda.append((now + .milliseconds(random.below(20_000)), session, .notice))
      return
    }
    lose(session, place)
  }

  private func lose(_ session: SessionID, _ place: Int) {
    handle(.disconnect(session), place)
    guard devices[place].session == session else { return }
    devices[place].session = nil
    devices[place].isSubscribed = false
    devices[place].isDeaf = false
  }

  func toggleSubscription(_ place: Int) {
    guard let session = devices[place].session else { return }
    devices[place].isSubscribed.toggle()
    send(
      devices[place].isSubscribed
        ? .subscribe(session, .events, devices[place].mode) : .unsubscribe(session, .events), place)
  }

  /// It reaches the server after its delay, unless the connection breaks first.
  func send(_ command: NodeCommand, _ place: Int) {
    guard let session = devices[place].session, !devices[place].isDeaf else { return }
    guard devices[place].latency > .zero else { return handle(command, place) }
    agenda.append((now + devices[place].latency, session, .command(command)))
  }

  func connectService() {
    lastSession += 1
    let session = SessionID(rawValue: lastSession)
    service = session
    let device = Device(user: UserID(unchecked: "backend"), device: DeviceID(unchecked: "host"))
    handle(.connect(session, Identity(device: device, name: nil, isService: true, canRegister: false)), nil)
    for channel in [Channel.serviceCalls, .servicePush, .serviceReports] {
      handle(.subscribe(session, channel, .auto), nil)
    }
  }

  // MARK: what comes to a device

  func spread(_ effect: CallMessages.Effect, _ command: NodeCommand) {
    switch effect {
    case .client(.event(let session, let delivery)):
      guard let place = places[session], devices[place].session == session, !devices[place].isDeaf else { return }
      agenda.append((now + devices[place].latency, session, .receive(delivery)))
    case .client(.close(let session, _)):
      guard let place = places.removeValue(forKey: session), devices[place].session == session else { return }
      devices[place].session = nil
      devices[place].isSubscribed = false
      devices[place].isDeaf = false
    case .client(.reply(_, _, .ok(.link(let link)))):
      if case .request(_, _, .calls(.call(let call, .link(let made)))) = command {
        links.append((call, link.link, made.admission?.link ?? Base64Bytes([])))
      }
    case .ask(let id, .acquainted(_, let users)): handle(.answer(id, allowed: Set(users)), nil)
    case .ask(let id, .authorize(_, _, let users, _)): askBackEnd(id, users, command)
    default: break
    }
  }

  /// The app's back end answers which users the request may reach, at once, late, too late, or never.
  private func askBackEnd(_ id: QuestionID, _ users: [UserID], _ command: NodeCommand) {
    guard let session = SimulatedWorld.session(of: command) else { return }
    let due = now + configuration.answerTime
    // Two requests that time out at the same time could not be told apart.
    let isAlone = !asked.values.contains { $0.due == due }
    asked[id] = Asked(command: command, session: session, due: due)
    let allowed = Set(users.filter { _ in whims.chance(80) })
    let times: [Int?] = [0, 0, 50, 400, 900, 1_500, nil]
    guard let time = times[whims.below(isAlone ? 7 : 5)] else { return }
    if time == 0 { return handle(.answer(id, allowed: allowed), nil) }
    agenda.append((now + .milliseconds(time), session, .answer(id, allowed: allowed)))
  }

  private func receive(_ delivery: EventDelivery, _ place: Int) {
    let simulated = devices[place]
    noteSeen(delivery, simulated.device)
    guard let session = simulated.session else { return }
    func plan(_ command: NodeCommand, in delay: Duration?) {
      if let delay { agenda.append((now + delay + simulated.latency, session, .command(command))) }
    }
    func answer(_ call: CallID, _ epoch: UInt32, to entries: [ListEntry], in delay: Duration?) {
      let envelopes = entries.map { envelope(to: $0.address, epoch: epoch) }
      lastRequest += 1
      plan(
        .request(session, id: "\(lastRequest)", .inCall(call, .keys(HandOutKeys(epoch: epoch, envelopes: envelopes)))),
        in: delay
      )
    }
    switch (delivery.message.body, delivery.message.call) {
    case (.rotate(let rotate), let call?):
      guard let deliver = rotate.deliver else { break }
      answer(call, rotate.epoch, to: deliver.filter { _ in !random.chance(5) }, in: simulated.answerTime)
    case (.switchKeys(let keys), let call?): confirm(keys.epoch, call, place)
    case (.envelope(let envelope), let call?):
      if whims.chance(5) { ask(place, .inCall(call, .waitForKey(WaitForKey(epoch: envelope.epoch, reason: .trust)))) }
    case (.keyRequest(let request), let call?):
      answer(call, request.epoch, to: [request.to], in: .milliseconds(50))
    default: break
    }
    if whims.chance(1) { vouch(place) }
    record(delivery, place)
    if simulated.mode != .auto {
      plan(.acknowledge(session, seqs: [delivery.seq], accepted: !random.chance(10)), in: simulated.ackTime)
    }
  }

  // MARK: time

  func advance(_ duration: Duration) {
    let end = now + duration
    while verdict.failure == nil {
      let plan = agenda.indices.min { agenda[$0].due < agenda[$1].due }
      let planned = plan.map { agenda[$0].due } ?? end + .seconds(1)
      let deadline = node.nextDeadline ?? end + .seconds(1)
      let arrival = mail.due ?? end + .seconds(1)
      let next = min(planned, deadline, arrival)
      guard next <= end else { break }
      now = max(now, next)
      if deadline == next {
        handle(.timeout, nil)
      } else if arrival == next {
        deliver()
      } else if let plan {
        carryOut(agenda.remove(at: plan))
      }
    }
    now = max(now, end)
  }

  private func carryOut(_ entry: (due: Timestamp, session: SessionID, plan: Plan)) {
    if case .answer(let id, let allowed) = entry.plan { return handle(.answer(id, allowed: allowed), nil) }
    guard let place = places[entry.session], devices[place].session == entry.session else { return }
    switch entry.plan {
    case .answer: break
    case .command(let command): if !devices[place].isDeaf { handle(command, place) }
    case .receive(let delivery): if !devices[place].isDeaf { receive(delivery, place) }
    case .notice: lose(entry.session, place)
    }
  }
}
