import CallMessages
import Contract
import MediaModel

/// Requesting a key that did not arrive (Epochs 6), and keys for devices that the leader left out (Epochs 4).
extension Epochs {
  /// `keys/request`.
  mutating func request(_ device: Device, epoch: UInt32?, now: Timestamp, out: inout Outputs) throws(RequestError) {
    let epoch = epoch ?? newest.number
    guard epoch >= newest.number else { throw RequestError(.keysEpochStale, "a newer epoch has begun") }
    guard epoch == newest.number, isJoined(device, on: newest) else {
      throw RequestError(.keysNotAllowed, "this device is not on the list of that epoch")
    }
    if case .asking(let asking) = phase, asking.leader == device {
      guard newest.mode == .ratchet else {
        throw RequestError(.keysNotAllowed, "this device is to make the key itself")
      }
      // The leader lacks the old secret, so it cannot ratchet: a fresh epoch follows (Epochs 4).
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

  mutating func demand(_ device: Device, now: Timestamp, out: inout Outputs) {
    guard demands[device]?.count ?? 0 < Self.maximumDemands else { return }
    demands[device, default: KeyDemand()].count += 1
    demands[device]?.isOpen = true
    // While the leader is asked, its answer may bring the key; if it does not, the leader is told then.
    if case .asking = phase { return }
    assign(device, now: now, out: &out)
  }

  mutating func assignOpenDemands(now: Timestamp, out: inout Outputs) {
    for device in demands.filter({ $0.value.isOpen }).keys.sorted() { assign(device, now: now, out: &out) }
  }

  /// Tells a device that has the key to send it.
  private mutating func assign(_ device: Device, now: Timestamp, out: inout Outputs) {
    guard demands[device]?.isOpen == true else { return }
    if missing.contains(device) { return askOthers(for: device, out: &out) }
    guard let holder = holder(for: device) else {
      // No connected device has the key.
      return change(.due, now: now, out: &out)
    }
    ask([holder], for: device, out: &out)
  }

  private mutating func ask(_ holders: [Device], for device: Device, out: inout Outputs) {
    guard !holders.isEmpty, let entry = entryForLeader(of: device) else { return }
    demands[device, default: KeyDemand()].asked += holders
    out.event(.keyRequest(KeyRequest(epoch: newest.number, to: entry)), to: .devices(holders))
  }

  /// The leader that handed it out, then the lowest connected number that seems to have the key. A device that was asked before and sent nothing comes last: it
  /// may be dead although its connection still exists.
  private func holder(for device: Device) -> Device? {
    let asked = demands[device]?.asked ?? []
    if let distributor, distributor != device, !asked.contains(distributor),
      keyedDevices[distributor]?.isConnected == true
    {
      return distributor
    }
    return newest.byNumber.first { $0 != device && !asked.contains($0) && isHolder($0) } ?? asked.first(where: isHolder)
  }

  private func isHolder(_ device: Device) -> Bool {
    keyedDevices[device]?.isConnected == true && isJoined(device, on: newest) && !lacking.contains(device)
      && unopened[device] == nil
  }

  // MARK: left out by the leader

  /// Called at the switch, when others have the key: they may give it to a device that the leader does not trust.
  mutating func askForMissing(out: inout Outputs) {
    guard !missing.isEmpty else { return }
    for device in missing.sorted().prefix(Self.maximumMissing) {
      demands[device, default: KeyDemand()].isOpen = true
      askOthers(for: device, out: &out)
    }
  }

  /// The lowest numbers that were not asked yet; after all of them the leader once more, because it may trust the
  /// device by now.
  private mutating func askOthers(for device: Device, out: inout Outputs) {
    let asked = demands[device]?.asked ?? []
    var next: [Device] = []
    for other in newest.byNumber where other != device && other != distributor && !asked.contains(other) {
      if isHolder(other) { next.append(other) }
      if next.count == Self.askedForMissing { break }
    }
    if next.isEmpty, let distributor, keyedDevices[distributor]?.isConnected == true, demands[device]?.count ?? 0 > 0 {
      return ask([distributor], for: device, out: &out)
    }
    ask(next, for: device, out: &out)
  }

  /// Whether an envelope that `sender` hands out for `device` after the leader's answer counts. The leader may change its mind about a device that it left
  /// out.
  func isWanted(for device: Device, from sender: Device) -> Bool {
    if sender == distributor, missing.contains(device) { return true }
    return demands[device].map { $0.isOpen && $0.asked.contains(sender) } ?? false
  }

  /// The device that was to send a key is gone: another one is told.
  mutating func passOnDemands(of device: Device, now: Timestamp, out: inout Outputs) {
    guard !demands.isEmpty else { return }
    let orphans = demands.filter { $0.value.isOpen && $0.value.asked.last == device }.keys.sorted()
    for orphan in orphans { assign(orphan, now: now, out: &out) }
  }
}

/// A device that lacks the newest epoch's key and reported that (Epochs 6).
struct KeyDemand {
  /// How often it asked; at most three times.
  var count = 0
  /// It waits for an envelope.
  var isOpen = false
  /// Devices that were told to send an envelope; only the last is still pending.
  var asked: [Device] = []
}
