import CallMessages
import Contract
import MediaModel

/// Keys: for participants only (protocol section 5).
extension Call {
  mutating func handOut(
    _ keys: HandOutKeys, from device: Device, now: Timestamp, out: inout Outputs
  ) throws(RequestError) -> KeysDelivered {
    _ = try participant(of: device)
    return try epochs.handOut(keys.envelopes, epoch: keys.epoch, from: device, now: now, out: &out)
  }

  mutating func requestKey(
    _ epoch: UInt32?, from device: Device, now: Timestamp, out: inout Outputs
  ) throws(RequestError) {
    _ = try participant(of: device)
    try epochs.request(device, epoch: epoch, now: now, out: &out)
  }

  func keyList(_ request: ListKeys, for device: Device) throws(RequestError) -> KeyList {
    _ = try participant(of: device)
    return try epochs.list(since: request.since)
  }

  mutating func waitForKey(
    _ request: WaitForKey, from device: Device, now: Timestamp, out: inout Outputs
  ) throws(RequestError) {
    _ = try participant(of: device)
    try epochs.wait(device, epoch: request.epoch, now: now, out: &out)
  }

  mutating func confirmKey(
    _ request: ConfirmKey, from device: Device, now: Timestamp, out: inout Outputs
  ) throws(RequestError) {
    _ = try participant(of: device)
    try epochs.confirm(request, from: device, now: now, out: &out)
    // The refreshed join key is stored with the participant.
    if request.joinKey != nil { journal.touched.insert(device.user) }
  }

  func confirmations(_ request: ListConfirmations, for device: Device) throws(RequestError) -> ConfirmationTags {
    _ = try participant(of: device)
    return try epochs.tags(request, for: device)
  }

  /// A device opened its envelope, or could not open it.
  mutating func acknowledge(_ device: Device, epoch: UInt32, accepted: Bool, now: Timestamp, out: inout Outputs) {
    epochs.acknowledge(device, epoch: epoch, accepted: accepted, now: now, out: &out)
  }

  /// A device has received its ring's envelope.
  mutating func ringAcknowledged(_ device: Device) { epochs.forgetRingEnvelopes { $0 == device } }

  func devicesChanged(_ user: UserID, out: inout Outputs) {
    out.event(.devicesChanged(DevicesChanged(user: user)), to: .users(members.filter(\.isJoined).map(\.user)))
  }
}
