package import Contract
import Crypto
package import MediaModel
import Octets

/// One device's part in agreeing on the media keys of one call, for one join (protocol section 5).
///
/// A value without clock and socket: events and replies go into `handle`, effects come out. It trusts the server with nothing but delivery:
/// devices are pinned when first seen, lists are checked and form a chain, envelopes must be signed by a device on the list.
///
/// Invariants: `newest` never falls; a secret, once adopted for an epoch, is not replaced; nothing is sealed to a key that its device did not sign; the own
/// sending key is made from this device's own values.
package struct KeyAgreement: Sendable {
  /// How long the keys before a switch stay usable for receiving.
  static let overlap: Duration = .seconds(10)
  /// How long to wait before a missing key is asked for again, and how often in all: the server forwards 3 requests a device and epoch.
  static let requestInterval: Duration = .seconds(2)
  static let requestLimit = 3
  /// A newcomer asks for the list after 5 s, and after 10 ms more for each member up to 1,000: in a large call a restart of the server brings all back at once,
  /// and the announcement comes after the last.
  private static func listTime(members: Int) -> Duration { .seconds(5) + .milliseconds(10) * min(members, 1_000) }
  /// Envelopes that wait for a list or for public keys.
  static let waitingLimit = 64
  /// The largest list whose unknown devices are looked up at once.
  static let immediateLookUps = 64
  /// How often devices are looked up in vain before the person is told that their keys are not known, and the pause between.
  static let lookUpAttempts = 3
  static let lookUpPause: Duration = .seconds(2)

  let identity: DeviceIdentity
  let call: CallID
  package internal(set) var join: JoinCredentials
  let trust: KeyTrust
  let work: PublicWork
  /// When the join was made: times in later signatures are computed from it.
  let began: Instant

  /// The pins of other devices, shared by all calls: the caller lends them for each input.
  package var pins: Pins
  /// Public keys by the fingerprint that proves them.
  package internal(set) var directory: KnownKeys
  /// The number in the reply to the own join; 0 before.
  var participant: ParticipantNumber = 0
  /// Fingerprints that were requested from `devices/list` since the last announcement. Missing ones are requested again at the next one.
  var lookedUp: Set<[UInt8]> = []
  /// Entries of the newest list whose public keys were not known when it was announced.
  var unproven: [ListEntry] = []
  /// Join keys whose signature has been checked.
  var verifiedJoins: Set<JoinKeyProof> = []
  /// The newest generation of each stay's join key that this device has seen, as a leader.
  var generations: [[UInt8]: (generation: UInt32, keyHash: [UInt8])] = [:]
  /// The revision of the pins by which the newest list's devices were judged.
  var judgedPins = 0
  /// Warnings that the app has had.
  var warned: Set<KeyWarning> = []
  /// The devices that have joined, for epoch 1.
  var joinedDevices: [ParticipantNumber: JoinedDevice] = [:]

  /// The epochs that are not retired: the newest, the one in use and those before it in their overlap.
  var epochs: [UInt32: Epoch] = [:]
  /// The highest epoch whose list was accepted; 0 before the first.
  var newest: UInt32 = 0
  /// The epoch last switched to; nil before the first.
  package internal(set) var current: UInt32?
  /// Stays that were on an accepted list and are on none any more: neither returns.
  var gone = Gone()
  /// Lists do not follow from each other: nothing is accepted or sent any more.
  var isBroken = false
  /// The highest epoch that the server has switched to and this device has not accepted.
  var awaitedSwitch: UInt32 = 0
  /// `keys/list` is under way since this epoch.
  var listing: UInt32?
  /// When a device that is on no list yet asks for the newest.
  var listDue: Instant?
  private var listTime = Self.listTime(members: 0)
  /// When an epoch that was switched from is forgotten.
  var retirements: [UInt32: Instant] = [:]
  /// When this device sends under an epoch that nobody has switched to.
  var ownSwitches: [UInt32: Instant] = [:]
  /// The secret that this device made as leader of an epoch: one, however often it is asked and whatever became of its answers.
  var proposal: Proposal?
  /// A key that others use and this device lacks.
  var missing: MissingKey?
  /// Envelopes whose list, or whose sender's public keys, were asked for.
  var waiting: [WaitingEnvelope] = []
  /// The newest envelope of an epoch whose sender is not trusted: it opens when the person trusts that key.
  var untrusted: [UInt32: WaitingEnvelope] = [:]
  /// Replies of `devices/list` that are awaited.
  var lookUps = 0
  /// When unknown devices are looked up: the newcomers of a large call, and after a look-up that failed.
  var lookUpDue: Instant?
  /// Look-ups that got no answer since the last that got one.
  var failedLookUps = 0
  var watch = RosterWatch()
  var securing = SecuringTimer()
  var confirming: Confirming?
  /// Buckets of the newest epoch that came before this device used it.
  var earlyBuckets: [UInt32: [Int: ConfirmationBucket]] = [:]
  var confirmationTold: ConfirmationState?
  /// The basis of `confirmationTold`.
  var confirmationBasis: ConfirmationBasis?
  var lastConfirmed: Instant?
  /// The suspects that the app knows of, and those that it was warned of.
  var tiles: [Device: RosterWatch.Kind] = [:]
  var warnedTiles: [Device: RosterWatch.Kind] = [:]
  /// Devices of the list in use that the person has to decide about, judged with one state of the pins.
  var distrusted = Distrusted()
  /// The encapsulated keys of the private messages that have opened, by epoch: none opens twice.
  var openedMessages: [UInt32: Set<[UInt8]>] = [:]
  /// New devices of people who are known: a ring brings them no key.
  var withheldRings: Set<[UInt8]> = []
  /// A fresh secret was used since the own join key was replaced.
  var refreshDue = false
  var refreshed: Instant?
  /// When the last fresh secret, or the first of this stay, came into use, and whether its age was told.
  var freshSince: Instant?
  var isAgeTold = false
  var rotateMinutes = 10
  /// The state last told to the cipher and the app.
  var sendingEpoch: UInt32?
  var silence: [SilenceCause] = []
  private var jitter: UInt64

  struct JoinKeyProof: Hashable, Sendable {
    var fingerprint: [UInt8]
    var joinId: Base64Bytes
    var key: JoinKey
  }

  struct Gone: Sendable {
    var joins: Set<[UInt8]> = []
    var numbers: Set<ParticipantNumber> = []
  }

  struct Proposal: Sendable {
    var epoch: UInt32
    var secret: SymmetricKey
    /// The server has not said yet whether it counts. Until then no other secret of the epoch is taken.
    var isAwaited = false
  }

  struct MissingKey: Sendable {
    var epoch: UInt32
    var asked: Int
    /// nil: when the epoch is in use.
    var askAgain: Instant?
  }

  struct WaitingEnvelope: Sendable {
    var envelope: Envelope
    var delivery: UInt64
  }

  /// `pins` are those that the app kept from earlier calls; `directory` may hold public keys that were learnt before.
  /// `work` is shared by the participants of one process.
  package init(
    identity: DeviceIdentity, join: JoinCredentials, pins: Pins = Pins(), trust: KeyTrust = .firstUse,
    directory: KnownKeys = KnownKeys(), work: PublicWork = PublicWork(capacity: 0), now: Instant
  ) {
    self.identity = identity
    call = join.call
    self.join = join
    self.pins = pins
    self.trust = trust
    self.work = work
    self.directory = directory
    began = now
    jitter = UInt64(networkOrder: join.joinId.bytes.prefix(8))
    // Writing would copy the caller's directory.
    if !directory.contains(Base64Bytes(identity.fingerprint)) { self.directory.learn(identity.publicKeys) }
  }

  /// This agreement between inputs, when its caller has the pins and the directory.
  var withoutKnowledge: KeyAgreement {
    var agreement = self
    agreement.pins = Pins()
    agreement.directory = KnownKeys()
    return agreement
  }

  /// Takes over what the device's stay before this one, in the same call, suspected of others.
  package mutating func follow(_ former: KeyAgreement, now: Instant) { watch.remember(former.watch, now: now) }

  /// Whether a request that waits to be made is still of use: nothing is posted for an epoch that is over.
  package func isDue(_ request: Request) -> Bool {
    switch request {
    case .calls(.inCall(_, .keys(let body))): !isBroken && body.epoch == newest
    case .calls(.inCall(_, .confirmKey(let body))): !isBroken && body.epoch == newest
    case .calls(.inCall(_, .waitForKey(let body))): !isBroken && body.epoch == newest
    case .calls(.inCall(_, .requestKey(let body))): !isBroken && (body.epoch ?? newest) == newest
    default: true
    }
  }

  /// The reply to the join: nothing is announced to this device before.
  package mutating func enter(_ joined: Joined, now: Instant) -> [KeyEffect] {
    participant = joined.participant
    watch.own = participant
    listTime = Self.listTime(members: joined.call.members.count)
    listDue = now.advanced(by: listTime)
    var effects: [KeyEffect] = []
    see(joined.call, now: now, into: &effects)
    return effects
  }

  /// Handles one input, and everything that was pending on it.
  package mutating func handle(
    _ input: KeyInput, now: Instant, using generator: inout some RandomNumberGenerator
  ) -> [KeyEffect] {
    var effects: [KeyEffect] = []
    switch input {
    case .directory(let devices): learn(devices, now: now, into: &effects)
    case .handedOut(let epoch, let taken): handedOut(epoch, taken: taken, now: now, into: &effects)
    case .rotate(let rotation): rotate(rotation, now: now, using: &generator, into: &effects)
    case .list(let list): take(list, now: now, into: &effects)
    case .envelope(let envelope, let delivery):
      take(WaitingEnvelope(envelope: envelope, delivery: delivery), now: now, into: &effects)
    case .keyRequest(let request): answer(request, into: &effects)
    case .switchKeys(let epoch): follow(switchTo: epoch, now: now, into: &effects)
    case .state(let state):
      see(state, now: now, into: &effects)
      watch.answered(now: now)
      // Before the first announcement the call's epoch is one from before this device joined.
      if newest > 0 { follow(switchTo: state.epoch, now: now, into: &effects) }
    case .stateFailed: watch.answered(now: now)
    case .members(let members): for member in members { see(member, now: now, into: &effects) }
    case .signaling(let isConnected):
      watch.signaling(isConnected, now: now)
      securing.signaling(isConnected, now: now)
      listing = nil
    case .confirmed(let confirmed): take(confirmed, into: &effects)
    case .confirmationSent(let epoch, let taken): confirmationSent(epoch, taken: taken, now: now)
    case .confirmations(let epoch, let bucket, let reply): take(reply, bucket: bucket, epoch: epoch, into: &effects)
    case .trusted(let device): trusted(device, now: now, into: &effects)
    case .trustChanged: trustChanged(now: now, into: &effects)
    case .sendAnyway(let shown): watch.accept(shown.compactMap(RosterWatch.Shown.init), now: now)
    }
    settle(now: now, into: &effects)
    return effects
  }

  /// Forgets keys whose overlap is over, asks again for one that is missing, switches by itself, confirms, and checks who may hear.
  package mutating func handleTimeout(now: Instant) -> [KeyEffect] {
    var effects: [KeyEffect] = []
    for (epoch, deadline) in retirements where deadline <= now {
      retirements[epoch] = nil
      forget(epoch, into: &effects)
    }
    if let due = lookUpDue, due <= now { lookUpUnproven(into: &effects) }
    if let due = missing?.askAgain, due <= now { askForMissingKey(now: now, into: &effects) }
    for epoch in ownSwitches.keys.sorted() where ownSwitches[epoch].map({ $0 <= now }) ?? false {
      ownSwitches[epoch] = nil
      follow(switchTo: epoch, now: now, into: &effects)
    }
    if let due = listDue, due <= now {
      listDue = newest == 0 ? now.advanced(by: listTime) : nil
      if newest == 0 { askForList(into: &effects) }
    }
    confirm(now: now, into: &effects)
    watch.handleTimeout(now: now)
    settle(now: now, into: &effects)
    return effects
  }

  /// When `handleTimeout` has something to do next.
  package var nextTimeout: Instant? {
    [
      retirements.values.min(), lookUpDue, missing?.askAgain, ownSwitches.values.min(), listDue,
      confirming?.nextTimeout,
      watch.nextTimeout, current == 1 && !silence.contains(.securing) ? securing.due : nil, ageDue,
    ].compactMap { $0 }.min()
  }

  /// The call code of the epoch in use: 40 digits.
  package var code: String? {
    current.flatMap { epochs[$0] }.map { CallCode.digits(call: call, rosterHash: $0.list.rosterHash) }
  }

  /// Whether the epoch's key is this agreement's to forget.
  package func holds(_ epoch: UInt32) -> Bool { epochs[epoch] != nil }

  /// The epoch from which on missed lists are asked for; nil before the first.
  package var newestAccepted: UInt32? { newest > 0 ? newest : nil }

  /// Every device that may hold the key in use, as its list says, this one among them.
  package var listed: [ListEntry] { current.flatMap { epochs[$0] }?.list.entries ?? [] }

  static func secret(using generator: inout some RandomNumberGenerator) -> SymmetricKey {
    SymmetricKey(data: (0..<Epoch.secretByteCount).map { _ in UInt8.random(in: 0...255, using: &generator) })
  }

  /// A part of `limit`, so that a thousand devices do not ask or confirm at once (SplitMix64, from the random joinId).
  mutating func spread(_ limit: Duration) -> Duration {
    jitter &+= 0x9e37_79b9_7f4a_7c15
    var word = jitter
    word = (word ^ word >> 30) &* 0xbf58_476d_1ce4_e5b9
    word = (word ^ word >> 27) &* 0x94d0_49bb_1331_11eb
    return limit * (Double((word ^ word >> 31) >> 11) / 9_007_199_254_740_992)
  }
}
