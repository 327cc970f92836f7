import Contract
import Crypto
import MediaModel

/// Epoch 1: known only to the initiator, or shared with the devices that ring (protocol section 5.7).
struct RingKeys: Sendable {
  /// How far the caller's clock may be from this device's.
  static let time: UInt64 = 600_000

  /// Epoch 1 as made by this device, until the reply to `start`.
  private(set) var first: Epoch?
  /// New devices of people who are known: a ring brings them no key.
  private var withheld: Set<[UInt8]> = []

  /// Makes epoch 1 for the devices that will ring, and an envelope for each; none if no device gets one. The initiator is always participant 1.
  mutating func ring(
    _ devices: [DeviceEntry], own: OwnStay, known: inout KnownDevices, warnings: inout KeyWarnings,
    using generator: inout some RandomNumberGenerator, into effects: inout [KeyEffect]
  ) -> [Envelope] {
    known.directory.learn(devices)
    var callees = devices.compactMap { DeviceKeys($0) }.filter { $0.address.user != own.address.user }.map {
      ListEntry(
        user: $0.address.user, device: $0.address.device, participant: 0, joinId: nil, joinKey: nil,
        fingerprint: Base64Bytes($0.fingerprint))
    }
    callees.sort { $0.address < $1.address }
    // The server chooses the devices that it lists for somebody. A new device among known ones, for which none of these vouches, waits for epoch 2: by then
    // the person has been told about it.
    for entry in callees where known.pins[entry.address] == nil && known.pins.knows(entry.user) {
      withheld.insert(entry.fingerprint.bytes)
    }
    known.pinNew(callees, warnings: &warnings, into: &effects)
    guard let all = try? EpochList(callees, epoch: 1) else { return [] }
    known.warnOfProblems(all.entries, isLookingUp: false, warnings: &warnings, into: &effects)
    let trusted = callees.filter { known.problem(of: $0) == nil && !isWithheld($0, known) }
    var rung = Self.chosen(trusted)
    let secret = Epoch.secret(using: &generator)
    while !rung.isEmpty {
      guard let epoch = Self.first(rung, secret, own) else { break }
      let envelopes = rung.map { Self.envelope(secret, for: $0, in: epoch, own, known) }
      if !envelopes.contains(nil) {
        first = epoch
        return envelopes.compactMap(\.self)
      }
      // Nothing can be sealed to a device's key: the list, which the envelopes sign, is made again without it, and all others keep theirs.
      rung = zip(rung, envelopes).filter { $1 != nil }.map(\.0)
    }
    return []
  }

  /// The server did not accept the ring's envelopes: epoch 1 belongs to this device only.
  mutating func ringAlone() { first = nil }

  /// Epoch 1 of a call that has begun, with its secret; nil if it cannot be made.
  mutating func takeFirst(own: OwnStay, using generator: inout some RandomNumberGenerator) -> Epoch? {
    defer { first = nil }
    return first ?? Self.first([], Epoch.secret(using: &generator), own)
  }

  /// As many devices as a `start` may have envelopes for, one of each callee first. Further ones ring without a key.
  private static func chosen(_ devices: [ListEntry]) -> [ListEntry] {
    guard devices.count > StartCall.maximumEnvelopes else { return devices }
    var users: Set<UserID> = []
    let isFirst = devices.map { users.insert($0.user).inserted }
    let ordered = zip(devices, isFirst).filter(\.1) + zip(devices, isFirst).filter { !$1 }
    return ordered.prefix(StartCall.maximumEnvelopes).map(\.0).sorted { $0.address < $1.address }
  }

  private func isWithheld(_ entry: ListEntry, _ known: KnownDevices) -> Bool {
    withheld.contains(entry.fingerprint.bytes)
      && known.pins.level(of: entry.address, entry.fingerprint.bytes) < .vouched
  }

  /// nil for a key of an unknown kind, or a malformed one.
  private static func envelope(
    _ secret: SymmetricKey, for entry: ListEntry, in epoch: Epoch, _ own: OwnStay, _ known: KnownDevices
  ) -> Envelope? {
    guard let wrap = known.directory[entry.fingerprint]?.wrap else { return nil }
    return .sealing(
      secret, for: entry.address, alg: wrap.alg, publicKey: wrap.publicKey.bytes, in: own.context(epoch),
      from: own.identity)
  }

  private static func first(_ rung: [ListEntry], _ secret: SymmetricKey, _ own: OwnStay) -> Epoch? {
    let entry = ListEntry(
      user: own.address.user, device: own.address.device, participant: 1, joinId: own.join.joinId,
      joinKey: own.join.joinKey, fingerprint: Base64Bytes(own.identity.fingerprint))
    let entries = ([entry] + rung).sorted { $0.address < $1.address }
    guard let list = try? EpochList(entries, epoch: 1) else { return nil }
    return Epoch(
      number: 1, mode: .fresh, list: list, listHash: list.hash(1, of: own.call, previous: EpochList.noPrevious),
      secret: secret)
  }

  // MARK: a callee's

  /// A callee's verdict on the key that a ring brought.
  private enum Verdict {
    /// It is the caller's own, made recently for this call and this device.
    case good
    /// A clock is wrong, or the caller's key is not known or not trusted: this proves no lie, and the key is not used.
    case doubtful
    case forged
  }

  /// Epoch 1, with its secret, as brought by a ring; nil if it is doubtful. `clock` is the device's own.
  static func epoch(
    of envelope: Envelope, _ list: EpochList, in ring: Ring, clock: Timestamp, own: OwnStay, known: KnownDevices
  ) throws(KeyRefusal) -> Epoch? {
    switch judge(envelope, list, ring, clock: clock, own, known) {
    case .forged: throw .ringNotTrusted
    case .doubtful: return nil
    case .good:
      let hash = list.hash(1, of: own.call, previous: EpochList.noPrevious)
      return Epoch(
        number: 1, mode: .fresh, list: list, listHash: hash, secret: try envelope.opened(with: own.identity.wrapKey))
    }
  }

  private static func judge(
    _ envelope: Envelope, _ list: EpochList, _ ring: Ring, clock: Timestamp, _ own: OwnStay, _ known: KnownDevices
  ) -> Verdict {
    guard let entry = list[own.address], entry.participant == 0,
      entry.fingerprint.bytes == own.identity.fingerprint, list[own.participant] == nil
    else { return .forged }
    // The caller is the device that has joined; a callee on the list has no key to hand out.
    let joined = list.entries.filter { $0.joinId != nil }
    guard joined.count == 1, let caller = joined.first, caller.user == ring.from, caller.address == envelope.from,
      caller.participant == 1, let key = caller.joinKey, let joinId = caller.joinId
    else { return .forged }
    guard known.isHeard(caller), let keys = known.directory[caller.fingerprint] else { return .doubtful }
    let hash = list.hash(1, of: own.call, previous: EpochList.noPrevious)
    guard keys.signed(key, call: own.call, joinId: joinId.bytes),
      envelope.isAuthentic(
        for: own.address, from: keys, in: EnvelopeContext(call: own.call, epoch: 1, listHash: hash)),
      envelope.key.bytes == Array(SHA256.hash(data: own.identity.publicKeys.wrap.publicKey.bytes)),
      (ring.admissions ?? []).prefix(LettingIn.limit).contains(where: {
        $0.user == own.address.user && $0.isGood(in: own.call, by: keys)
      })
    else { return .forged }
    let (difference, overflow) = clock.milliseconds.subtractingReportingOverflow(key.at.milliseconds)
    return !overflow && difference.magnitude <= time ? .good : .doubtful
  }
}
