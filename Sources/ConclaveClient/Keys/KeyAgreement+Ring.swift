package import Contract
import Crypto
package import MediaModel

/// Epoch 1: the initiator's alone, or shared with the devices that ring (protocol section 5, epochs, rule 1).
extension KeyAgreement {
  /// A request's body has 256 KiB, of which an envelope takes some 600 bytes. With more devices none is rung with a key.
  static let maximumRung = 300

  /// Makes epoch 1 for the devices that will ring, before the call has an id, and an envelope for each; none when nobody is to get one.
  ///
  /// The signatures name no call: the list's hash holds this device's fresh joinId and so binds them to this start.
  package mutating func ring(
    _ devices: [DeviceEntry], using generator: inout some RandomNumberGenerator
  ) -> (envelopes: [Envelope], effects: [KeyEffect]) {
    var effects: [KeyEffect] = []
    directory.learn(devices)
    let callees = devices.compactMap { DeviceKeys($0) }.filter { $0.address.user != identity.address.user }.map {
      ListEntry(
        user: $0.address.user, device: $0.address.device, participant: 0, joinId: nil, joinKey: nil,
        fingerprint: Base64Bytes($0.fingerprint))
    }
    pinNew(callees, into: &effects)
    let secret = Self.secret(using: &generator)
    guard let all = try? EpochList(callees) else { return ([], effects) }
    warnOfProblems(all, into: &effects)
    let trusted = callees.filter { problem(of: $0) == nil && canWrap(for: $0) }
    guard !trusted.isEmpty, trusted.count <= Self.maximumRung,
      let list = try? EpochList([ownEntry(1)] + trusted)
    else { return ([], effects) }
    let epoch = Epoch(number: 1, mode: .fresh, list: list, secret: secret)
    let envelopes = trusted.compactMap { envelope(secret, for: $0, in: epoch) }
    guard envelopes.count == trusted.count else { return ([], effects) }
    epochs[1] = epoch
    return (envelopes, effects)
  }

  /// The server did not take the ring's envelopes: epoch 1 is this device's alone.
  package mutating func ringAlone() { epochs[1] = nil }

  /// The call has an id and this device a number: it sends under epoch 1.
  package mutating func start(
    _ call: CallID, as participant: ParticipantNumber, now: Instant, using generator: inout some RandomNumberGenerator
  ) -> [KeyEffect] {
    var effects: [KeyEffect] = []
    let rung = epochs[1]?.list.entries.filter { $0.participant == 0 } ?? []
    guard newest == 0, let list = try? EpochList([ownEntry(participant)] + rung) else { return [] }
    self.call = call
    newest = 1
    let secret = epochs[1]?.secret ?? Self.secret(using: &generator)
    epochs[1] = Epoch(number: 1, mode: .fresh, list: list, secret: nil)
    adopt(secret, for: 1, into: &effects)
    follow(switchTo: 1, now: now, into: &effects)
    return effects
  }

  /// The device has accepted a ring that brought a key, and the others still send under it: so does this one.
  package mutating func accept(_ ring: Ring, as participant: ParticipantNumber, now: Instant) -> [KeyEffect] {
    guard newest == 0, let envelope = ring.envelope, let entries = ring.list else { return [] }
    var effects: [KeyEffect] = []
    do throws(KeyRefusal) {
      let list = try EpochList(entries)
      guard let own = list[identity.address], own.participant == 0, own.joinId == nil, own.joinKey == nil,
        own.fingerprint.bytes == identity.fingerprint
      else { throw .notOnList }
      // The caller is the one that has joined; a callee on the list has no key to hand out.
      let joined = list.entries.filter { $0.joinId != nil }
      guard joined.count == 1, let caller = joined.first, caller.user == ring.from, caller.address == envelope.from
      else { throw .envelopeNotAuthentic }
      pinNew(list.entries, into: &effects)
      warnOfProblems(list, into: &effects)
      guard problem(of: caller) == nil, let sender = directory[caller.fingerprint] else { throw .envelopeNotAuthentic }
      let context = EnvelopeContext(call: Self.unnamed, epoch: 1, listHash: list.hash)
      let secret = try envelope.opened(by: identity.address, with: identity.wrapKey, from: sender, in: context)
      newest = 1
      epochs[1] = Epoch(number: 1, mode: .fresh, list: list, secret: nil)
      seats[identity.address] = SeatedDevice(
        device: identity.address, participant: participant, joinId: join.joinId)
      adopt(secret, for: 1, into: &effects)
      follow(switchTo: 1, now: now, into: &effects)
    } catch {
      effects.append(.refused(error))
    }
    return effects
  }

  private func ownEntry(_ participant: ParticipantNumber) -> ListEntry {
    ListEntry(
      user: identity.address.user, device: identity.address.device, participant: participant, joinId: join.joinId,
      joinKey: join.joinKey, fingerprint: Base64Bytes(identity.fingerprint))
  }

  private func canWrap(for entry: ListEntry) -> Bool {
    directory[entry.fingerprint].map { WrapAlgorithm(rawValue: $0.wrap.alg) != nil } ?? false
  }
}
