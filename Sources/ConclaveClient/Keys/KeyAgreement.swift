import Contract
import Crypto
package import MediaModel

/// One device's part in agreeing on the media keys of one call, for one join (protocol section 5).
///
/// A value without clock and socket: events and replies go into `handle`, what is to be done comes out. It trusts the server with nothing but delivery:
/// devices are pinned when first seen, lists are hashed, envelopes must be signed by a device on the list.
///
/// Invariants: `newest` never falls; a secret, once adopted for an epoch, is not replaced; nothing is sealed to a key that its device did not sign.
package struct KeyAgreement: Sendable {
  /// How long the keys before a switch stay usable for receiving.
  static let overlap: Duration = .seconds(10)
  /// How long to wait before a missing key is asked for again, and how often in all: the server forwards 3 requests a device and epoch.
  static let requestInterval: Duration = .seconds(2)
  static let requestLimit = 3

  let identity: DeviceIdentity
  let call: CallID
  let join: JoinCredentials

  /// The fingerprint under which each device was first seen.
  package internal(set) var pins: [Device: [UInt8]]
  /// Public keys by the fingerprint that proves them.
  var directory: [[UInt8]: DeviceKeys]
  /// Fingerprints that `devices/list` was asked for since the last announcement; what it did not bring stays unverified until the next.
  var lookedUp: Set<[UInt8]> = []
  /// Join keys whose signature has been checked, by their bytes.
  var verifiedJoins: Set<JoinKeyProof> = []

  /// The epochs that are not retired: the newest, the one in use and those before it in their overlap.
  var epochs: [UInt32: Epoch] = [:]
  /// The highest epoch announced; 0 before the first.
  var newest: UInt32 = 0
  /// The epoch last switched to; nil before the first.
  package internal(set) var current: UInt32?
  /// When an epoch that was switched from is forgotten.
  var retirements: [UInt32: Instant] = [:]
  /// The secret that this device made as leader of an epoch, until the server says whose answer counted.
  var proposal: Proposal?
  /// A key that others use and this device lacks.
  var missing: MissingKey?
  /// Inputs that wait for the reply of `devices/list`; nil when none is awaited.
  var backlog: [KeyInput]?

  struct JoinKeyProof: Hashable, Sendable {
    var fingerprint: [UInt8]
    var joinId: Base64Bytes?
    var key: JoinKey
  }

  struct Proposal: Sendable {
    var epoch: UInt32
    var secret: SymmetricKey
  }

  struct MissingKey: Sendable {
    var epoch: UInt32
    var asked: Int
    var askAgain: Instant
  }

  /// `pins` are those that the app kept from earlier calls.
  package init(
    identity: DeviceIdentity, call: CallID, join: JoinCredentials, pins: [Device: [UInt8]] = [:]
  ) {
    self.identity = identity
    self.call = call
    self.join = join
    self.pins = pins
    directory = [identity.fingerprint: identity.publicKeys]
  }

  /// The initiator's first step: epoch 1, whose list is this device alone.
  package mutating func start(
    as participant: ParticipantNumber, now: Instant, using generator: inout some RandomNumberGenerator
  ) -> [KeyEffect] {
    var effects: [KeyEffect] = []
    let own = ListEntry(
      user: identity.address.user, device: identity.address.device, participant: participant, joinId: join.joinId,
      joinKey: join.joinKey, fingerprint: Base64Bytes(identity.fingerprint))
    guard newest == 0, let list = try? EpochList([own]) else { return [] }
    newest = 1
    epochs[1] = Epoch(number: 1, mode: .fresh, list: list, secret: nil)
    adopt(Self.secret(using: &generator), for: 1, into: &effects)
    follow(switchTo: 1, now: now, into: &effects)
    return effects
  }

  /// Takes one input, and all that had waited if it is the reply they waited for.
  package mutating func handle(
    _ input: KeyInput, now: Instant, using generator: inout some RandomNumberGenerator
  ) -> [KeyEffect] {
    var effects: [KeyEffect] = []
    switch input {
    case .directory(let entries):
      learn(entries)
      let waiting = backlog ?? []
      backlog = nil
      for input in waiting { effects += handle(input, now: now, using: &generator) }
    case .handedOut(let epoch, let taken):
      handedOut(epoch, taken: taken, into: &effects)
    case _ where backlog != nil:
      backlog?.append(input)
    case .rotate(let rotation):
      rotate(rotation, resuming: input, now: now, using: &generator, into: &effects)
    case .list(let list):
      // A device that joins gets on a list by the next announcement; until then the newest list is not its business.
      guard list.list.contains(where: { $0.address == identity.address && $0.joinId == join.joinId }) else { break }
      let rotation = Rotate(
        epoch: list.epoch, mode: list.mode, leader: 0, listHash: list.listHash, list: list.list)
      rotate(rotation, resuming: input, now: now, using: &generator, into: &effects)
      if backlog == nil { askForMissingKey(now: now, into: &effects) }
    case .envelope(let envelope, let delivery):
      effects.append(.acknowledge(delivery: delivery, opened: open(envelope, into: &effects)))
    case .keyRequest(let request):
      answer(request, into: &effects)
    case .switchKeys(let epoch):
      follow(switchTo: epoch, now: now, into: &effects)
    case .state(let epoch):
      // Before the first announcement the call's epoch is one from before this device joined.
      if newest > 0 { follow(switchTo: epoch, now: now, into: &effects) }
    }
    return effects
  }

  /// Forgets keys whose overlap is over, and asks again for one that is still missing.
  package mutating func handleTimeout(now: Instant) -> [KeyEffect] {
    var effects: [KeyEffect] = []
    for (epoch, deadline) in retirements where deadline <= now {
      retirements[epoch] = nil
      epochs[epoch] = nil
      effects.append(.retire(epoch: epoch))
    }
    if let due = missing?.askAgain, due <= now { askForMissingKey(now: now, into: &effects) }
    return effects
  }

  /// When `handleTimeout` has something to do next.
  package var nextTimeout: Instant? { [retirements.values.min(), missing?.askAgain].compactMap { $0 }.min() }

  /// The call code of the epoch in use: 40 digits.
  package var code: String? {
    current.flatMap { epochs[$0] }.map { CallCode.digits(call: call, list: $0.list) }
  }

  static func secret(using generator: inout some RandomNumberGenerator) -> SymmetricKey {
    SymmetricKey(data: (0..<Epoch.secretByteCount).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }
}
