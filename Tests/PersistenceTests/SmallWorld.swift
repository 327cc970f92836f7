import Contract
import MediaModel
import Simulation

@testable import Calls

/// A few users who call each other at random, so that there is something to store.
struct SmallWorld {
  private(set) var calls: Calls
  private(set) var now = TestStore.now
  private var random: SplitMix
  private var lastSession: UInt64 = 0
  private var sessions: [SessionID] = []

  init(seed: UInt64) {
    random = SplitMix(state: seed)
    var ids = SplitMix(state: ~seed)
    calls = Calls(configuration: Calls.Configuration(), digest: Self.digest) { ids.next() }
  }

  static func digest(_ bytes: [UInt8]) -> [UInt8] {
    var state: UInt64 = 0xcbf2_9ce4_8422_2325
    for byte in bytes { state = (state ^ UInt64(byte)) &* 0x100_0000_01b3 }
    return (0..<32).map { UInt8(truncatingIfNeeded: state >> ($0 % 8 * 8)) ^ UInt8($0) }
  }

  /// Does something; returns what has to be stored of it.
  mutating func step() -> [StoreChange] {
    now = now + .milliseconds(Int.random(in: 0..<3_000, using: &random))
    let session = sessions.randomElement(using: &random)
    guard let session, Int.random(in: 0..<10, using: &random) > 1 else { return connect() }
    let user = calls.directory.device(of: session)?.user
    let call = user.flatMap { calls.memberships[$0]?.randomElement(using: &random) }
    guard let call else { return start(session) }
    let join = Join(joinId: someJoinId())
    switch Int.random(in: 0..<9, using: &random) {
    case 0, 1: return ask(session, .accept(call, join))
    case 2: return ask(session, .decline(call, Decline()))
    case 3: return ask(session, .rejoin(call, join))
    case 4: return ask(session, .leave(call))
    case 5: return handOut(call, session)
    case 6: return start(session)
    case 7: return handle(.acknowledge(session, seq: 1, accepted: true))
    default: return handle(.disconnect(session))
    }
  }

  private mutating func ask(_ session: SessionID, _ request: Request) -> [StoreChange] {
    handle(.request(session, id: "1", request))
  }

  private mutating func connect() -> [StoreChange] {
    lastSession += 1
    let session = SessionID(rawValue: lastSession)
    let user = UserID(unchecked: "u\(Int.random(in: 0..<4, using: &random))")
    let device = Device(user: user, device: DeviceID(unchecked: "d\(Int.random(in: 0..<2, using: &random))"))
    sessions.append(session)
    let keys = [KeyUse.wrap, .sign].map {
      DeviceKey(use: $0, alg: "x", publicKey: Base64Bytes(Array(device.user.text.utf8)))
    }
    return handle(.connect(session, Identity(device: device, name: "Ä \"name\"\n")))
      + handle(.request(session, id: "0", .registerDevice(RegisterDevice(name: "phone", keys: keys))))
      + handle(.subscribe(session, .events, .client))
  }

  private mutating func start(_ session: SessionID) -> [StoreChange] {
    let callees = (0..<4).map { UserID(unchecked: "u\($0)") }
    let devices = callees.flatMap { calls.directory.entries(of: $0) }
    let envelopes = devices.map { envelope(to: Device(user: $0.user, device: $0.device), epoch: 1) }
    var policy = Policy()
    policy.screens = 2
    policy.aloneSeconds = 600
    return handle(
      .request(
        session, id: "1",
        .start(
          StartCall(
            callees: callees, media: .audio, policy: policy, metadata: Base64Bytes([0, 1, 255]), joinId: someJoinId(),
            envelopes: envelopes))))
  }

  private mutating func handOut(_ call: CallID, _ session: SessionID) -> [StoreChange] {
    guard let newest = calls.calls[call]?.epochs.newest else { return [] }
    let envelopes = newest.list.map { envelope(to: $0.address, epoch: newest.number) }
    return handle(.request(session, id: "1", .keys(call, HandOutKeys(epoch: newest.number, envelopes: envelopes))))
  }

  private func envelope(to device: Device, epoch: UInt32) -> Envelope {
    Envelope(
      epoch: epoch, to: device, from: nil, key: Base64Bytes([UInt8](repeating: 7, count: 32)), alg: "x",
      ciphertext: Base64Bytes([1, 2, 3]), sigAlg: "y",
      signature: Base64Bytes([4]))
  }

  private mutating func someJoinId() -> Base64Bytes {
    Base64Bytes((0..<16).map { _ in UInt8.random(in: 0...255, using: &random) })
  }

  private mutating func handle(_ command: Calls.Command) -> [StoreChange] {
    calls.handle(command, now: now).compactMap { if case .store(let change) = $0 { change } else { nil } }
  }
}
