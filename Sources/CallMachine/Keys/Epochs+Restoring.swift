import CallMessages
import Contract
import MediaModel

/// Across a restart (rule 11): an epoch whose key was under way is abandoned for the next one, which is fresh.
extension Epochs {
  var isSettled: Bool { if case .settled = phase { pending == nil } else { false } }

  var stored: StoredEpoch {
    StoredEpoch(
      number: newest.number, mode: newest.mode, previous: newest.previous,
      ringing: newest.list.filter { $0.participant == 0 })
  }

  /// - Parameters:
  ///   - keyedDevices: the devices at the restart; none is connected.
  ///   - keys: of a device that is on the list without having joined.
  ///   - unopened: devices with an envelope of the newest epoch, and its sender.
  init(
    restoring written: Stored.CallRecord, keyedDevices: [Device: KeyedDevice], unopened: [Device: Device],
    keys: (Device) -> DeviceEntry?, rotationTime: Duration, digest: @escaping ([UInt8]) -> [UInt8], now: Timestamp
  ) {
    let stored = written.epoch
    let progress = written.progress
    call = written.call.id
    self.digest = digest
    self.rotationTime = rotationTime
    self.keyedDevices = keyedDevices
    current = progress.epoch
    let entries = (written.entries + stored.ringing).map { entry in
      var entry = entry
      let known = keyedDevices[entry.address]?.keys ?? keys(entry.address)
      entry.keys = known?.fingerprint == entry.fingerprint ? known?.keys : nil
      return entry
    }
    admissions = Admissions(restoring: written.words, written.signers)
    newest = AnnouncedEpoch(
      number: stored.number, mode: stored.mode, call: call, previous: stored.previous, entries: entries,
      admissions: admissions, digest: digest)
    links = written.epochLinks
    confirmations = KeyConfirmations(restoring: written.confirmations, newest.list)
    // The last confirmations may not have been announced.
    isTelling = !confirmations.buckets.isEmpty
    distributor = progress.distributor.flatMap { keyedDevices[$0] == nil ? nil : $0 }
    self.unopened = unopened
    rotateAt = progress.rotateAt
    for envelope in written.ringEnvelopes { ringEnvelopes[envelope.to] = envelope }
    // Its list lacks the last joins and departures.
    if !progress.isSettled { pending = Pending(since: now, joinsOnly: false, somebodyWent: true) }
  }
}
