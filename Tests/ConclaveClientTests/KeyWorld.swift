import Contract
import Crypto
import MediaModel
import Octets

@testable import ConclaveClient

/// Some devices and a correct server between them: lists, announcements, envelopes, switches. Tests can interfere
/// anywhere.
struct KeyWorld {
  /// Alice and Bob in epoch 2.
  static var pair: KeyWorld {
    var world = KeyWorld()
    world.start("alice")
    world.join("bob")
    world.rotate(["alice", "bob"], mode: .ratchet, leader: "alice")
    return world
  }

  static let call = CallID("7d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d5")!
  static let clock = Timestamp(milliseconds: 1_790_000_000_000)

  struct Member {
    var agreement: KeyAgreement
    var cipher = FrameCipher()
    var entry: ListEntry
    var refusals: [KeyRefusal] = []
    var warnings: [KeyWarning] = []
    var code: String?
    var acknowledged: [UInt64: Bool] = [:]
    /// The requests that it made.
    var requests: [Request] = []
    var stateQuestions = 0
    var rejoins = 0
    var isSending = false
    var silence: [SilenceCause] = []
    var confirmation: ConfirmationState?

    var keyRequests: Int { requests.count { if case .calls(.inCall(_, .requestKey)) = $0 { true } else { false } } }
    var listRequests: Int { requests.count { if case .calls(.inCall(_, .listKeys)) = $0 { true } else { false } } }
    var lookUps: [ListDevices] {
      requests.compactMap { if case .people(.listDevices(let body)) = $0 { body } else { nil } }
    }
    var waits: Int { requests.count { if case .calls(.inCall(_, .waitForKey)) = $0 { true } else { false } } }
    var confirmations: [ConfirmKey] {
      requests.compactMap { if case .calls(.inCall(_, .confirmKey(let body))) = $0 { body } else { nil } }
    }
  }

  var members: [String: Member] = [:]
  var directory: [DeviceEntry] = []
  var list: [ListEntry] = []
  var epoch: UInt32 = 0
  var mode = RotationMode.fresh
  /// The hash of each announced list.
  var hashes: [UInt32: [UInt8]] = [0: EpochList.noPrevious]
  var rosters: [UInt32: [UInt8]] = [:]
  var switched: UInt32 = 0
  var now = Instant(nanoseconds: 1_000_000_000)
  var generator = SplitMix64(seed: 4)
  /// Envelopes that the server has accepted and not yet delivered.
  var envelopes: [Envelope] = []
  /// Whether everybody gets everybody's confirmation at once.
  var confirms = true
  /// The number of look-ups of each member that get no answer.
  var failingLookUps: [String: Int] = [:]
  /// Members without a signed word.
  var uninvited: Set<String> = []
  /// The join keys that replaced those on the lists.
  var refreshes: [String: JoinKey] = [:]
  private var nextDelivery: UInt64 = 0

  /// Adds a device that has joined and is not on any list yet.
  mutating func join(_ name: String, identity: DeviceIdentity? = nil, participant: ParticipantNumber? = nil) {
    let identity = identity ?? DeviceIdentity(user: name, device: "phone")!
    let join = JoinCredentials(identity, call: Self.call, at: Self.clock, using: &generator)
    let participant = participant ?? ParticipantNumber(members.count + 1)
    let entry = ListEntry(
      user: identity.address.user, device: identity.address.device, participant: participant,
      joinId: join.joinId, joinKey: join.joinKey, fingerprint: Base64Bytes(identity.fingerprint))
    members[name] = Member(agreement: KeyAgreement(identity: identity, join: join, now: now), entry: entry)
    directory.removeAll { $0.user == entry.user }
    directory.append(
      DeviceEntry(
        user: entry.user, device: entry.device, name: nil, keys: identity.registration, fingerprint: entry.fingerprint,
        registeredAt: Timestamp(milliseconds: 0)))
    guard participant > 1 else { return }
    perform(members[name]!.agreement.enter(joined(name), now: now), of: name)
    tellState()
  }

  /// Starts another stay of a device, which forgets what it had.
  mutating func rejoin(_ name: String, as participant: ParticipantNumber) {
    join(name, identity: members[name]!.agreement.own.identity, participant: participant)
  }

  func joined(_ name: String) -> Joined {
    Joined(call: state, participant: members[name]!.entry.participant, ice: ICE())
  }

  var state: CallState {
    CallState(
      id: Self.call, state: .active, media: .audio, initiator: UserID("alice")!, startedAt: Self.clock,
      epoch: max(1, switched), policy: Policy(),
      members: members.values.map { member in
        MemberState(
          user: member.entry.user, name: nil, state: .joined,
          participants: [
            ParticipantState(
              participant: member.entry.participant, device: member.entry.device, joinId: member.entry.joinId!,
              connected: true, held: false, tracks: [])
          ])
      }, metadata: nil)
  }

  mutating func tellState() { for name in members.keys.sorted() { feed(.state(state), to: name) } }

  /// The initiator's first epoch.
  mutating func start(_ name: String) {
    join(name)
    list = [members[name]!.entry]
    note(try! EpochList(list, epoch: 1), 1)
    epoch = 1
    switched = 1
    perform(members[name]!.agreement.start(joined(name), now: now, using: &generator)!, of: name)
  }

  mutating func note(_ list: EpochList, _ epoch: UInt32) {
    rosters[epoch] = list.rosterHash
    hashes[epoch] = list.hash(epoch, of: Self.call, previous: hashes[epoch - 1]!)
  }

  func entries(_ names: [String]) -> [ListEntry] { names.map { members[$0]!.entry }.sorted { $0.address < $1.address } }

  /// The words for these members: the initiator lets everybody in, except the members in `uninvited`.
  func words(for names: [String]) -> [Admission]? {
    guard let alice = members["alice"]?.agreement.own.identity else { return nil }
    return names.filter { !uninvited.contains($0) }.compactMap { members[$0]?.entry.user }.map {
      .letting($0, into: Self.call, by: alice)
    }
  }

  /// The `keys.rotate` event for `name` when the next list is that of `names`.
  func rotation(to names: [String], mode: RotationMode, leader: String, for name: String) -> Rotate {
    let next = entries(names)
    let isNew = !list.contains(members[name]!.entry)
    let receivers = names.filter { receiver in
      receiver != leader && (mode == .fresh || !list.contains(members[receiver]!.entry))
    }
    return Rotate(
      epoch: epoch + 1, mode: mode, leader: members[leader]!.entry.participant,
      previous: Base64Bytes(hashes[epoch]!),
      listHash: Base64Bytes(
        try! EpochList(next, epoch: epoch + 1).hash(epoch + 1, of: Self.call, previous: hashes[epoch]!)),
      added: isNew ? nil : next.filter { !list.contains($0) },
      removed: isNew ? nil : list.filter { !next.contains($0) }.map(\.participant),
      list: isNew ? next : nil, deliver: name == leader ? receivers.map { entryWithKeys($0) } : nil,
      admissions: words(for: names))
  }

  func entryWithKeys(_ name: String) -> ListEntry {
    var entry = members[name]!.entry
    entry.keys = directory.first { $0.user == entry.user }?.keys
    entry.refresh = refreshes[name]
    return entry
  }

  /// Announces the next epoch to everyone on its list; afterwards the leader's envelopes wait in `envelopes`.
  mutating func announce(_ names: [String], mode: RotationMode, leader: String, only: [String]? = nil) {
    let rotations = names.map { ($0, rotation(to: names, mode: mode, leader: leader, for: $0)) }
    move(to: names, mode: mode)
    for (name, rotation) in rotations where only?.contains(name) ?? true { feed(.rotate(rotation), to: name) }
  }

  /// The server announces a list of these members, but nobody is told.
  mutating func move(to names: [String], mode: RotationMode) {
    list = entries(names)
    epoch += 1
    note(try! EpochList(list, epoch: epoch), epoch)
    self.mode = mode
  }

  /// The reply of `keys/list`.
  func keyList(since: UInt32?) -> KeyList {
    KeyList(
      epoch: epoch, mode: mode, previous: Base64Bytes(hashes[epoch - 1]!), listHash: Base64Bytes(hashes[epoch]!),
      list: list,
      links: since.map {
        $0 < epoch ? ($0 + 1...epoch).map { EpochLink(epoch: $0, roster: Base64Bytes(rosters[$0]!)) } : []
      }
        ?? [], confirmed: [], admissions: words(for: list.map(\.user.text)))
  }

  mutating func deliverEnvelopes() {
    let waiting = envelopes
    envelopes = []
    for envelope in waiting { deliver(envelope, to: envelope.to.user.text) }
  }

  @discardableResult
  mutating func deliver(_ envelope: Envelope, to name: String) -> UInt64 {
    nextDelivery += 1
    feed(.envelope(envelope, delivery: nextDelivery), to: name)
    return nextDelivery
  }

  mutating func switchAll() {
    switched = epoch
    for entry in list { feed(.switchKeys(epoch: epoch), to: entry.user.text) }
  }

  /// A complete rotation by an honest server.
  mutating func rotate(_ names: [String], mode: RotationMode, leader: String) {
    announce(names, mode: mode, leader: leader)
    deliverEnvelopes()
    switchAll()
  }

  mutating func feed(_ input: KeyInput, to name: String) {
    perform(members[name]!.agreement.handle(input, now: now, using: &generator), of: name)
  }

  mutating func advance(by duration: Duration) {
    now = now.advanced(by: duration)
    for name in members.keys.sorted() { perform(members[name]!.agreement.handleTimeout(now: now), of: name) }
  }

  /// Advances time in steps, so that each timer fires when it is due.
  mutating func run(_ duration: Duration, step: Duration = .milliseconds(100)) {
    let end = now.advanced(by: duration)
    while now < end { advance(by: step) }
  }

  mutating func perform(_ effects: [KeyEffect], of name: String) {
    for effect in effects {
      switch effect {
      case .request(let request):
        members[name]!.requests.append(request)
        answer(request, of: name)
      case .askState: members[name]!.stateQuestions += 1
      case .acknowledge(let delivery, let opened): members[name]!.acknowledged[delivery] = opened
      case .drop, .pin, .tilesChanged, .letInByService, .waitingGuests: break
      case .install(let keys): members[name]!.cipher.install(keys)
      case .send(let key):
        members[name]!.cipher.send(key)
        members[name]!.isSending = true
      case .stopSending:
        members[name]!.cipher.stopSending()
        members[name]!.isSending = false
      case .silence(let causes): members[name]!.silence = causes
      case .exclude(let fingerprint): members[name]!.cipher.exclude(fingerprint)
      case .retire(let epoch): members[name]!.cipher.retire(epoch)
      case .warn(let warning): members[name]!.warnings.append(warning)
      case .code(let code): members[name]!.code = code
      case .confirmation(let state): members[name]!.confirmation = state
      case .refused(let refusal): members[name]!.refusals.append(refusal)
      case .rejoin: members[name]!.rejoins += 1
      }
    }
  }

  private mutating func answer(_ request: Request, of name: String) {
    switch request {
    case .people(.listDevices) where failingLookUps[name, default: 0] > 0:
      failingLookUps[name, default: 0] -= 1
      feed(.directory(nil), to: name)
    case .people(.listDevices(let body)):
      let found = directory.filter { body.users.contains($0.user) }
      feed(.directory(Devices(devices: found)), to: name)
    case .calls(.inCall(_, .keys(let body))):
      envelopes += body.envelopes
      feed(.handedOut(epoch: body.epoch, taken: true), to: name)
    case .calls(.inCall(_, .confirmKey(let body))):
      guard body.epoch == epoch else { return feed(.confirmationSent(epoch: body.epoch, taken: false), to: name) }
      if let key = body.joinKey { refreshes[name] = key }
      feed(.confirmationSent(epoch: body.epoch, taken: true), to: name)
      if confirms { tellConfirmation() }
    default: break
    }
  }

  /// `keys.confirmed` with all tags that were sent for the newest epoch.
  private mutating func tellConfirmation() {
    let tags = Dictionary(
      members.values.compactMap { member in
        member.confirmations.last { $0.epoch == epoch }.map { (member.entry.participant, $0.tag.bytes) }
      }
    ) { first, _ in first }
    let confirmed = KeysConfirmed(epoch: epoch, buckets: Self.buckets(list, tags))
    for entry in list { feed(.confirmed(confirmed), to: entry.user.text) }
  }

  /// The sums of these tags, as computed by the server.
  static func buckets(_ list: [ListEntry], _ tags: [ParticipantNumber: [UInt8]]) -> [ConfirmationBucket] {
    stride(from: 0, to: list.count, by: 64).map { start in
      var who: UInt64 = 0
      var sum = [UInt8](repeating: 0, count: 16)
      for (bit, entry) in list[start..<min(start + 64, list.count)].enumerated() {
        guard let tag = tags[entry.participant] else { continue }
        who |= 1 << UInt64(63 - bit)
        for i in sum.indices { sum[i] ^= tag[i] }
      }
      let bytes = (0..<8).map { UInt8(truncatingIfNeeded: who >> UInt64(56 - 8 * $0)) }
      return ConfirmationBucket(index: start / 64, who: Base64Bytes(bytes), tag: Base64Bytes(sum))
    }
  }

  /// Encrypts `text` as `from` and decrypts it as `to`.
  func travel(_ text: String, from: String, to: String) throws -> (String, FrameCipher.Opened) {
    try open(seal(text, from: from), as: to)
  }

  func seal(_ text: String, from name: String, track: UInt8 = 1) throws -> [UInt8] {
    try members[name]!.cipher.seal(Array(text.utf8), track: track)
  }

  func open(_ frame: [UInt8], as name: String) throws -> (String, FrameCipher.Opened) {
    let (bytes, opened) = try members[name]!.cipher.openWhereItBelongs(frame)
    return (String(decoding: bytes, as: UTF8.self), opened)
  }
}
