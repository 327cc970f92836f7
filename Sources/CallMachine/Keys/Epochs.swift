import CallMessages
import Contract
import MediaModel

/// The sequence of a call's media keys, as far as the server knows them: the lists, the leaders, the holders of each key, and the switches (protocol
/// section 5, "Epochs"). It never sees a key.
struct Epochs {
  /// A reason for the next epoch.
  enum Change {
    case joined
    /// A participant is gone: left, disconnected, or returned without its keys.
    case went
    /// `rotateMinutes` have passed, or nobody can hand out the old secret.
    case due
    /// Somebody agreed to be recorded, or no longer, or a recording stopped.
    case consented
  }

  /// The changes since the newest epoch was announced; they go into the next one together.
  struct Pending {
    var since: Timestamp
    /// Everybody who had the old secret may have the next one.
    var joinsOnly = true
    /// Only consents called for it.
    var waitsForConsents = false
    var somebodyWent = false
  }

  enum Phase {
    /// The newest epoch is in use, or was abandoned.
    case settled
    /// It is announced, and a leader was asked for its key.
    case asking(Asking)
    /// The key is being handed out.
    case spreading
  }

  struct Asking {
    /// nil once everyone that could be asked was asked.
    var leader: Device?
    /// Everyone asked so far: the first answer counts.
    var asked: Set<Device> = []
    /// Not to be asked again on their present connections.
    var tried: Set<Device> = []
    var somebodyWent: Bool
    /// Devices that need an envelope; the leader is left out when it is asked.
    var needing: [Device]
  }

  static let batchTime = Duration.milliseconds(100)
  static let longestBatchTime = Duration.milliseconds(300)
  /// How long a consent to be recorded waits for those of others.
  static let consentTime = Duration.seconds(2)
  static let leaderTime = Duration.seconds(3)
  static let spreadTime = Duration.seconds(2)
  static let hurriedSpreadTime = Duration.seconds(1)
  static let maximumDemands = 3
  /// The `retryAfterMs` of a device that asked too often: a rotation with a leader that fails takes no longer.
  static let demandPause = 3_000
  /// For how many devices without an envelope the server itself asks others; the rest ask for themselves, at different times.
  static let maximumMissing = 64
  /// How many devices are asked for the key of a device that the leader left out.
  static let askedForMissing = 3

  let call: CallID
  let digest: ([UInt8]) -> [UInt8]
  let rotationTime: Duration
  /// The joined devices that have keys.
  var keyedDevices: [Device: KeyedDevice] = [:]
  /// The epoch of the call's state: the one last switched to.
  var current: UInt32 = 1
  var newest: AnnouncedEpoch
  /// The list before the newest one.
  var before: AnnouncedEpoch?
  /// The last announced epochs, including the newest; numbers without gaps.
  var links: [EpochLink]
  var phase = Phase.settled
  /// While the key is being handed out: connected devices that have not acknowledged it.
  var awaited: Set<Device> = []
  var pending: Pending?
  /// The device that handed out the newest epoch's key.
  var distributor: Device?
  /// Devices on the newest list that do not have its key as far as is known: left out, or unable to open the envelope.
  var lacking: Set<Device> = []
  /// Devices with an unacknowledged envelope of the newest epoch, and its sender.
  var unopened: [Device: Device] = [:]
  /// Those among them that do not trust the sender, and reported that.
  var waiting: Set<Device> = []
  /// Devices that the leader left out although they are in the call.
  var missing: Set<Device> = []
  var demands: [Device: KeyDemand] = [:]
  var confirmations: KeyConfirmations
  /// The timer `confirmed` runs.
  var isTelling = false
  /// When `rotateMinutes` will have passed.
  var rotateAt: Timestamp?
  /// The words by which people joined.
  var admissions: Admissions
  /// Epoch 1's envelopes, for devices that are still ringing.
  var ringEnvelopes: [Device: Envelope] = [:]

  /// - Parameters:
  ///   - initiator: nil if its device has no keys.
  ///   - ringing: devices that get an envelope with the ring, as list entries with keys.
  ///   - admissions: the word of the initiator.
  init(
    call: CallID, initiator: KeyedDevice?, ringing: [ListEntry], envelopes: [Envelope], admissions: Admissions,
    rotationTime: Duration, digest: @escaping ([UInt8]) -> [UInt8], now: Timestamp, out: inout Outputs
  ) {
    self.call = call
    self.digest = digest
    self.rotationTime = rotationTime
    self.admissions = admissions
    newest = AnnouncedEpoch(
      number: 1, mode: .fresh, call: call, previous: AnnouncedEpoch.noHash,
      entries: (initiator.map { [$0.entry] } ?? []) + ringing, admissions: admissions, digest: digest)
    links = [newest.link]
    confirmations = KeyConfirmations(count: newest.list.count)
    for envelope in envelopes { ringEnvelopes[envelope.to] = envelope }
    if let initiator {
      keyedDevices[initiator.device] = initiator
      distributor = initiator.device
    }
    out.set(.rotate, at: now + rotationTime)
  }

  /// The epochs of a call without participants yet: the first device that joins makes epoch 1 (protocol section 11).
  init(call: CallID, rotationTime: Duration, digest: @escaping ([UInt8]) -> [UInt8]) {
    self.call = call
    self.digest = digest
    self.rotationTime = rotationTime
    current = 0
    admissions = Admissions()
    newest = AnnouncedEpoch(
      number: 0, mode: .fresh, call: call, previous: AnnouncedEpoch.noHash, entries: [], digest: digest)
    links = []
    confirmations = KeyConfirmations(count: 0)
  }

  /// `keys/list`: the newest epoch, and the chain from the one that the device knows.
  func list(since: UInt32?) throws(RequestError) -> KeyList {
    guard newest.number > 0 else {
      throw RequestError(.keysNotAllowed, "no device with keys has joined this call yet, so there is no list")
    }
    let shown = admissions.shown(newest.words, besides: newest.fingerprints)
    return KeyList(
      epoch: newest.number, mode: newest.mode, previous: newest.previous, listHash: newest.listHash, list: newest.list,
      links: since.map { since in links.filter { $0.epoch > since } } ?? [], confirmed: confirmations.buckets,
      admissions: shown.admissions, signers: shown.signers)
  }

  // MARK: what happens to devices

  mutating func join(_ keyedDevice: KeyedDevice, now: Timestamp, out: inout Outputs) {
    keyedDevices[keyedDevice.device] = keyedDevice
    // Epoch 1 does not wait for anybody else.
    if newest.number == 0, pending == nil { pending = Pending(since: now - Self.batchTime) }
    change(.joined, now: now, out: &out)
  }

  /// A device returns with a new joinId, or another one replaces it; `keyedDevice` is nil if that has no keys. In one step, so that no epoch begins in between.
  mutating func replace(_ device: Device, by keyedDevice: KeyedDevice?, now: Timestamp, out: inout Outputs) {
    guard keyedDevices.removeValue(forKey: device) != nil else {
      if let keyedDevice { join(keyedDevice, now: now, out: &out) }
      return
    }
    if let keyedDevice { keyedDevices[keyedDevice.device] = keyedDevice }
    vacate(device, keyedDevice?.device == device ? .joined : .went, now: now, out: &out)
  }

  mutating func leave(_ device: Device, now: Timestamp, out: inout Outputs) {
    guard keyedDevices.removeValue(forKey: device) != nil else { return }
    vacate(device, .went, now: now, out: &out)
  }

  mutating func connect(_ device: Device, now: Timestamp, out: inout Outputs) {
    guard keyedDevices[device]?.isConnected == false else { return }
    keyedDevices[device]?.isConnected = true
    switch phase {
    case .asking(let asking): if asking.leader == nil { askNext(now: now, out: &out) }
    case .spreading: if unopened[device] != nil, !waiting.contains(device) { awaited.insert(device) }
    case .settled: startIfDue(now: now, out: &out)
    }
  }

  mutating func disconnect(_ device: Device, now: Timestamp, out: inout Outputs) {
    guard keyedDevices[device]?.isConnected == true else { return }
    keyedDevices[device]?.isConnected = false
    stopWaiting(for: device, now: now, out: &out)
  }

  /// The device's stay is over: it is no longer joined, or its next stay has begun.
  private mutating func vacate(_ device: Device, _ change: Change, now: Timestamp, out: inout Outputs) {
    unopened[device] = nil
    waiting.remove(device)
    missing.remove(device)
    lacking.remove(device)
    demands[device] = nil
    if distributor == device { distributor = nil }
    // Noted first, because an epoch that can start now must include it.
    note(change, now: now)
    stopWaiting(for: device, now: now, out: &out)
    proceed(now: now, out: &out)
  }

  /// The device is no longer connected, or no longer in the call.
  private mutating func stopWaiting(for device: Device, now: Timestamp, out: inout Outputs) {
    switch phase {
    case .asking(var asking):
      asking.tried.remove(device)
      if !isJoined(device, on: newest) { asking.asked.remove(device) }
      let wasLeader = asking.leader == device
      if wasLeader { asking.leader = nil }
      phase = .asking(asking)
      if wasLeader { askNext(now: now, out: &out) }
    case .spreading:
      awaited.remove(device)
      switchIfOpened(now: now, out: &out)
    case .settled: break
    }
    passOnDemands(of: device, now: now, out: &out)
  }

  // MARK: the next epoch

  mutating func change(_ change: Change, now: Timestamp, out: inout Outputs) {
    note(change, now: now)
    proceed(now: now, out: &out)
  }

  private mutating func note(_ change: Change, now: Timestamp) {
    if change == .consented {
      if pending == nil { pending = Pending(since: now, waitsForConsents: true) }
      return
    }
    // Others do not wait for consents.
    if pending == nil || pending?.waitsForConsents == true { pending = Pending(since: now) }
    switch change {
    case .joined, .consented: break
    case .went:
      pending?.joinsOnly = false
      pending?.somebodyWent = true
    case .due: pending?.joinsOnly = false
    }
  }

  /// A change was noted: it waits for its time, for the switch, or for somebody to be there.
  private mutating func proceed(now: Timestamp, out: inout Outputs) {
    switch phase {
    case .asking(let asking): if asking.leader == nil { giveUp(now: now, out: &out) }
    case .settled: startIfDue(now: now, out: &out)
    case .spreading: break
    }
  }

  /// The timers `batch`, `leader`, `spread` and `rotate`.
  mutating func handleTimeout(_ timer: CallTimer, now: Timestamp, out: inout Outputs) {
    switch (timer, phase) {
    case (.batch, .settled): startIfDue(now: now, out: &out)
    case (.leader, .asking): askNext(now: now, out: &out)
    case (.spread, .spreading): switchKeys(now: now, out: &out)
    case (.confirmed, _): tellConfirmed(out: &out)
    case (.rotate, _): change(.due, now: now, out: &out)
    default: break
    }
  }

  /// No device answers for the newest epoch: the next one replaces it.
  mutating func giveUp(now: Timestamp, out: inout Outputs) {
    out.cancel(.leader)
    phase = .settled
    startIfDue(now: now, out: &out)
  }

  /// The envelope and the list in a device's `call.ring` while epoch 1 is the newest.
  func ringEnvelope(for device: Device) -> (envelope: Envelope, list: [ListEntry])? {
    ringEnvelopes[device].map { ($0, newest.list) }
  }

  /// The user's ring is over, or the device has its envelope.
  mutating func forgetRingEnvelopes(where isOver: (Device) -> Bool) {
    guard !ringEnvelopes.isEmpty else { return }
    ringEnvelopes = ringEnvelopes.filter { !isOver($0.key) }
  }

  /// The newest epoch, or the one in use; nil for another number.
  func announced(_ number: UInt32) -> AnnouncedEpoch? {
    if newest.number == number { return newest }
    return before?.number == number && current == number ? before : nil
  }

  func isJoined(_ device: Device, on epoch: AnnouncedEpoch) -> Bool { keyedDevices[device].map(epoch.holds) ?? false }
}
