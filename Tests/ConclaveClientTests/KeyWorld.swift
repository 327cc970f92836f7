import Contract
import Crypto
import MediaModel

@testable import ConclaveClient

/// Some devices and the server between them, as the protocol wants it: lists, announcements, envelopes, switches. Tests interfere where they like.
struct KeyWorld {
  static let call = CallID("6f0c")!

  struct Member {
    var agreement: KeyAgreement
    var cipher = FrameCipher()
    var entry: ListEntry
    var refusals: [KeyRefusal] = []
    var warnings: [KeyWarning] = []
    var code: String?
    var acknowledged: [UInt64: Bool] = [:]
    /// `keys/request`s and `keys/list`s that it sent.
    var keyRequests = 0
    var listRequests = 0
    var isSending = false
  }

  var members: [String: Member] = [:]
  var directory: [DeviceEntry] = []
  var list: [ListEntry] = []
  var epoch: UInt32 = 0
  var mode = RotationMode.fresh
  var now = Instant(nanoseconds: 1_000_000_000)
  var generator = SystemRandomNumberGenerator()
  /// Envelopes taken by the server, not yet delivered.
  var envelopes: [Envelope] = []
  private var nextDelivery: UInt64 = 0

  /// Adds a device that has joined; not on any list yet.
  mutating func join(_ name: String) {
    let identity = DeviceIdentity(user: name, device: "phone")!
    let join = JoinCredentials(identity, using: &generator)
    let entry = ListEntry(
      user: identity.address.user, device: identity.address.device, participant: ParticipantNumber(members.count + 1),
      joinId: join.joinId, joinKey: join.joinKey, fingerprint: Base64Bytes(identity.fingerprint))
    members[name] = Member(
      agreement: KeyAgreement(identity: identity, call: Self.call, join: join), entry: entry)
    directory.append(
      DeviceEntry(
        user: entry.user, device: entry.device, name: nil, keys: identity.registration, fingerprint: entry.fingerprint,
        registeredAt: Timestamp(milliseconds: 0)))
  }

  /// The initiator's first epoch.
  mutating func start(_ name: String) {
    join(name)
    list = [members[name]!.entry]
    epoch = 1
    perform(members[name]!.agreement.start(Self.call, as: 1, now: now, using: &generator), of: name)
  }

  /// What `keys.rotate` says to `name` when the next list is that of `names`.
  func rotation(to names: [String], mode: RotationMode, leader: String, for name: String) -> Rotate {
    let next = names.map { members[$0]!.entry }
    let isNew = !list.contains { $0.user.text == name }
    let isLeader = name == leader
    let receivers = names.filter { receiver in
      receiver != leader && (mode == .fresh || !list.contains { $0.user.text == receiver })
    }
    return Rotate(
      epoch: epoch + 1, mode: mode, leader: members[leader]!.entry.participant,
      previous: Base64Bytes([UInt8](repeating: 0, count: 32)),
      listHash: Base64Bytes(try! EpochList(next).hash),
      added: isNew ? nil : next.filter { !list.contains($0) },
      removed: isNew ? nil : list.filter { !next.contains($0) }.map(\.participant),
      list: isNew ? next : nil, deliver: isLeader ? receivers.map { entryWithKeys($0) } : nil)
  }

  func entryWithKeys(_ name: String) -> ListEntry {
    var entry = members[name]!.entry
    entry.keys = directory.first { $0.user == entry.user }?.keys
    return entry
  }

  /// Announces the next epoch to everyone on its list; the leader's envelopes are then waiting in `envelopes`.
  mutating func announce(_ names: [String], mode: RotationMode, leader: String) {
    for name in names {
      let rotation = rotation(to: names, mode: mode, leader: leader, for: name)
      feed(.rotate(rotation), to: name)
    }
    list = names.map { members[$0]!.entry }
    epoch += 1
    self.mode = mode
  }

  mutating func deliverEnvelopes() {
    let waiting = envelopes
    envelopes = []
    for envelope in waiting { deliver(envelope, to: envelope.to.user.text) }
  }

  mutating func deliver(_ envelope: Envelope, to name: String) {
    nextDelivery += 1
    feed(.envelope(envelope, delivery: nextDelivery), to: name)
  }

  mutating func switchAll() { for entry in list { feed(.switchKeys(epoch: epoch), to: entry.user.text) } }

  /// A whole rotation, as an honest server does it.
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
    for name in members.keys { perform(members[name]!.agreement.handleTimeout(now: now), of: name) }
  }

  mutating func perform(_ effects: [KeyEffect], of name: String) {
    for effect in effects {
      switch effect {
      case .request(let request): answer(request, of: name)
      case .acknowledge(let delivery, let opened): members[name]!.acknowledged[delivery] = opened
      case .install(let keys): members[name]!.cipher.install(keys)
      case .send(let epoch):
        members[name]!.cipher.send(epoch, as: members[name]!.entry.participant)
        members[name]!.isSending = true
      case .stopSending:
        members[name]!.cipher.stopSending()
        members[name]!.isSending = false
      case .retire(let epoch): members[name]!.cipher.retire(epoch)
      case .pin: break
      case .warn(let warning): members[name]!.warnings.append(warning)
      case .code(let code): members[name]!.code = code
      case .refused(let refusal): members[name]!.refusals.append(refusal)
      }
    }
  }

  private mutating func answer(_ request: Request, of name: String) {
    switch request {
    case .listDevices(let body):
      let found = directory.filter { body.users.contains($0.user) }
      feed(.directory(found), to: name)
    case .keys(_, let body):
      envelopes += body.envelopes
      feed(.handedOut(epoch: body.epoch, taken: true), to: name)
    case .requestKey: members[name]!.keyRequests += 1
    case .listKeys: members[name]!.listRequests += 1
    default: break
    }
  }

  /// What `from` encrypts now, as `to` reads it.
  func travel(_ text: String, from: String, to: String) throws -> (String, FrameCipher.Opened) {
    try open(seal(text, from: from), as: to)
  }

  func seal(_ text: String, from name: String, track: UInt8 = 1) throws -> [UInt8] {
    try members[name]!.cipher.seal(Array(text.utf8), track: track)
  }

  func open(_ frame: [UInt8], as name: String) throws -> (String, FrameCipher.Opened) {
    let (bytes, opened) = try members[name]!.cipher.open(frame)
    return (String(decoding: bytes, as: UTF8.self), opened)
  }
}
