package import Contract
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
  /// What a call is called before the server has named it.
  static let unnamed = CallID(unchecked: "")

  let identity: DeviceIdentity
  /// Empty for the initiator until its `start` is answered.
  var call: CallID
  let join: JoinCredentials
  let trust: KeyTrust

  /// What is known of other devices: the caller's, which other calls share, before each input.
  package var pins: Pins
  /// Public keys by the fingerprint that proves them.
  package internal(set) var directory: KnownKeys
  /// Fingerprints that `devices/list` was asked for since the last announcement; what it did not bring is asked for again at the next.
  var lookedUp: Set<[UInt8]> = []
  /// Join keys whose signature has been checked, by their bytes.
  var verifiedJoins: Set<JoinKeyProof> = []
  /// What the app has been told.
  var warned: Set<KeyWarning> = []
  /// Who has joined, for epoch 1.
  var seats: [Device: SeatedDevice] = [:]

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
  /// Envelopes whose sender's public keys were asked for, until the reply of `devices/list`.
  var waiting: [(envelope: Envelope, delivery: UInt64)] = []
  /// Replies of `devices/list` that are awaited.
  var lookUps = 0

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

  /// `pins` are those that the app kept from earlier calls; `directory` may hold public keys that were learnt before. Who starts a call knows no id yet.
  package init(
    identity: DeviceIdentity, call: CallID?, join: JoinCredentials, pins: Pins = Pins(), trust: KeyTrust = .firstUse,
    directory: KnownKeys = KnownKeys()
  ) {
    self.identity = identity
    self.call = call ?? Self.unnamed
    self.join = join
    self.pins = pins
    self.trust = trust
    self.directory = directory
    self.directory.learn(identity.publicKeys)
  }

  /// Takes one input, and all that had waited if it is the reply they waited for.
  package mutating func handle(
    _ input: KeyInput, now: Instant, using generator: inout some RandomNumberGenerator
  ) -> [KeyEffect] {
    var effects: [KeyEffect] = []
    switch input {
    case .directory(let entries): learn(entries, now: now, into: &effects)
    case .handedOut(let epoch, let taken): handedOut(epoch, taken: taken, now: now, into: &effects)
    case .rotate(let rotation): rotate(rotation, now: now, using: &generator, into: &effects)
    case .list(let list):
      // A device that joins gets on a list by the next announcement; until then the newest list is not its business.
      guard list.list.contains(where: { $0.address == identity.address && $0.joinId == join.joinId }) else { break }
      let rotation = Rotate(
        epoch: list.epoch, mode: list.mode, leader: 0, previous: list.previous, listHash: list.listHash, list: list.list)
      rotate(rotation, now: now, using: &generator, into: &effects)
      askForMissingKey(now: now, into: &effects)
    case .envelope(let envelope, let delivery): take(envelope, delivery, into: &effects)
    case .keyRequest(let request): answer(request, into: &effects)
    case .switchKeys(let epoch): follow(switchTo: epoch, now: now, into: &effects)
    case .state(let epoch):
      // Before the first announcement the call's epoch is one from before this device joined.
      if newest > 0 { follow(switchTo: epoch, now: now, into: &effects) }
    case .seated(let devices): seat(devices, into: &effects)
    case .trusted(let device): trusted(device, now: now, into: &effects)
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

  /// Whether the epoch's key is this agreement's to forget.
  package func holds(_ epoch: UInt32) -> Bool { epochs[epoch] != nil }

  /// Every device that may hold the key in use, as its list says, this one among them.
  package var listed: [ListEntry] { current.flatMap { epochs[$0] }?.list.entries ?? [] }

  static func secret(using generator: inout some RandomNumberGenerator) -> SymmetricKey {
    SymmetricKey(data: (0..<Epoch.secretByteCount).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }
}
