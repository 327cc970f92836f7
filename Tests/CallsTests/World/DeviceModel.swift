import CallMessages
import Contract
import MediaModel

/// The events that the server owes one device, derived from what it was seen to send and to keep: an independent
/// mailbox.
struct DeviceModel {
  struct Owed {
    /// 0: not written yet.
    var seq: UInt64
    var message: EventMessage
    var since: Timestamp
    /// It was void in the step in which it was created, or may have been.
    var mayBeGone = false
  }

  var owed: [Owed] = []
  private(set) var lastSeq: UInt64 = 0
  /// Numbers may jump, since an event without a number was dropped.
  var mayJump = true
  var awaySince: Timestamp?
  private(set) var mode: AcknowledgementMode?
  private var resumedAt: UInt64 = 0
  /// Calls that ring on it.
  var rung: Set<CallID> = []
  /// The numbers of the events that its user has seen.
  private(set) var seen: Set<UInt64> = []
  /// The newest revision of each call that it has been told.
  private var revisions: [CallID: UInt64] = [:]

  static let lifetime = Duration.seconds(120)

  // MARK: what the server says

  /// A new event is written.
  mutating func write(_ delivery: EventDelivery, mayBeGone: Bool, _ device: Device, now: Timestamp, _ verdict: Verdict)
  {
    number(delivery, device, verdict)
    checkRevision(delivery.message, verdict)
    guard mode != .auto, delivery.message.body.isKept else { return }
    owed.append(Owed(seq: delivery.seq, message: delivery.message, since: now, mayBeGone: mayBeGone))
  }

  /// Each change has a higher revision than everything before, and a state no lower one, also across restarts.
  private mutating func checkRevision(_ message: EventMessage, _ verdict: Verdict) {
    guard let call = message.call else { return }
    let known = revisions[call] ?? 0
    if case .state(let state) = message.body {
      verdict.require(
        .revisionRises, state.rev ?? 0 >= known, "a state has the revision \(state.rev ?? 0) after \(known)")
      revisions[call] = state.rev
    } else if message.body.changesState {
      verdict.require(
        .revisionRises, message.rev ?? 0 > known,
        "\(message.body.name) has the revision \(message.rev ?? 0) after \(known)")
      revisions[call] = message.rev
    }
  }

  private mutating func number(_ delivery: EventDelivery, _ device: Device, _ verdict: Verdict) {
    let isNext = delivery.seq == lastSeq + 1 || (mayJump && delivery.seq > lastSeq)
    verdict.require(
      .inOrder, isNext,
      "\(delivery.message.body.name) has seq \(delivery.seq) after \(lastSeq) on \(device.device.text)")
    lastSeq = max(lastSeq, delivery.seq)
    mayJump = false
  }

  mutating func keep(_ message: EventMessage, mayBeGone: Bool, now: Timestamp) {
    owed.append(Owed(seq: 0, message: message, since: now, mayBeGone: mayBeGone))
  }

  /// The device reads (again). Returns how many deliveries matched what it was owed.
  mutating func comeBack(
    _ mode: AcknowledgementMode, isNewConnection: Bool, _ deliveries: [EventDelivery], _ device: Device, now: Timestamp,
    _ verdict: Verdict
  ) -> Int {
    expire(now: now)
    awaySince = nil
    self.mode = mode
    var rest = deliveries[...]
    // The numbers of expired events come after those of the states.
    let jumps = mayJump
    defer { mayJump = mayJump || (jumps && lastSeq == resumedAt) }
    while let first = rest.first, case .state = first.message.body, !first.redelivered {
      number(first, device, verdict)
      rest.removeFirst()
    }
    resumedAt = lastSeq
    mayJump = jumps
    if isNewConnection { repeatWritten(&rest, verdict) }
    if isNewConnection, mode == .auto { owed.removeAll { $0.seq > 0 } }
    writeWaiting(&rest, device, now: now, verdict)
    return deliveries.count - rest.count
  }

  /// Unacknowledged events of an earlier connection come first, under their numbers.
  private func repeatWritten(_ rest: inout ArraySlice<EventDelivery>, _ verdict: Verdict) {
    for due in owed where due.seq > 0 {
      guard let next = rest.first, next.redelivered, next.seq == due.seq else {
        verdict.require(
          .unacknowledgedComesAgain, due.mayBeGone, "\(due.message.body.name) \(due.seq) does not come again")
        continue
      }
      rest.removeFirst()
      verdict.require(
        .inOrder, next.message.body.name == due.message.body.name && next.message.call == due.message.call,
        "a repeated event is another one")
    }
    if let next = rest.first, next.redelivered {
      let check: Check = owed.contains { $0.seq == next.seq } ? .inOrder : .acknowledgedIsOver
      verdict.require(check, false, "\(next.message.body.name) \(next.seq) comes again")
    }
  }

  private mutating func writeWaiting(
    _ rest: inout ArraySlice<EventDelivery>, _ device: Device, now: Timestamp, _ verdict: Verdict
  ) {
    let waiting = owed.filter { $0.seq == 0 }
    owed.removeAll { $0.seq == 0 }
    for due in waiting {
      guard let next = rest.first, !next.redelivered, next.message.at == due.message.at,
        next.message.call == due.message.call, next.message.body.name == due.message.body.name
      else {
        verdict.require(
          .everyEntitledDevice, due.mayBeGone,
          "\(due.message.body.name) was kept for a device and did not come")
        mayJump = true
        continue
      }
      rest.removeFirst()
      if due.message.body.isRing, let call = due.message.call { rung.insert(call) }
      write(next, mayBeGone: due.mayBeGone, device, now: now, verdict)
    }
  }

  mutating func acknowledge(_ seq: UInt64) {
    guard mode != nil, seq > resumedAt || owed.contains(where: { $0.seq == seq }) else { return }
    owed.removeAll { mode == .client ? $0.seq > 0 && $0.seq <= seq : $0.seq == seq }
  }

  mutating func goAway(now: Timestamp) {
    awaySince = awaySince ?? now
    mode = nil
  }

  mutating func expire(now: Timestamp) {
    guard let awaySince else { return }
    drop { !$0.message.body.isEnvelope && max($0.since, awaySince) + DeviceModel.lifetime <= now }
  }

  mutating func drop(where isOver: (Owed) -> Bool) {
    guard owed.contains(where: isOver) else { return }
    if owed.contains(where: { $0.seq == 0 && isOver($0) }) { mayJump = true }
    owed.removeAll(where: isOver)
  }

  /// Only envelopes and rings survive a restart.
  mutating func restart(now: Timestamp) {
    drop { !$0.message.body.isEnvelope }
    mode = nil
    mayJump = true
    awaySince = now
    resumedAt = 0
  }

  // MARK: what the device sees

  mutating func see(_ delivery: EventDelivery) { seen.insert(delivery.seq) }
}
