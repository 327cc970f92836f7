@testable import PeopleMachine
@testable import Calls
import Contract
import MediaModel

import CallMessages

/// Every event reaches every entitled device, in order, and no other device: the table "Who gets what" of protocol
/// section 4.
struct EventInvariants {
  /// An event of one step, with the devices that got it, or for which it is kept.
  struct Told {
    var message: EventMessage
    var devices: Set<Device>
  }

  let verdict: Verdict
  var models: [Device: DeviceModel] = [:]
  private(set) var counts: [EventName: Int] = [:]
  var waiting: WaitingInvariants
  private var greeted: Set<SessionID> = []

  init(_ verdict: Verdict, crowd: Int) {
    self.verdict = verdict
    waiting = WaitingInvariants(verdict, crowd: crowd)
  }

  mutating func check(_ step: WorldStep) -> [Told] {
    noteConnections(step)
    // A device that reconnects first gets the events owed to it; receiving them may end what they concern.
    let comesBack = if case .subscribe(_, .events, _) = step.command { true } else { false }
    if !comesBack { dropWhatIsOver(step) }
    var heard: [Device: [EventMessage]] = [:]
    for (device, deliveries) in deliveries(step) {
      for delivery in fresh(deliveries, device, step) {
        heard[device, default: []].append(delivery.message)
        if delivery.message.body.isRing, let call = delivery.message.call { models[device]?.rung.insert(call) }
      }
    }
    if comesBack { dropWhatIsOver(step) }
    keepForAway(step, &heard)
    var told: [EventMessage: Set<Device>] = [:]
    for (device, messages) in heard { for message in messages { told[message, default: []].insert(device) } }
    let all = told.map { Told(message: $0.key, devices: $0.value) }
    for event in all { checkAudience(event, step) }
    checkChanges(all, step)
    waiting.check(step, heard)
    endRings(step)
    forgetDevices(step)
    return all
  }

  /// - Parameter told: the events that a call sends, in order, with the devices that have to get them.
  mutating func checkAudiences(_ told: [Told], _ step: WorldStep) {
    for event in told { checkAudience(event, step) }
    checkChanges(told, step)
    var heard: [Device: [EventMessage]] = [:]
    for event in told { for device in event.devices { heard[device, default: []].append(event.message) } }
    waiting.check(step, heard)
  }

  // MARK: each device's own

  private func deliveries(_ step: WorldStep) -> [Device: [EventDelivery]] {
    var deliveries: [Device: [EventDelivery]] = [:]
    for case .client(.event(let session, let delivery)) in step.effects {
      guard let device = step.devices[session] else {
        verdict.require(.nobodyElse, false, "an event goes to a connection that is gone")
        continue
      }
      deliveries[device, default: []].append(delivery)
    }
    if case .subscribe(let session, .events, _) = step.command, let device = step.devices[session] {
      deliveries[device] = deliveries[device] ?? []
    }
    return deliveries
  }

  /// The deliveries to a device that are new in this step.
  private mutating func fresh(
    _ deliveries: [EventDelivery], _ device: Device, _ step: WorldStep
  ) -> [EventDelivery] {
    var rest = deliveries[...]
    if case .subscribe(let session, .events, let mode) = step.command, step.devices[session] == device {
      let isNew = greeted.insert(session).inserted
      if isNew { checkGreeting(deliveries, device, step) }
      let owed = models[device, default: DeviceModel()].comeBack(
        mode, isNewConnection: isNew, deliveries, device, now: step.now, verdict)
      rest = rest.dropFirst(owed)
    }
    for delivery in rest {
      counts[delivery.message.body.name, default: 0] += 1
      verdict.require(
        .acknowledgedIsOver, !delivery.redelivered, "\(delivery.message.body.name) is repeated in between")
      models[device, default: DeviceModel()].write(
        delivery, mayBeGone: mayBeGone(delivery.message, device, step), device, now: step.now, verdict)
    }
    return Array(rest)
  }

  /// Rule 16.
  private func checkGreeting(_ deliveries: [EventDelivery], _ device: Device, _ step: WorldStep) {
    let places = step.before.filter {
      $0.value.members[device.user]?.participants.contains { $0.device == device.device } == true
    }
    let states = deliveries.prefix(places.count).filter { if case .state = $0.message.body { true } else { false } }
    verdict.require(
      .stateComesFirst, Set(states.compactMap(\.message.call)) == Set(places.keys),
      "the state is not the first event of a connection")
  }

  private mutating func noteConnections(_ step: WorldStep) {
    if let asker = step.asker {
      switch step.command {
      case .connect:
        let isReplaced = step.effects.contains { if case .client(.close) = $0 { true } else { false } }
        if isReplaced { models[asker, default: DeviceModel()].goAway(now: step.now) }
      case .disconnect, .unsubscribe(_, .events): models[asker, default: DeviceModel()].goAway(now: step.now)
      case .acknowledge(_, let seqs, _): for seq in seqs { models[asker]?.acknowledge(seq) }
      default: break
      }
    }
  }

  private mutating func forgetDevices(_ step: WorldStep) {
    if let asker = step.asker, case .people(.removeDevice(let body)) = step.request, step.isOK {
      models[Device(user: asker.user, device: body.device)] = DeviceModel()
    }
    if case .forget(let user) = step.command {
      for device in models.keys where device.user == user { models[device] = DeviceModel() }
    }
  }

  /// Records the events kept for absent devices, which are visible only in the mailbox.
  private mutating func keepForAway(_ step: WorldStep, _ heard: inout [Device: [EventMessage]]) {
    var users = Set([step.asker?.user].compactMap { $0 })
    // Its call may have ended at once.
    if case .calls(.start(let start)) = step.request { users.formUnion(start.callees + [start.as].compactMap { $0 }) }
    for id in step.changed { users.formUnion(step.after[id]?.members.keys.map { $0 } ?? []) }
    for id in step.gone { users.formUnion(step.before[id]?.members.keys.map { $0 } ?? []) }
    for user in users {
      for device in step.node.people.directory.devices(of: user) {
        guard let record = step.node.people.directory[device], record.connection?.events == nil else { continue }
        var known: [EventMessage: Int] = [:]
        for owed in models[device]?.owed ?? [] where owed.message.at == step.now {
          known[owed.message, default: 0] += 1
        }
        for message in record.mailbox.kept where message.at == step.now {
          if let count = known[message], count > 0 {
            known[message] = count - 1
            continue
          }
          heard[device, default: []].append(message)
          models[device, default: DeviceModel()].keep(
            message, mayBeGone: mayBeGone(message, device, step), now: step.now)
        }
      }
    }
  }

  // MARK: what is void

  /// It joined and left in one step.
  private func mayBeGone(_ message: EventMessage, _ device: Device, _ step: WorldStep) -> Bool {
    guard let id = message.call else { return false }
    guard let after = step.after[id] else { return message.body.isForParticipants || message.body.isRing }
    if case .envelope(let envelope) = message.body, envelope.epoch < after.newest { return true }
    if message.body.isRing { return after.members[device.user]?.state != .ringing }
    guard message.body.isForParticipants else { return false }
    return after.participants[device]?.participant != step.before[id]?.participants[device]?.participant
  }

  private mutating func dropWhatIsOver(_ step: WorldStep) {
    for (id, old) in step.before {
      let new = step.after[id]
      guard new == nil || step.changed.contains(id) else { continue }
      for user in old.rings.keys where new?.members[user]?.state != .ringing {
        for device in devices(of: user) { models[device]?.drop { $0.message.body.isRing && $0.message.call == id } }
      }
      let present = new?.participants ?? [:]
      for (device, participant) in old.participants where present[device]?.participant != participant.participant {
        models[device]?.drop { $0.message.body.isForParticipants && $0.message.call == id }
      }
      if let new, new.newest == old.newest { continue }
      for device in old.participants.keys {
        models[device]?.drop {
          if case .envelope(let envelope) = $0.message.body {
            $0.message.call == id && envelope.epoch < new?.newest ?? .max
          } else {
            false
          }
        }
      }
    }
  }

  private func devices(of user: UserID) -> [Device] { models.keys.filter { $0.user == user } }

  private mutating func endRings(_ step: WorldStep) {
    for (id, old) in step.before where step.after[id] == nil || step.changed.contains(id) {
      for user in old.rings.keys where step.after[id]?.members[user]?.state != .ringing {
        for device in devices(of: user) { models[device]?.rung.remove(id) }
      }
    }
  }

  // MARK: restarts

  /// - Parameter devices: all devices of the world, also those without an event: what is kept for them from now on
  ///   expires as for the others.
  mutating func restart(_ devices: [Device], now: Timestamp) {
    for device in devices { models[device, default: DeviceModel()].restart(now: now) }
    greeted = []
    waiting.restart()
  }
}
