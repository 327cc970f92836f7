package import Contract
import Crypto
package import MediaModel

/// Epoch 1: the initiator's alone, or shared with the devices that ring (protocol section 5, epochs, rule 1).
extension KeyAgreement {
  /// How far the caller's clock may be from this device's.
  static let ringTime: UInt64 = 600_000

  /// Makes epoch 1 for the devices that will ring, and an envelope for each; none when nobody is to get one. The initiator is participant 1, always.
  package mutating func ring(
    _ devices: [DeviceEntry], using generator: inout some RandomNumberGenerator
  ) -> (envelopes: [Envelope], effects: [KeyEffect]) {
    var effects: [KeyEffect] = []
    directory.learn(devices)
    var callees = devices.compactMap { DeviceKeys($0) }.filter { $0.address.user != identity.address.user }.map {
      ListEntry(
        user: $0.address.user, device: $0.address.device, participant: 0, joinId: nil, joinKey: nil,
        fingerprint: Base64Bytes($0.fingerprint))
    }
    callees.sort { $0.address < $1.address }
    // The server chooses the devices that it lists for somebody. A new device among known ones, for which none of these vouches, waits for epoch 2: by then
    // the person has been told of it.
    for entry in callees where pins[entry.address] == nil && pins.knows(entry.user) {
      withheldRings.insert(entry.fingerprint.bytes)
    }
    pinNew(callees, into: &effects)
    guard let all = try? EpochList(callees, epoch: 1) else { return ([], effects) }
    warnOfProblems(all.entries, into: &effects)
    let trusted = callees.filter { problem(of: $0) == nil && !isWithheld($0) }
    var rung = Self.chosen(trusted)
    let secret = Self.secret(using: &generator)
    while !rung.isEmpty {
      guard let epoch = firstEpoch(rung, secret) else { break }
      let envelopes = rung.map { ringEnvelope(secret, for: $0, in: epoch) }
      if !envelopes.contains(nil) {
        epochs[1] = epoch
        return (envelopes.compactMap(\.self), effects)
      }
      // Nothing can be sealed to a device's key: the list, which the envelopes sign, is made again without it, and all others keep theirs.
      rung = zip(rung, envelopes).filter { $1 != nil }.map(\.0)
    }
    return ([], effects)
  }

  /// As many devices as a `start` may have envelopes for, one of each callee first (protocol section 5.7). Further ones ring without a key.
  private static func chosen(_ devices: [ListEntry]) -> [ListEntry] {
    guard devices.count > StartCall.maximumEnvelopes else { return devices }
    var users: Set<UserID> = []
    let isFirst = devices.map { users.insert($0.user).inserted }
    let ordered = zip(devices, isFirst).filter(\.1) + zip(devices, isFirst).filter { !$1 }
    return ordered.prefix(StartCall.maximumEnvelopes).map(\.0).sorted { $0.address < $1.address }
  }

  private func isWithheld(_ entry: ListEntry) -> Bool {
    withheldRings.contains(entry.fingerprint.bytes)
      && pins.level(of: entry.address, entry.fingerprint.bytes) < .vouched
  }

  /// nil for a key of an unknown kind, or a malformed one.
  private func ringEnvelope(_ secret: SymmetricKey, for entry: ListEntry, in epoch: Epoch) -> Envelope? {
    guard let wrap = directory[entry.fingerprint]?.wrap else { return nil }
    return .sealing(
      secret, for: entry.address, alg: wrap.alg, publicKey: wrap.publicKey.bytes, in: context(epoch), from: identity)
  }

  private func firstEpoch(_ rung: [ListEntry], _ secret: SymmetricKey) -> Epoch? {
    let own = ListEntry(
      user: identity.address.user, device: identity.address.device, participant: 1, joinId: join.joinId,
      joinKey: join.joinKey, fingerprint: Base64Bytes(identity.fingerprint))
    let entries = ([own] + rung).sorted { $0.address < $1.address }
    guard let list = try? EpochList(entries, epoch: 1) else { return nil }
    return Epoch(
      number: 1, mode: .fresh, list: list, listHash: list.hash(1, of: call, previous: EpochList.noPrevious),
      secret: secret)
  }

  /// The server did not take the ring's envelopes: epoch 1 is this device's alone.
  package mutating func ringAlone() { epochs[1] = nil }

  /// The reply to `start` arrived: this device sends under epoch 1. nil when the reply is of another call, or does not make it participant 1.
  package mutating func start(
    _ joined: Joined, now: Instant, using generator: inout some RandomNumberGenerator
  ) -> [KeyEffect]? {
    guard joined.call.id == call, joined.participant == 1, newest == 0,
      let first = epochs[1] ?? firstEpoch([], Self.secret(using: &generator)), let secret = first.secret
    else { return nil }
    var effects = enter(joined, now: now)
    begin(first, secret, now: now, into: &effects)
    return effects
  }

  /// A callee's verdict on the key that a ring brought.
  private enum RingVerdict {
    /// It is the caller's own, made for this call and this device, and not long ago.
    case good
    /// A clock is wrong, or the caller's key is not known or not trusted: no lie is proven, and the key is not used.
    case doubtful
    case forged
  }

  private func judge(_ envelope: Envelope, _ list: EpochList, from user: UserID, clock: Timestamp) -> RingVerdict {
    guard let own = list[identity.address], own.participant == 0, own.fingerprint.bytes == identity.fingerprint,
      list[participant] == nil
    else { return .forged }
    // The caller is the one that has joined; a callee on the list has no key to hand out.
    let joined = list.entries.filter { $0.joinId != nil }
    guard joined.count == 1, let caller = joined.first, caller.user == user, caller.address == envelope.from,
      caller.participant == 1, let key = caller.joinKey, let joinId = caller.joinId
    else { return .forged }
    guard isHeard(caller), let keys = directory[caller.fingerprint] else { return .doubtful }
    let hash = list.hash(1, of: call, previous: EpochList.noPrevious)
    guard keys.signed(key, call: call, joinId: joinId.bytes),
      envelope.isAuthentic(
        for: identity.address, from: keys, in: EnvelopeContext(call: call, epoch: 1, listHash: hash)),
      envelope.key.bytes == Array(SHA256.hash(data: identity.publicKeys.wrap.publicKey.bytes))
    else { return .forged }
    let (difference, overflow) = clock.milliseconds.subtractingReportingOverflow(key.at.milliseconds)
    return !overflow && difference.magnitude <= Self.ringTime ? .good : .doubtful
  }

  /// The device has accepted a ring that brought a key, and the others still send under it: so does this one. Call `enter` first. `clock` is the device's own.
  package mutating func accept(_ ring: Ring, clock: Timestamp, now: Instant) -> [KeyEffect] {
    guard newest == 0, let envelope = ring.envelope, let entries = ring.list else { return [] }
    var effects: [KeyEffect] = []
    do throws(KeyRefusal) {
      let list = try EpochList(entries, epoch: 1)
      pinNew(list.entries, into: &effects)
      warnOfProblems(list.entries, into: &effects)
      switch judge(envelope, list, from: ring.from, clock: clock) {
      case .forged: throw .ringNotTrusted
      case .doubtful: break
      case .good:
        let secret = try envelope.opened(with: identity.wrapKey)
        let hash = list.hash(1, of: call, previous: EpochList.noPrevious)
        begin(Epoch(number: 1, mode: .fresh, list: list, listHash: hash), secret, now: now, into: &effects)
      }
    } catch {
      effects.append(.refused(error))
    }
    settle(now: now, into: &effects)
    return effects
  }

  private mutating func begin(
    _ first: Epoch, _ secret: SymmetricKey, now: Instant, into effects: inout [KeyEffect]
  ) {
    newest = 1
    listDue = nil
    epochs[1] = first
    epochs[1]?.secret = nil
    examine(first.list.entries, of: 1)
    adopt(secret, for: 1, now: now, into: &effects)
    follow(switchTo: 1, now: now, into: &effects)
    settle(now: now, into: &effects)
  }
}
