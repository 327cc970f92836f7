import CallMessages
import Contract
import MediaModel

/// A device's events: their numbers, the events that were written and not acknowledged, and those that wait for its next connection (protocol
/// section 3).
///
/// A waiting event has no number yet. It gets one when it is first written, so that numbers rise on the wire. An event that is dropped unwritten
/// uses up a number, and the device sees the gap.
struct Mailbox {
  struct Limits {
    var lifetime: Duration
    var count: Int
    var bytes: Int
  }

  private struct Kept {
    /// 0 while it waits.
    var seq: UInt64
    var message: Message
    var since: Timestamp
    var cost: Int
  }

  private(set) var lastSeq: UInt64
  /// Written but not acknowledged; in order of `seq`.
  private var written: [Kept] = []
  private var waiting: [Kept] = []
  private var bytes = 0
  private var awaySince: Timestamp?
  /// On the current connection, numbers below the next one precede the redelivered events.
  private var resumedAt: UInt64 = 0
  /// Calls whose ring was written to the device and is not over yet.
  private(set) var rung: Set<CallID> = []
  /// Some of its events are on the disk.
  var isStored = false

  /// Numbers begin after `lastSeq`.
  init(lastSeq: UInt64) { self.lastSeq = lastSeq }

  var isEmpty: Bool { written.isEmpty && waiting.isEmpty }
  /// For tests and metrics: the kept events.
  var kept: [EventMessage] { (written + waiting).map(\.message.event) }

  /// Writes an event to an open connection.
  mutating func write(_ message: Message, mode: AcknowledgementMode, limits: Limits, now: Timestamp) -> EventDelivery {
    lastSeq += 1
    if message.event.body.isRing, let call = message.event.call { rung.insert(call) }
    if mode != .auto, message.event.body.isKept {
      append(Kept(seq: lastSeq, message: message, since: now, cost: message.event.body.cost), to: \.written)
      makeRoom(limits)
    }
    return delivery(message, seq: lastSeq, redelivered: false)
  }

  /// Keeps an event until the device connects. Returns false if events of its kind are not kept.
  mutating func keep(_ message: Message, limits: Limits, now: Timestamp) -> Bool {
    let body = message.event.body
    guard body.isKept else { return false }
    if body.replacesOlder {
      _ = drop(from: \.waiting) {
        $0.message.event.body.name == body.name && $0.message.event.call == message.event.call
      }
    }
    append(Kept(seq: 0, message: message, since: now, cost: body.cost), to: \.waiting)
    makeRoom(limits)
    return true
  }

  mutating func goAway(now: Timestamp) { awaySince = awaySince ?? now }

  /// The device is connected again. Returns the unacknowledged events if the connection is new, then the waiting ones.
  mutating func comeBack(isNewConnection: Bool, mode: AcknowledgementMode, limits: Limits, now: Timestamp)
    -> [EventDelivery]
  {
    expire(limits, now: now)
    awaySince = nil
    resumedAt = lastSeq
    var deliveries: [EventDelivery] = []
    if isNewConnection {
      deliveries = written.map { delivery($0.message, seq: $0.seq, redelivered: true) }
      // With `auto`, writing an event again acknowledges it.
      if mode == .auto { _ = drop(from: \.written) { _ in true } }
    }
    let ready = waiting
    _ = drop(from: \.waiting) { _ in true }
    for kept in ready { deliveries.append(write(kept.message, mode: mode, limits: limits, now: now)) }
    return deliveries
  }

  /// Removes the events that an ACK or NACK of `seq` covers; `all`: including all earlier ones.
  ///
  /// A number that is not held and not newer than the connection belongs to the `call.state` at its head, which nothing
  /// precedes.
  mutating func acknowledge(_ seq: UInt64, all: Bool) -> [EventMessage] {
    let place = firstPlace(from: seq)
    let isHeld = place < written.count && written[place].seq == seq
    guard seq > resumedAt || isHeld else { return [] }
    let covered = (all ? 0 : place)..<(isHeld ? place + 1 : place)
    guard !covered.isEmpty else { return [] }
    var events: [EventMessage] = []
    events.reserveCapacity(covered.count)
    for kept in written[covered] {
      bytes -= kept.cost
      events.append(kept.message.event)
    }
    written.removeSubrange(covered)
    return events
  }

  /// The first index in `written` whose number is `seq` or higher. In a large call hundreds of events may be outstanding, so it is not a linear search.
  private func firstPlace(from seq: UInt64) -> Int {
    var low = 0
    var high = written.count
    while low < high {
      let middle = (low + high) / 2
      if written[middle].seq < seq { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The call's ring is over. Returns whether the device had been rung.
  mutating func endRing(of call: CallID) -> Bool {
    dropAll { $0.body.isRing && $0.call == call }
    return rung.remove(call) != nil
  }

  /// The call's ring continues without its envelope.
  mutating func stripRing(of call: CallID) {
    func stripped(_ kept: Kept) -> Kept {
      guard case .ring(var ring) = kept.message.event.body, kept.message.isOf(call) else { return kept }
      ring.envelope = nil
      ring.list = nil
      var kept = kept
      kept.message.event.body = .ring(ring)
      // It is no longer the message that others got under this id.
      kept.message.id = Message.unshared
      return kept
    }
    written = written.map(stripped)
    waiting = waiting.map(stripped)
  }

  mutating func dropEnvelopes(of call: CallID, olderThan epoch: UInt32) {
    dropAll {
      if case .envelope(let envelope) = $0.body, $0.call == call { envelope.epoch < epoch } else { false }
    }
  }

  mutating func dropParticipantEvents(of call: CallID) { dropAll { $0.body.isForParticipants && $0.call == call } }

  /// Drops expired events. Envelopes stay until they are acknowledged or superseded, or their call ends.
  mutating func expire(_ limits: Limits, now: Timestamp) {
    guard let awaySince else { return }
    func isOver(_ kept: Kept) -> Bool {
      !kept.message.event.body.isEnvelope && max(kept.since, awaySince) + limits.lifetime <= now
    }
    lastSeq += UInt64(drop(from: \.waiting, where: isOver))
    _ = drop(from: \.written, where: isOver)
  }

  // MARK: what survives a restart

  var stored: StoredMailbox {
    let envelopes = (written + waiting).compactMap { kept -> StoredMailbox.Held? in
      guard case .envelope(let envelope) = kept.message.event.body, let call = kept.message.event.call else {
        return nil
      }
      return StoredMailbox.Held(call: call, at: kept.message.event.at, seq: kept.seq, envelope: envelope)
    }
    return StoredMailbox(envelopes: envelopes, rung: rung.sorted())
  }

  /// For a mailbox that is still empty.
  mutating func restore(_ stored: StoredMailbox, now: Timestamp) {
    isStored = true
    awaySince = now
    rung = Set(stored.rung)
    for held in stored.envelopes {
      let event = EventMessage(at: held.at, call: held.call, body: .envelope(held.envelope))
      let message = Message(id: Message.unshared, event: event)
      append(
        Kept(seq: held.seq, message: message, since: now, cost: event.body.cost),
        to: held.seq > 0 ? \.written : \.waiting)
    }
  }

  private func delivery(_ message: Message, seq: UInt64, redelivered: Bool) -> EventDelivery {
    EventDelivery(seq: seq, redelivered: redelivered, messageID: message.id, message: message.event)
  }

  private mutating func append(_ kept: Kept, to list: WritableKeyPath<Mailbox, [Kept]>) {
    self[keyPath: list].append(kept)
    bytes += kept.cost
  }

  private mutating func dropAll(where isGone: (EventMessage) -> Bool) {
    _ = drop(from: \.written) { isGone($0.message.event) }
    _ = drop(from: \.waiting) { isGone($0.message.event) }
  }

  /// Returns how many were dropped.
  private mutating func drop(from list: WritableKeyPath<Mailbox, [Kept]>, where isGone: (Kept) -> Bool) -> Int {
    guard self[keyPath: list].contains(where: isGone) else { return 0 }
    var freed = 0
    var count = 0
    self[keyPath: list].removeAll {
      guard isGone($0) else { return false }
      freed += $0.cost
      count += 1
      return true
    }
    bytes -= freed
    return count
  }

  /// Above a limit the older half is dropped, oldest first, so that this does not happen at each event.
  private mutating func makeRoom(_ limits: Limits) {
    guard written.count + waiting.count > limits.count || bytes > limits.bytes else { return }
    _ = drop(from: \.written, where: olderHalf(of: written))
    // The device sees from the gap that it missed events that were never written.
    lastSeq += UInt64(drop(from: \.waiting, where: olderHalf(of: waiting)))
  }

  private func olderHalf(of list: [Kept]) -> (Kept) -> Bool {
    var surplus = (list.count + 1) / 2
    return { kept in
      guard surplus > 0, !kept.message.event.body.isEnvelope else { return false }
      surplus -= 1
      return true
    }
  }
}
