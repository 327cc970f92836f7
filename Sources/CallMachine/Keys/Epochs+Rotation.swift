import CallMessages
import Contract
import MediaModel

/// Announcing an epoch and finding its leader (Epochs 2 to 4), and switching to it (Epochs 5).
extension Epochs {
  /// How long changes wait for others: 100 ms, so that a newcomer has its key soon. If devices only joined, a quarter of a millisecond for each device on the list,
  /// at most 300 ms, because an announcement to many costs more. Consents alone wait longer.
  private func batchTime(of pending: Pending) -> Duration {
    guard !pending.waitsForConsents else { return Self.consentTime }
    guard pending.joinsOnly else { return Self.batchTime }
    return min(max(Self.batchTime, .microseconds(250 * newest.list.count)), Self.longestBatchTime)
  }

  /// Starts the next epoch once its changes have waited long enough and a device is connected that can make its key.
  mutating func startIfDue(now: Timestamp, out: inout Outputs) {
    guard case .settled = phase, let pending else { return }
    let due = pending.since + batchTime(of: pending)
    guard due <= now else { return out.set(.batch, at: due) }
    guard keyedDevices.isEmpty || keyedDevices.values.contains(where: \.isConnected) else { return }
    start(pending, now: now, out: &out)
  }

  private mutating func start(_ changes: Pending, now: Timestamp, out: inout Outputs) {
    let old = newest
    let leader = nextLeader(list: keyedDevices, before: old, tried: [])
    let mode = mode(changes, leader: leader, before: old)
    pending = nil
    out.cancel(.batch)
    supersede(old.number + 1, out: &out)
    before = old
    newest = AnnouncedEpoch(
      number: old.number + 1, mode: mode, call: call, previous: old.listHash,
      entries: keyedDevices.values.map(\.entry), admissions: admissions, digest: digest)
    links.append(newest.link)
    if links.count > EpochLink.maximumKept { links.removeFirst() }
    confirmations = KeyConfirmations(count: newest.list.count)
    guard let leader else {
      // No device with keys is left in the call.
      return switchKeys(now: now, out: &out)
    }
    let needing = newest.list.filter { entry in
      mode == .fresh || !old.holdsJoin(entry.address, entry.joinId)
    }
    lacking = Set(needing.map(\.address))
    phase = .asking(
      Asking(
        leader: leader, asked: [leader], tried: [leader], somebodyWent: changes.somebodyWent,
        needing: needing.map(\.address)))
    // The leader works while the others get the list. Newcomers need the list for their envelopes.
    ask(leader, now: now, out: &out)
    announce(to: newest.list.filter { $0.address != leader }, leader: leader, out: &out)
  }

  private func mode(_ changes: Pending, leader: Device?, before old: AnnouncedEpoch) -> RotationMode {
    // Clients refuse a ratchet without a newcomer: a server could call each epoch one, and no key would ever heal.
    guard changes.joinsOnly, !changes.waitsForConsents, current == old.number, !old.isOfRing, let leader,
      let keyedDevice = keyedDevices[leader],
      old.holdsJoin(leader, keyedDevice.joinId)
    else { return .fresh }
    let fingerprints = Set(keyedDevices.values.map(\.keys.fingerprint))
    return old.list.allSatisfy { fingerprints.contains($0.fingerprint) } ? .ratchet : .fresh
  }

  /// The lowest connected number that was on the previous list in the same stay; if there is none, the lowest connected one
  /// (Epochs 4).
  private func nextLeader(list: [Device: KeyedDevice], before old: AnnouncedEpoch?, tried: Set<Device>) -> Device? {
    var lowest: KeyedDevice?
    var lowestOfOld: KeyedDevice?
    for keyedDevice in list.values where keyedDevice.isConnected && !tried.contains(keyedDevice.device) {
      if keyedDevice.number < lowest?.number ?? .max { lowest = keyedDevice }
      if keyedDevice.number < lowestOfOld?.number ?? .max,
        old?.holdsJoin(keyedDevice.device, keyedDevice.joinId) == true
      {
        lowestOfOld = keyedDevice
      }
    }
    return (lowestOfOld ?? lowest)?.device
  }

  /// The leader failed: asks the next one on the list.
  mutating func askNext(now: Timestamp, out: inout Outputs) {
    guard case .asking(var asking) = phase else { return }
    let candidates = keyedDevices.filter { newest.holds($0.value) }
    asking.leader = nextLeader(list: candidates, before: before, tried: asking.tried)
    if let leader = asking.leader {
      asking.asked.insert(leader)
      asking.tried.insert(leader)
      phase = .asking(asking)
      ask(leader, now: now, out: &out)
    } else {
      out.cancel(.leader)
      phase = .asking(asking)
      if pending != nil || candidates.isEmpty { giveUp(now: now, out: &out) }
    }
  }

  private mutating func ask(_ leader: Device, now: Timestamp, out: inout Outputs) {
    guard case .asking(let asking) = phase, let entry = newest.entry(of: leader) else { return }
    let deliver = asking.needing.filter { $0 != leader && isJoined($0, on: newest) }.compactMap(entryForLeader)
    announce(to: [entry], leader: leader, deliver: deliver, out: &out)
    out.set(.leader, at: now + Self.leaderTime)
  }

  /// An entry with everything needed to seal an envelope for it.
  func entryForLeader(of device: Device) -> ListEntry? {
    guard var entry = newest.entryWithKeys(of: device) else { return nil }
    if let keyedDevice = keyedDevices[device], keyedDevice.joinId == entry.joinId {
      entry.refresh = keyedDevice.refresh
    }
    return entry
  }

  /// `keys.rotate`: the difference for devices that have the previous list, the whole list for new ones.
  private func announce(to entries: [ListEntry], leader: Device, deliver: [ListEntry]? = nil, out: inout Outputs) {
    guard let number = keyedDevices[leader]?.number else { return }
    let known = entries.filter { before?.holdsJoin($0.address, $0.joinId) == true }.map(\.address)
    let new = entries.filter { before?.holdsJoin($0.address, $0.joinId) != true }.map(\.address)
    func rotate(
      added: [ListEntry]? = nil, removed: [ParticipantNumber]? = nil, list: [ListEntry]? = nil,
      words: [Admissions.Subject: Admission]
    ) -> EventBody {
      let shown = admissions.shown(words, besides: newest.fingerprints)
      return .rotate(
        Rotate(
          epoch: newest.number, mode: newest.mode, leader: number,
          previous: newest.previous, listHash: newest.listHash, added: added, removed: removed, list: list,
          deliver: deliver, admissions: shown.admissions, signers: shown.signers))
    }
    if !new.isEmpty { out.event(rotate(list: newest.list, words: newest.words), to: .devices(new)) }
    if !known.isEmpty {
      let added = newest.list.filter { before?.entry(of: $0.address) != $0 }
      let removed = before?.list.filter { $0.participant > 0 && newest.entry(of: $0.address) != $0 } ?? []
      let words = newest.words.filter { before?.words[$0.key] != $0.value }
      out.event(rotate(added: added, removed: removed.map(\.participant), words: words), to: .devices(known))
    }
  }

  /// Voids everything that belongs to the previous epoch.
  private mutating func supersede(_ number: UInt32, out: inout Outputs) {
    if !ringEnvelopes.isEmpty { out.tell(.ringEnvelopesSuperseded(ringEnvelopes.keys.sorted())) }
    ringEnvelopes = [:]
    if !unopened.isEmpty { out.tell(.envelopesSuperseded(unopened.keys.sorted(), by: number)) }
    out.cancel(.confirmed)
    isTelling = false
    unopened = [:]
    awaited = []
    waiting = []
    missing = []
    lacking = []
    demands = [:]
    distributor = nil
  }

  /// Switches when no connected device is awaited any longer.
  mutating func switchIfOpened(now: Timestamp, out: inout Outputs) {
    guard case .spreading = phase, awaited.isEmpty else { return }
    switchKeys(now: now, out: &out)
  }

  mutating func switchKeys(now: Timestamp, out: inout Outputs) {
    out.cancel(.leader)
    out.cancel(.spread)
    phase = .settled
    current = newest.number
    let devices = newest.list.map(\.address).filter { isJoined($0, on: newest) }
    if !devices.isEmpty { out.event(.switchKeys(SwitchKeys(epoch: current)), to: .devices(devices)) }
    // A ratchet does not heal a compromise, so joins must not postpone the next fresh secret.
    if newest.mode == .fresh { out.set(.rotate, at: now + rotationTime) }
    askForMissing(out: &out)
    startIfDue(now: now, out: &out)
  }
}
