import Contract
import MediaModel

/// Handing out keys, and asking for one (Epochs 4 to 7).
extension Epochs {
  /// `/keys`: all or nothing.
  mutating func handOut(
    _ envelopes: [Envelope], epoch: UInt32, from device: Device, now: Timestamp, out: inout Outputs
  ) throws(RequestError) -> KeysDelivered {
    guard seat(device, isOn: newest) else {
      throw RequestError(.keysNotAllowed, "this device is not on the list of the newest epoch")
    }
    guard epoch >= newest.number else { throw RequestError(.keysEpochStale, "a newer epoch has begun") }
    guard epoch == newest.number else { throw RequestError(.keysNotAllowed, "that epoch has not begun") }
    try check(envelopes)
    switch phase {
    case .asking(let asking):
      guard asking.asked.contains(device) else {
        throw RequestError(.keysNotAllowed, "this device was not asked for the key")
      }
      return answer(asking, envelopes, from: device, now: now, out: &out)
    case .spreading, .settled:
      return try answerDemands(envelopes, from: device, now: now, out: &out)
    }
  }

  private func check(_ envelopes: [Envelope]) throws(RequestError) {
    var seen: Set<Device> = []
    for (place, envelope) in envelopes.enumerated() {
      try envelope.check(epoch: newest.number, field: "envelopes.\(place)")
      guard newest.entry(of: envelope.to) != nil else {
        throw RequestError(
          .keysNotAllowed, "an envelope is for a device that is not on the list", field: "envelopes.\(place).to")
      }
      guard seen.insert(envelope.to).inserted else {
        throw RequestError(.requestInvalid, "a device has two envelopes", field: "envelopes.\(place).to")
      }
    }
  }

  private mutating func answer(
    _ asking: Asking, _ envelopes: [Envelope], from device: Device, now: Timestamp, out: inout Outputs
  ) -> KeysDelivered {
    out.cancel(.leader)
    distributor = device
    let delivered = deliver(envelopes, from: device, out: &out)
    lacking.remove(device)
    let missing = asking.needing.filter { $0 != device && lacking.contains($0) && seats[$0] != nil }
    phase = .spreading(Spreading(awaited: unopened.filter { seats[$0]?.isConnected == true }))
    let time = asking.somebodyWent ? Self.hurriedSpreadTime : Self.spreadTime
    out.set(.spread, at: now + time)
    assignOpenDemands(now: now, out: &out)
    switchIfOpened(now: now, out: &out)
    return KeysDelivered(delivered: delivered, missing: missing)
  }

  private mutating func answerDemands(
    _ envelopes: [Envelope], from device: Device, now: Timestamp, out: inout Outputs
  ) throws(RequestError) -> KeysDelivered {
    let isAsked = envelopes.allSatisfy { demands[$0.to].map { $0.isOpen && $0.asked.contains(device) } ?? false }
    guard !envelopes.isEmpty, isAsked else {
      throw RequestError(.keysEpochStale, "another device has handed out this epoch's key")
    }
    let delivered = deliver(envelopes, from: device, out: &out)
    if case .spreading(var spreading) = phase {
      for to in delivered where seats[to]?.isConnected == true { spreading.awaited.insert(to) }
      phase = .spreading(spreading)
    }
    return KeysDelivered(delivered: delivered, missing: [])
  }

  /// Sends the envelopes to those that are still in the call; returns to whom.
  private mutating func deliver(_ envelopes: [Envelope], from device: Device, out: inout Outputs) -> [Device] {
    var delivered: [Device] = []
    for envelope in envelopes where seat(envelope.to, isOn: newest) {
      var envelope = envelope
      envelope.from = device
      out.event(.envelope(envelope), to: .devices([envelope.to]))
      delivered.append(envelope.to)
      unopened.insert(envelope.to)
      lacking.remove(envelope.to)
      demands[envelope.to]?.isOpen = false
    }
    return delivered
  }

  /// ACK or NACK of an envelope (Epochs 5 and 6).
  mutating func acknowledge(_ device: Device, epoch: UInt32, accepted: Bool, now: Timestamp, out: inout Outputs) {
    guard epoch == newest.number, unopened.remove(device) != nil else { return }
    guard accepted else {
      lacking.insert(device)
      // It is waited for until its next envelope, or the time is over.
      return demand(device, now: now, out: &out)
    }
    guard case .spreading(var spreading) = phase else { return }
    spreading.awaited.remove(device)
    phase = .spreading(spreading)
    switchIfOpened(now: now, out: &out)
  }

  /// `keys/request`.
  mutating func request(_ device: Device, epoch: UInt32?, now: Timestamp, out: inout Outputs) throws(RequestError) {
    let epoch = epoch ?? newest.number
    guard epoch >= newest.number else { throw RequestError(.keysEpochStale, "a newer epoch has begun") }
    guard epoch == newest.number, seat(device, isOn: newest) else {
      throw RequestError(.keysNotAllowed, "this device is not on the list of that epoch")
    }
    if case .asking(let asking) = phase, asking.leader == device {
      guard newest.mode == .ratchet else {
        throw RequestError(.keysNotAllowed, "this device is to make the key itself")
      }
      // Who is to ratchet lacks the old secret: a fresh epoch follows (Epochs 4).
      out.cancel(.leader)
      phase = .settled
      return change(.due, now: now, out: &out)
    }
    guard (demands[device]?.count ?? 0) < Self.maximumDemands else {
      throw RequestError(
        .rateLimited, "this epoch's key was asked for 3 times: the next epoch will bring one",
        retryAfterMs: Self.demandPause)
    }
    lacking.insert(device)
    demand(device, now: now, out: &out)
  }

  private mutating func demand(_ device: Device, now: Timestamp, out: inout Outputs) {
    guard demands[device]?.count ?? 0 < Self.maximumDemands else { return }
    demands[device, default: KeyDemand()].count += 1
    demands[device]?.isOpen = true
    // While the leader is asked its answer may bring the key; if it does not, it is told then.
    if case .asking = phase { return }
    assign(device, now: now, out: &out)
  }

  private mutating func assignOpenDemands(now: Timestamp, out: inout Outputs) {
    for device in demands.filter({ $0.value.isOpen }).keys.sorted() { assign(device, now: now, out: &out) }
  }

  /// Tells one that has the key to send it.
  private mutating func assign(_ device: Device, now: Timestamp, out: inout Outputs) {
    guard demands[device]?.isOpen == true, let entry = newest.entryWithKeys(of: device) else { return }
    guard let holder = holder(for: device) else {
      // Nobody that is there has the key.
      return change(.due, now: now, out: &out)
    }
    demands[device]?.asked.append(holder)
    out.event(.keyRequest(KeyRequest(epoch: newest.number, to: entry)), to: .devices([holder]))
  }

  /// The leader that handed it out; without it the lowest connected number that seems to have the key.
  private func holder(for device: Device) -> Device? {
    if let distributor, distributor != device, seats[distributor]?.isConnected == true { return distributor }
    let holders = seats.values.filter {
      $0.isConnected && $0.device != device && newest.holds($0) && !lacking.contains($0.device)
        && !unopened.contains($0.device)
    }
    return holders.min { $0.number < $1.number }?.device
  }

  /// The device that was to send a key is not there any more: another is told.
  mutating func passOnDemands(of device: Device, now: Timestamp, out: inout Outputs) {
    let orphans = demands.filter { $0.value.isOpen && $0.value.asked.last == device }.keys.sorted()
    for orphan in orphans { assign(orphan, now: now, out: &out) }
  }
}
