import Contract
import MediaModel

/// Over a restart (rule 11): an epoch whose key was under way is given up for the next, which is a fresh one.
extension Epochs {
  var isSettled: Bool { if case .settled = phase { pending == nil } else { false } }

  var stored: StoredEpoch {
    StoredEpoch(
      number: newest.number, mode: newest.mode, list: newest.list, hadRingEnvelopes: newest.hadRingEnvelopes)
  }

  /// - Parameters:
  ///   - seats: of the joined devices; none is connected.
  ///   - keys: of a device that is on the list without a seat.
  ///   - unopened: devices with an envelope of the newest epoch.
  init(
    restoring stored: StoredEpoch, _ progress: StoredProgress, seats: [Device: Seat], ringEnvelopes: [Envelope],
    unopened: Set<Device>, keys: (Device) -> DeviceEntry?, rotationTime: Duration,
    digest: @escaping ([UInt8]) -> [UInt8], now: Timestamp
  ) {
    self.digest = digest
    self.rotationTime = rotationTime
    self.seats = seats
    current = progress.epoch
    let entries = stored.list.map { entry in
      var entry = entry
      let known = seats[entry.address]?.keys ?? keys(entry.address)
      entry.keys = known?.fingerprint == entry.fingerprint ? known?.keys : nil
      return entry
    }
    newest = Epoch(
      number: stored.number, mode: stored.mode, entries: entries, hadRingEnvelopes: stored.hadRingEnvelopes,
      digest: digest)
    distributor = progress.distributor.flatMap { seats[$0] == nil ? nil : $0 }
    self.unopened = unopened
    rotateAt = progress.rotateAt
    for envelope in ringEnvelopes { self.ringEnvelopes[envelope.to] = envelope }
    // Its list says nothing of who went or came in the last moments.
    if !progress.isSettled { pending = Pending(since: now, joinsOnly: false, somebodyWent: true) }
  }
}
