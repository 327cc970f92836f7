import CallMessages
import Contract
import MediaModel
import Seeded
import Simulation

@testable import CallMachine
@testable import Calls
@testable import PeopleMachine

/// A few users who call each other at random, so that there is something to store.
struct SmallWorld {
  private(set) var node: Node
  private(set) var now = TestStore.now
  private var random: SeededGenerator
  private var lastSession: UInt64 = 0
  private var sessions: [SessionID] = []

  init(seed: UInt64) {
    random = SeededGenerator(seed: seed)
    var ids = SeededGenerator(seed: ~seed)
    node = Node(configuration: CallConfiguration(), hashing: Self.hashing) { ids.next() }
  }

  private static let words = SimulatedWords(digest: digest)
  static let hashing = Hashing(
    digest: digest, authenticationCode: { digest($1 + $0) }, isValid: { $0 == digest($2 + $1) },
    verifies: words.verifies)

  @Sendable private static func digest(_ bytes: [UInt8]) -> [UInt8] {
    var state: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes { state = (state ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return (0..<32).map { UInt8(truncatingIfNeeded: state >> ($0 % 8 * 8)) ^ UInt8($0) }
  }

  /// Makes a random change; returns what has to be stored.
  mutating func step() -> [StoreChange] {
    now = now + .milliseconds(Int.random(in: 0..<3_000, using: &random))
    let session = sessions.randomElement(using: &random)
    guard let session, Int.random(in: 0..<10, using: &random) > 1 else { return connect() }
    let user = node.people.directory.device(of: session)?.user
    let call = user.flatMap { node.people.calls(of: $0).randomElement(using: &random) }
    guard let call else { return start(session) }
    let join = someJoin()
    switch Int.random(in: 0..<15, using: &random) {
    case 0, 1: return ask(session, .call(call, .accept(join)))
    case 2: return ask(session, .call(call, .decline(Decline())))
    case 3: return ask(session, .call(call, .rejoin(join)))
    case 4: return ask(session, .call(call, .leave))
    case 5: return handOut(call, session)
    case 6: return start(session)
    case 9: return confirm(call, session)
    case 10: return state(of: session)
    case 11: return ask(session, .call(call, .invite(Invite(callees: (0..<4).map { UserID(unchecked: "u\($0)") }))))
    case 12: return ask(session, .call(call, .link(MakeLink(revoke: Bool.random(using: &random)))))
    case 13: return changeLinks(session, in: call)
    case 7: return handle(.acknowledge(session, seqs: [1], accepted: true))
    default: return handle(.disconnect(session))
    }
  }

  private mutating func ask(_ session: SessionID, _ request: Request) -> [StoreChange] {
    handle(.request(session, id: "1", withWords(request, session)))
  }

  private mutating func withWords(_ request: Request, _ session: SessionID) -> Request {
    let link = Base64Bytes((0..<32).map { _ in UInt8.random(in: 0...255, using: &random) })
    guard let device = node.people.directory.device(of: session), let keys = node.people.directory[device]?.entry else {
      return request
    }
    return Self.words.completed(request, by: keys, link: link)
  }

  private mutating func connect() -> [StoreChange] {
    lastSession += 1
    let session = SessionID(rawValue: lastSession)
    let user = UserID(unchecked: "u\(Int.random(in: 0..<4, using: &random))")
    let device = Device(user: user, device: DeviceID(unchecked: "d\(Int.random(in: 0..<2, using: &random))"))
    sessions.append(session)
    let keys = [KeyUse.wrap, .sign].map {
      DeviceKey(use: $0, alg: "ES256", publicKey: Base64Bytes(Array(device.user.text.utf8)))
    }
    return handle(.connect(session, Identity(device: device, name: "Ä \"name\"\n")))
      + handle(.request(session, id: "0", .people(.registerDevice(RegisterDevice(name: "phone", keys: keys)))))
      + handle(.subscribe(session, .events, .client))
  }

  private mutating func start(_ session: SessionID) -> [StoreChange] {
    let callees = (0..<4).map { UserID(unchecked: "u\($0)") }
    let devices = callees.flatMap { node.people.directory.entries(of: $0) }
    let envelopes = devices.map { envelope(to: Device(user: $0.user, device: $0.device), epoch: 1) }
    var policy = Policy()
    policy.screens = 2
    policy.aloneSeconds = 600
    let join = someJoin()
    return ask(
      session,
      .start(
        StartCall(
          id: someCallID(), callees: callees, media: .audio, policy: policy, metadata: Base64Bytes([0, 1, 255]),
          joinId: join.joinId, joinKey: join.joinKey, envelopes: envelopes)))
  }

  private mutating func confirm(_ call: CallID, _ session: SessionID) -> [StoreChange] {
    guard let epochs = node.control.calls[call]?.epochs, let device = node.people.directory.device(of: session),
      let keyedDevice = epochs.keyedDevices[device]
    else { return [] }
    let tag = Base64Bytes((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) })
    let generation = (keyedDevice.refresh ?? keyedDevice.joinKey).generation + 1
    let joinKey = Bool.random(using: &random) ? joinKey(keyedDevice.joinId, generation: generation) : nil
    return ask(session, .inCall(call, .confirmKey(ConfirmKey(epoch: epochs.newest.number, tag: tag, joinKey: joinKey))))
  }

  /// Makes, opens or deletes a lasting link.
  private mutating func changeLinks(_ session: SessionID, in call: CallID) -> [StoreChange] {
    let some = LinkID(unchecked: String(repeating: "A", count: 20) + "\(Int.random(in: 0..<4, using: &random))Q")
    let made = ask(session, .people(.makeLink(MakeLastingLink(link: some, expiresIn: 3_600))))
    switch Int.random(in: 0..<3, using: &random) {
    case 0: return made + ask(session, .people(.deleteLink(DeleteLastingLink(link: some))))
    default: return made + ask(session, .call(call, .link(MakeLink(lasting: some))))
    }
  }

  /// One device makes a statement about another.
  private mutating func state(of session: SessionID) -> [StoreChange] {
    guard let device = node.people.directory.device(of: session),
      let other = node.people.directory.entries(of: device.user).randomElement(using: &random)
    else { return [] }
    let statement = DeviceStatement(
      device: other.device, fingerprint: other.fingerprint, at: now, sigAlg: "y", signature: Base64Bytes([5]))
    return ask(
      session, Bool.random(using: &random) ? .people(.vouchForDevice(statement)) : .people(.revokeDevice(statement)))
  }

  private mutating func handOut(_ call: CallID, _ session: SessionID) -> [StoreChange] {
    guard let newest = node.control.calls[call]?.epochs.newest else { return [] }
    let envelopes = newest.list.map { envelope(to: $0.address, epoch: newest.number) }
    return handle(
      .request(session, id: "1", .inCall(call, .keys(HandOutKeys(epoch: newest.number, envelopes: envelopes)))))
  }

  private func envelope(to device: Device, epoch: UInt32) -> Envelope {
    Envelope(
      epoch: epoch, to: device, from: nil, key: Base64Bytes([UInt8](repeating: 7, count: 32)), alg: "x",
      ciphertext: Base64Bytes([1, 2, 3]), sigAlg: "y",
      signature: Base64Bytes([4]))
  }

  private mutating func someJoin() -> Join {
    let joinId = Base64Bytes((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) })
    return Join(joinId: joinId, joinKey: joinKey(joinId, generation: 0))
  }

  private func joinKey(_ joinId: Base64Bytes, generation: UInt32) -> JoinKey {
    JoinKey(alg: "x", publicKey: joinId, generation: generation, at: now, signature: Base64Bytes([1]))
  }

  private mutating func someCallID() -> CallID {
    let digits = (0..<32).map { _ in Array("0123456789abcdef").randomElement(using: &random)! }
    var text = String(digits)
    for place in [8, 13, 18, 23] { text.insert("-", at: text.index(text.startIndex, offsetBy: place)) }
    var characters = Array(text)
    characters[14] = "4"
    characters[19] = "a"
    return CallID(unchecked: String(characters))
  }

  private mutating func handle(_ command: NodeCommand) -> [StoreChange] {
    node.handle(command, now: now).compactMap { if case .store(let change) = $0 { change } else { nil } }
  }
}
