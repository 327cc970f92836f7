import CallMessages
import Contract
import MediaModel

/// Devices tell each other that they share the newest epoch's secret, and refresh their join keys at the same time (Epochs 9). Nothing here delays a
/// switch.
extension Epochs {
  /// `keys/confirm`. The tag and the refreshed join key take effect together, or neither does.
  mutating func confirm(
    _ request: ConfirmKey, from device: Device, now: Timestamp, out: inout Outputs
  ) throws(RequestError) {
    guard request.epoch >= newest.number else { throw RequestError(.keysEpochStale, "a newer epoch has begun") }
    guard request.epoch == newest.number, request.epoch > 1, isJoined(device, on: newest),
      let place = newest.place(of: device)
    else {
      throw RequestError(
        .keysNotAllowed, "only a device on the list of an epoch confirms it, and epoch 1 is not confirmed")
    }
    guard request.tag.bytes.count == KeyConfirmations.tagSize else {
      throw RequestError(.requestInvalid, "a tag has 16 bytes", field: "tag")
    }
    if let joinKey = request.joinKey { try refresh(joinKey, of: device) }
    guard confirmations.add(request.tag, at: place) else { return }
    if confirmations.isComplete {
      out.cancel(.confirmed)
      tellConfirmed(out: &out)
    } else if !isTelling {
      isTelling = true
      out.set(.confirmed, at: now + confirmationTime)
    }
  }

  /// How long confirmations are gathered: with 1,000 devices each gets them about three times per epoch.
  private var confirmationTime: Duration { max(.seconds(1), .milliseconds(5 * newest.list.count)) }

  /// Keeps the next generation of the device's join key; the same one again is a repetition.
  private mutating func refresh(_ joinKey: JoinKey, of device: Device) throws(RequestError) {
    try joinKey.check()
    guard let keyedDevice = keyedDevices[device] else { return }
    let stored = keyedDevice.refresh ?? keyedDevice.joinKey
    if joinKey == stored, joinKey.generation > 0 { return }
    guard stored.generation < .max, joinKey.generation == stored.generation + 1 else {
      throw RequestError(
        .requestInvalid, "the join key of generation \(stored.generation) is known: the next one is wanted",
        field: "joinKey")
    }
    keyedDevices[device]?.refresh = joinKey
  }

  /// `keys.confirmed`: what has changed since it was last sent.
  mutating func tellConfirmed(out: inout Outputs) {
    isTelling = false
    let buckets = confirmations.takeChanged()
    guard !buckets.isEmpty else { return }
    let devices = newest.list.map(\.address).filter { isJoined($0, on: newest) }
    guard !devices.isEmpty else { return }
    out.event(.confirmed(KeysConfirmed(epoch: newest.number, buckets: buckets)), to: .devices(devices))
  }

  /// `keys/confirmations`.
  func tags(
    _ request: ListConfirmations, for device: Device
  ) throws(RequestError) -> ConfirmationTags {
    guard request.epoch == newest.number else {
      throw RequestError(.keysEpochStale, "only the newest epoch's confirmations are kept")
    }
    guard isJoined(device, on: newest) else {
      throw RequestError(.keysNotAllowed, "this device is not on the list of the newest epoch")
    }
    guard let tags = confirmations.tags(in: request.bucket, of: newest.list) else {
      throw RequestError(.requestInvalid, "the list has no such bucket of 64 entries", field: "bucket")
    }
    return ConfirmationTags(tags: tags)
  }
}
