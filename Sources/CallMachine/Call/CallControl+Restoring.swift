package import CallMessages
import Contract
package import MediaModel

/// After a restart no device is connected, and the time of the outage counts (rule 11).
extension CallControl {
  package init(
    configuration: CallConfiguration, hashing: Hashing, random: @escaping () -> UInt64,
    restoring stored: Stored, now: Timestamp
  ) {
    self.init(
      configuration: configuration, incarnation: stored.incarnation, hashing: hashing, random: random)
    self.now = now
    let ends = stored.endedIDs.sorted { ($0.value, $0.key) < ($1.value, $1.key) }
    for (call, at) in ends { ended.know(call, at: min(at, now), now: now) }
    for end in stored.ended { restore(end, numbers: stored.numbers[end.call] ?? [:]) }
    let unopened = Self.unopened(stored.mailboxes)
    let keys = Dictionary(stored.devices.map { ($0.device, $0.entry) }) { first, _ in first }
    var changed: Set<CallID> = []
    let outage = min(stored.ranUntil ?? now, now)...now
    for call in stored.calls.sorted(by: { ($0.call.startedAt, $0.call.id) < ($1.call.startedAt, $1.call.id) }) {
      let numbers = stored.numbers[call.call.id] ?? [:]
      if restore(call, numbers: numbers, unopened: unopened[call.call.id] ?? [:], keys: keys) {
        changed.insert(call.call.id)
      }
      calls[call.call.id]?.lastSeen.outage = outage
    }
    journal = Journal(calls: changed)
  }

  /// The devices that hold envelopes of each call, all of its newest epoch, with the senders.
  private static func unopened(_ mailboxes: [Device: StoredMailbox]) -> [CallID: [Device: Device]] {
    var unopened: [CallID: [Device: Device]] = [:]
    for (device, mailbox) in mailboxes {
      for held in mailbox.envelopes { unopened[held.call, default: [:]][device] = held.envelope.from ?? device }
    }
    return unopened
  }

  private mutating func restore(_ written: StoredEnd, numbers: [ParticipantNumber: StoredNumber]) {
    var end = written
    end.endedAt = min(end.endedAt, now)
    if let starter = end.starter { end.reply?.ice = configuration.ice(starter) }
    ended.restore(end, numbers: ParticipantNumbers(restoring: numbers, last: numbers.keys.max() ?? 0))
  }

  /// Returns whether it differs from what was stored because the clock was set back.
  private mutating func restore(
    _ written: Stored.CallRecord, numbers: [ParticipantNumber: StoredNumber], unopened: [Device: Device],
    keys: [Device: DeviceEntry]
  ) -> Bool {
    guard let rules = try? CallRules(written.call.policy, defaultCodecs: configuration.defaultCodecs) else {
      return false
    }
    let stored = written.bounded(by: now, rules)
    let id = stored.call.id
    let limits = configuration.limits
    var members: [Member] = []
    var keyedDevices: [Device: KeyedDevice] = [:]
    for record in stored.members.sorted(by: { ($0.place, $0.user) < ($1.place, $1.user) }) {
      guard let member = record.member(of: stored.call, limits: limits, now: now, peer: { makePeer() }) else {
        continue
      }
      members.append(member)
      for participant in record.participants {
        guard member.isJoined, let keyedDevice = participant.keyedDevice(of: record.user) else { continue }
        keyedDevices[keyedDevice.device] = keyedDevice
      }
    }
    let epochs = Epochs(
      restoring: stored, keyedDevices: keyedDevices, unopened: unopened,
      keys: { keys[$0] }, rotationTime: rules.rotationTime, digest: hashing.digest, now: now)
    var call = Call(
      restoring: stored.call, stored.progress, rules: rules, limits: limits, epochs: epochs, members: members,
      numbers: ParticipantNumbers(restoring: numbers, last: stored.progress.lastNumber))
    call.start.reply?.ice = configuration.ice(stored.call.starter)
    remember(numbers, &call)
    call.countAsStored(written)
    starts[call.start.token] = id
    var out = Outputs()
    for member in members { out.add(.memberMoved(member.user)) }
    call.resume(now: now, out: &out)
    calls[id] = call
    carryOut(out, of: id)
    return stored != written
  }

  /// Joins that may still be repeated (rule 14).
  private func remember(_ numbers: [ParticipantNumber: StoredNumber], _ call: inout Call) {
    var state = call.state
    state.members = []
    for (number, join) in numbers.sorted(by: { $0.key < $1.key }) {
      guard let joinId = join.joinId, let kind = join.cameBy.flatMap(JoinMemory.Kind.init) else { continue }
      let reply = Joined(call: state, participant: number, ice: configuration.ice(join.device))
      call.joins.restore(reply, kind, for: JoinToken(device: join.device, joinId: joinId))
    }
  }
}
