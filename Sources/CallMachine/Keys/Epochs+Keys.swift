import CallMessages
import Contract
import MediaModel

/// Handing out and accepting keys (Epochs 4, 5 and 7).
extension Epochs {
  /// `/keys`: all or nothing.
  mutating func handOut(
    _ envelopes: [Envelope], epoch: UInt32, from device: Device, now: Timestamp, out: inout Outputs
  ) throws(RequestError) -> KeysDelivered {
    guard isJoined(device, on: newest) else {
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
    let left = asking.needing.filter { $0 != device && lacking.contains($0) && isJoined($0, on: newest) }
    missing = Set(left)
    phase = .spreading
    awaited = Set(unopened.keys.filter { keyedDevices[$0]?.isConnected == true })
    let time = asking.somebodyWent ? Self.hurriedSpreadTime : Self.spreadTime
    out.set(.spread, at: now + time)
    assignOpenDemands(now: now, out: &out)
    switchIfOpened(now: now, out: &out)
    return KeysDelivered(delivered: delivered, missing: left)
  }

  private mutating func answerDemands(
    _ envelopes: [Envelope], from device: Device, now: Timestamp, out: inout Outputs
  ) throws(RequestError) -> KeysDelivered {
    guard !envelopes.isEmpty, envelopes.allSatisfy({ isWanted(for: $0.to, from: device) }) else {
      throw RequestError(.keysEpochStale, "another device has handed out this epoch's key")
    }
    let delivered = deliver(envelopes, from: device, out: &out)
    if case .spreading = phase {
      for to in delivered where keyedDevices[to]?.isConnected == true { awaited.insert(to) }
    }
    return KeysDelivered(delivered: delivered, missing: [])
  }

  /// Sends the envelopes to the devices that are still in the call; returns the recipients.
  private mutating func deliver(_ envelopes: [Envelope], from device: Device, out: inout Outputs) -> [Device] {
    var delivered: [Device] = []
    for envelope in envelopes where isJoined(envelope.to, on: newest) {
      var envelope = envelope
      envelope.from = device
      out.event(.envelope(envelope), to: .devices([envelope.to]))
      delivered.append(envelope.to)
      unopened[envelope.to] = device
      missing.remove(envelope.to)
      lacking.remove(envelope.to)
      demands[envelope.to]?.isOpen = false
    }
    return delivered
  }

  /// ACK or NACK of an envelope (Epochs 5 and 6).
  mutating func acknowledge(_ device: Device, epoch: UInt32, accepted: Bool, now: Timestamp, out: inout Outputs) {
    guard epoch == newest.number, unopened.removeValue(forKey: device) != nil else { return }
    guard accepted else {
      lacking.insert(device)
      // It is awaited until its next envelope, or until the time is over.
      return demand(device, now: now, out: &out)
    }
    guard case .spreading = phase else { return }
    awaited.remove(device)
    switchIfOpened(now: now, out: &out)
  }

  /// `keys/wait`: the device keeps its envelope closed until its user trusts the sender, who is told once. The switch does not wait for the device,
  /// and no key is requested for it.
  mutating func wait(_ device: Device, epoch: UInt32, now: Timestamp, out: inout Outputs) throws(RequestError) {
    guard epoch >= newest.number else { throw RequestError(.keysEpochStale, "a newer epoch has begun") }
    guard epoch == newest.number, let keyedDevice = keyedDevices[device], newest.holds(keyedDevice) else {
      throw RequestError(.keysNotAllowed, "this device is not on the list of that epoch")
    }
    guard let sender = unopened[device] ?? ringSender(for: device) else {
      throw RequestError(.keysNotAllowed, "no envelope of that epoch waits for this device")
    }
    guard waiting.insert(device).inserted else { return }
    if keyedDevices[sender] != nil {
      let event = KeysWaiting(epoch: epoch, participant: keyedDevice.number, reason: .trust)
      out.event(.keyWaiting(event), to: .devices([sender]))
    }
    awaited.remove(device)
    switchIfOpened(now: now, out: &out)
  }

  /// The sender of the envelope that came with the device's ring.
  private func ringSender(for device: Device) -> Device? {
    newest.entry(of: device)?.participant == 0 ? distributor : nil
  }
}

extension Envelope {
  /// - Throws: `keys.too-large` over 4 KiB (protocol section 5, "Envelope"), `request.invalid` for another epoch, a key hash of another size, or an
  ///   algorithm name over 64 bytes.
  func check(epoch: UInt32, field: String) throws(RequestError) {
    guard self.epoch == epoch else {
      throw RequestError(.requestInvalid, "an envelope is of another epoch", field: "\(field).epoch")
    }
    guard ciphertext.bytes.count + (signature?.bytes.count ?? 0) <= 4_096 else {
      throw RequestError(.keysTooLarge, "an envelope has at most 4 KiB", field: field)
    }
    guard key.bytes.count == 32 else {
      throw RequestError(.requestInvalid, "key is the SHA-256 of a public key, 32 bytes", field: "\(field).key")
    }
    guard (1...64).contains(alg.utf8.count), (sigAlg?.utf8.count ?? 1) <= 64 else {
      throw RequestError(.requestInvalid, "an algorithm's name has 1 to 64 bytes", field: "\(field).alg")
    }
  }
}
