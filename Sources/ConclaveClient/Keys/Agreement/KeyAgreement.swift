package import Contract
import Crypto
package import MediaModel

/// One device's part in agreeing on the media keys of one call, for one join (protocol section 5).
///
/// A value without clock and socket: events and replies go into `handle`, effects come out. It trusts the server only with delivery: devices are pinned when first
/// seen, lists are checked and form a chain, envelopes must be signed by a device on the list. Each part owns its state and the rules of one subject; changes of
/// several parts by one input are ordered here.
///
/// Invariants: the newest epoch's number never falls; a secret, once adopted for an epoch, is not replaced; nothing is sealed to a key that its device did not
/// sign; the own sending key is made from this device's own values.
package struct KeyAgreement: Sendable {
  var own: OwnStay
  package var known: KnownDevices
  let work: PublicWork
  var lists = Lists()
  var epochs = HeldEpochs()
  var lookUps = LookUps()
  var handout = Handout()
  var received = ReceivedEnvelopes()
  var demands = KeyDemands()
  var switching = Switching()
  var confirmations = Confirmations()
  var lettingIn: LettingIn
  var waitingGuests = WaitingGuests()
  var warnings = KeyWarnings()
  var privateMessages = PrivateMessages()
  var ringKeys = RingKeys()
  /// The devices that have joined, for epoch 1.
  var seats = Seats()
  var watch = RosterWatch()
  var spread: Spread

  /// `pins` are those that the app kept from earlier calls; `directory` may contain public keys that were learnt
  /// before. `work` is shared by the participants of one process.
  package init(
    identity: DeviceIdentity, join: JoinCredentials, pins: Pins = Pins(), trust: KeyTrust = .firstUse,
    directory: KnownKeys = KnownKeys(), work: PublicWork = PublicWork(capacity: 0),
    entrance: LettingIn.Entrance = .other, now: Instant
  ) {
    own = OwnStay(identity, join, now: now)
    known = KnownDevices(identity, pins: pins, trust: trust, directory: directory)
    self.work = work
    lettingIn = LettingIn(join.call, entrance)
    spread = Spread(join.joinId.bytes)
  }

  /// This agreement between inputs, when its caller has the pins and the directory.
  var withoutKnowledge: KeyAgreement {
    var agreement = self
    agreement.known.pins = Pins()
    agreement.known.directory = KnownKeys()
    return agreement
  }

  package var join: JoinCredentials { own.join }
  /// The highest epoch whose list was accepted; 0 before the first.
  package var newest: UInt32 { lists.number }
  /// The epoch last switched to; nil before the first.
  package var current: UInt32? { epochs.current }
  /// The epoch from which on missed lists are requested; nil before the first.
  package var newestAccepted: UInt32? { newest > 0 ? newest : nil }
  /// Why nothing is sent.
  var silence: [SilenceCause] { switching.silence }

  /// The call code of the epoch in use: 40 digits.
  package var code: String? {
    epochs.inUse.map { CallCode.digits(call: own.call, rosterHash: $0.list.rosterHash) }
  }

  /// Whether this agreement has to forget the epoch's key.
  package func holds(_ epoch: UInt32) -> Bool { epochs[epoch] != nil }

  /// Every device that may hold the key in use, according to its list, including this one.
  package var listed: [ListEntry] { epochs.inUse?.list.entries ?? [] }

  /// Every device that may hear this one, from the moment the list is used until a list without it is used, and the devices of the state's members that are
  /// on no list yet.
  package func devices(_ members: [MemberState]) -> [ListedDevice] {
    let entries = listed
    let addresses = Set(entries.map(\.address))
    let numbers = Set(entries.map(\.participant))
    let joins = Set(entries.compactMap { $0.joinId?.bytes })
    // A listed device's number or join under another name is not a device that cannot hear: it is the listed one.
    let unlisted = members.flatMap(\.joinedDevices).filter {
      !addresses.contains($0.device) && !numbers.contains($0.participant) && !joins.contains($0.joinId)
    }
    return entries.map {
      ListedDevice(
        $0, watch: watch, known: known, lettingIn: lettingIn, confirmations: confirmations, epoch: current)
    } + unlisted.map(ListedDevice.init(unlisted:))
  }

  /// Whether a waiting request is still of use: nothing is posted for an epoch that is over.
  package func isDue(_ request: Request) -> Bool {
    switch request {
    case .calls(.inCall(_, .keys(let body))): !lists.isBroken && body.epoch == newest
    case .calls(.inCall(_, .confirmKey(let body))): !lists.isBroken && body.epoch == newest
    case .calls(.inCall(_, .waitForKey(let body))): !lists.isBroken && body.epoch == newest
    case .calls(.inCall(_, .requestKey(let body))): !lists.isBroken && (body.epoch ?? newest) == newest
    default: true
    }
  }

  /// Notes a warning; false if the app has already had it.
  package mutating func isNews(_ warning: KeyWarning) -> Bool { warnings.isNews(warning) }

  // MARK: inputs

  /// Takes over what this device's previous stay in the same call suspected about others.
  package mutating func follow(_ former: KeyAgreement, now: Instant) {
    watch.remember(former.watch, now: now)
    lettingIn.remember(former.lettingIn)
    waitingGuests.remember(former.waitingGuests)
  }

  /// The reply to the join. Nothing is announced to this device before it.
  package mutating func enter(_ joined: Joined, now: Instant) -> [KeyEffect] {
    own.participant = joined.participant
    watch.own = joined.participant
    lists.enter(members: joined.call.members.count, now: now)
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
      take(ReceivedEnvelopes.Received(envelope: envelope, delivery: delivery), now: now, into: &effects)
    case .keyRequest(let request): answer(request, into: &effects)
    case .switchKeys(let epoch): switchTo(epoch, now: now, into: &effects)
    case .state(let state):
      see(state, now: now, into: &effects)
      watch.answered(now: now)
      // Before the first announcement the call's epoch is one from before this device joined.
      if newest > 0 { switchTo(state.epoch, now: now, into: &effects) }
    case .stateFailed: watch.answered(now: now)
    case .members(let members): for member in members { see(member, now: now, into: &effects) }
    case .knock(let knock):
      // Guests let nobody in.
      guard !own.address.user.isGuest, waitingGuests.take(knock, in: own.call) else { break }
      lettingIn.take(knock.admissions, knock.signers, isWhole: false)
    case .knockOver(let user): waitingGuests.end(user)
    case .signaling(let isConnected):
      watch.signaling(isConnected, now: now)
      switching.securing.signaling(isConnected, now: now)
      lists.answered()
    case .confirmed(let confirmed): take(confirmed, into: &effects)
    case .confirmationSent(let epoch, let taken): confirmations.sent(epoch, taken: taken, own: &own, now: now)
    case .confirmations(let epoch, let bucket, let reply): take(reply, bucket, of: epoch, into: &effects)
    case .trusted(let device): trusted(device, now: now, into: &effects)
    case .trustChanged: trustChanged(now: now, into: &effects)
    case .sendAnyway(let shown): watch.accept(shown.compactMap(RosterWatch.Shown.init), now: now)
    }
    settle(now: now, into: &effects)
    return effects
  }

  /// Forgets keys whose overlap is over, requests a missing one again, switches by itself, confirms, and checks who may hear.
  package mutating func handleTimeout(now: Instant) -> [KeyEffect] {
    var effects: [KeyEffect] = []
    for epoch in epochs.takeRetired(now: now) { forget(epoch, into: &effects) }
    lookUps.handleTimeout(known: known, now: now, into: &effects)
    if demands.isDue(now: now) { demand(now: now, into: &effects) }
    while let epoch = switching.takeDue(now: now) { switchTo(epoch, now: now, into: &effects) }
    lists.handleTimeout(own.call, now: now, into: &effects)
    let newest = confirmations.epoch == newest ? epochs[newest] : nil
    confirmations.handleTimeout(newest, own: &own, now: now, into: &effects)
    watch.handleTimeout(now: now)
    settle(now: now, into: &effects)
    return effects
  }

  /// When `handleTimeout` has work to do next.
  package var nextTimeout: Instant? {
    [
      epochs.nextTimeout, lookUps.nextTimeout, demands.nextTimeout, lists.nextTimeout, confirmations.nextTimeout,
      watch.nextTimeout, lettingIn.nextTimeout, switching.nextTimeout(inUse: current, isBroken: lists.isBroken),
    ].compactMap { $0 }.min()
  }

  // MARK: epoch 1

  /// Makes epoch 1 for the devices that will ring, and an envelope for each; none if no device gets one.
  package mutating func ring(
    _ devices: [DeviceEntry], using generator: inout some RandomNumberGenerator
  ) -> (envelopes: [Envelope], effects: [KeyEffect]) {
    var effects: [KeyEffect] = []
    let envelopes = ringKeys.ring(
      devices, own: own, known: &known, warnings: &warnings, using: &generator, into: &effects)
    return (envelopes, effects)
  }

  /// The server did not accept the ring's envelopes: epoch 1 belongs to this device only.
  package mutating func ringAlone() { ringKeys.ringAlone() }

  /// The reply to `start` arrived: this device sends under epoch 1. nil if the reply belongs to another call, or does not make it participant
  /// 1.
  package mutating func start(
    _ joined: Joined, now: Instant, using generator: inout some RandomNumberGenerator
  ) -> [KeyEffect]? {
    guard joined.call.id == own.call, joined.participant == 1, newest == 0,
      let first = ringKeys.takeFirst(own: own, using: &generator)
    else { return nil }
    var effects = enter(joined, now: now)
    lettingIn.start(as: own.address.user)
    begin(first, now: now, into: &effects)
    settle(now: now, into: &effects)
    return effects
  }

  /// The device has accepted a ring that brought a key, and the others still send under it: so does this device. Call `enter` first. `clock` is the device's
  /// own.
  package mutating func accept(_ ring: Ring, clock: Timestamp, now: Instant) -> [KeyEffect] {
    guard newest == 0, let envelope = ring.envelope, let entries = ring.list else { return [] }
    var effects: [KeyEffect] = []
    do throws(KeyRefusal) {
      let list = try EpochList(entries, epoch: 1)
      known.pinNew(list.entries, warnings: &warnings, into: &effects)
      lettingIn.accept(ring, now: now)
      warnOfProblems(list.entries, into: &effects)
      let first = try RingKeys.epoch(of: envelope, list, in: ring, clock: clock, own: own, known: known)
      if let first { begin(first, now: now, into: &effects) }
    } catch {
      effects.append(.refused(error))
    }
    settle(now: now, into: &effects)
    return effects
  }

  // MARK: private messages

  /// The content of a private message's SFrame, ready for sealing; nil if a recipient is not on the list of the epoch in use or its key is of no
  /// use.
  package mutating func privateContent(_ text: [UInt8], to recipients: [ParticipantNumber]) -> [UInt8]? {
    epochs.inUse.flatMap { PrivateMessages.content(text, to: recipients, in: $0, own: own, known: &known) }
  }

  /// The text of a private message of `sender` whose SFrame was of this epoch; nil if it must not be opened.
  package mutating func openPrivate(
    _ content: [UInt8], from sender: ParticipantNumber, epoch number: UInt32
  ) -> [UInt8]? {
    guard let epoch = epochs[number] else { return nil }
    return privateMessages.open(content, from: sender, in: epoch, own: own, known: &known)
  }
}
