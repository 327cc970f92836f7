import Contract
import Crypto
import MediaModel
import Simulation
import Testing

@testable import Calls
@testable import ConclaveClient

/// A server that lies about devices: what it gets out of it, and what people see.
struct LyingServerTests {
  /// A ghost that the server slips into the lists of some devices, as a device of Bob's.
  private final class Ghost {
    let identity = DeviceIdentity(user: "bob", device: "ghost")!
    let entry: ListEntry
    var keys: KeyAgreement
    let cipher = FrameCipher()
    var opened: Set<ParticipantNumber> = []
    var random = SplitMix(state: 1)

    init(call: CallID) {
      let join = JoinCredentials(identity, using: &random)
      entry = ListEntry(
        user: identity.address.user, device: identity.address.device, participant: 999, joinId: join.joinId,
        joinKey: join.joinKey, fingerprint: Base64Bytes(identity.fingerprint))
      keys = KeyAgreement(identity: identity, call: call, join: join)
    }

    func feed(_ input: KeyInput, _ world: World) {
      for effect in keys.handle(input, now: world.instant, using: &random) {
        switch effect {
        case .install(let keys): cipher.install(keys)
        case .request(.listDevices):
          feed(.directory(world.devices.map { entry(of: $0.identity) }), world)
        default: break
        }
      }
    }

    private func entry(of identity: DeviceIdentity) -> DeviceEntry {
      DeviceEntry(
        user: identity.address.user, device: identity.address.device, name: nil, keys: identity.registration,
        fingerprint: Base64Bytes(identity.fingerprint), registeredAt: Timestamp(milliseconds: 0))
    }

    func listen(_ world: World) {
      for frame in world.audit.recent where (try? cipher.open(frame.bytes)) != nil { opened.insert(frame.participant) }
    }
  }

  /// Alice, Bob and Carol in a call; then everyone whom `shown` lets see it gets lists with the ghost on them.
  private func haunted(
    _ world: World, shown: @escaping (Device) -> Bool, prepare: ([SimDevice]) -> Void = { _ in }
  ) throws -> (call: CallID, ghost: Ghost, code: String?) {
    for user in ["alice", "bob", "carol"] { world.add(user) }
    world.run(1_000)
    prepare(world.devices)
    world.devices[0].start(["bob", "carol"])
    world.run(1_000)
    let call = try #require(world.calls.calls.keys.first)
    for device in world.devices[1...] { device.accept(call) }
    world.run(5_000)
    try #require(world.joined(call).count == 3)
    let code = world.devices[0].stay?.keys.code
    let ghost = Ghost(call: call)
    world.alter = { request, _ in
      guard case .keys(let id, var handedOut) = request else { return request }
      for envelope in handedOut.envelopes where envelope.to == ghost.identity.address {
        var envelope = envelope
        envelope.from = world.devices[0].address
        ghost.feed(.envelope(envelope, delivery: 1), world)
      }
      handedOut.envelopes.removeAll { $0.to == ghost.identity.address }
      return .keys(id, handedOut)
    }
    world.lie = { [unowned world] message, device in
      guard case .rotate(var rotation) = message.body, let epoch = world.calls.calls[call]?.epochs.newest,
        shown(device)
      else { return message }
      let list = epoch.list + [ghost.entry]
      rotation.list = list
      rotation.added = nil
      rotation.removed = nil
      rotation.mode = .fresh
      rotation.listHash = Base64Bytes(try! EpochList(list).hash)
      if rotation.deliver != nil {
        var entry = ghost.entry
        entry.keys = ghost.identity.registration
        rotation.deliver?.append(entry)
      }
      var whole = rotation
      whole.deliver = nil
      ghost.feed(.rotate(whole), world)
      var message = message
      message.body = .rotate(rotation)
      return message
    }
    // Somebody goes, so that a fresh epoch follows: the ghost's chance.
    world.devices[2].leave()
    world.run(6_000)
    ghost.listen(world)
    return (call, ghost, code)
  }

  @Test(arguments: 1...5)
  func aGhostIsOnEveryScreenAndChangesTheCode(_ seed: UInt64) throws { try seeGhost(World(seed: seed)) }

  @Test func aClientThatHidesAGhostIsCaught() {
    #expect(throws: Breach.ghostIsNotSeen) { try seeGhost(World(seed: 1, weakness: .hidesWarnings)) }
  }

  private func seeGhost(_ world: World) throws {
    let (call, ghost, code) = try haunted(world, shown: { _ in true })
    let honest = try EpochList(#require(world.calls.calls[call]).epochs.newest.list)
    for device in world.devices[0...1] {
      let stay = try #require(device.stay)
      let isShown =
        stay.keys.listed.contains { $0.address == ghost.identity.address }
        && device.warnings.contains { $0.problem == .newDevice && $0.device == "ghost" }
      let isInCode = stay.keys.code != code && stay.keys.code != CallCode.digits(call: call, list: honest)
      try Breach.unless(isShown && isInCode, .ghostIsNotSeen)
    }
    #expect(world.devices[0].stay?.keys.code == world.devices[1].stay?.keys.code)
    // Who trusts on first use is heard by it: that is what the code and the warning are for.
    #expect(ghost.opened.contains(1))
  }

  @Test(arguments: 1...5)
  func aGhostHearsNothingOfWhoTrustsVerifiedDevicesOnly(_ seed: UInt64) throws { try verify(World(seed: seed)) }

  @Test func aClientThatVerifiesNobodyIsCaught() {
    #expect(throws: Breach.ghostHears) { try verify(World(seed: 1, weakness: .trustsWhatComes)) }
  }

  private func verify(_ world: World) throws {
    let (_, ghost, _) = try haunted(world, shown: { _ in true }) { devices in
      // Alice hands out the keys; Bob has verified everybody he knows.
      devices[1].trust = .verifiedOnly
      for other in devices {
        devices[1].pins.pin(other.address, other.identity.fingerprint, isVerified: true)
      }
    }
    let bob = world.devices[1]
    #expect(bob.stay?.keys.listed.contains { $0.address == ghost.identity.address } == true)
    #expect(bob.warnings.contains { $0.problem == .unverified && $0.device == "ghost" })
    #expect(!ghost.opened.isEmpty)
    try Breach.unless(!ghost.opened.contains(try #require(bob.stay).participant), .ghostHears)
    #expect(bob.stay?.cipher.sendingEpoch == nil)
    // Bob looks at it and lets it in.
    bob.trust(try #require(bob.warnings.last { $0.device == "ghost" }))
    world.run(500)
    ghost.listen(world)
    #expect(ghost.opened.contains(try #require(bob.stay).participant))
  }

  @Test(arguments: 1...5)
  func aVerifiedOnlyLeaderHandsAGhostNoKey(_ seed: UInt64) throws {
    let world = World(seed: seed)
    let (_, ghost, _) = try haunted(world, shown: { _ in true }) { devices in
      devices[0].trust = .verifiedOnly
      for other in devices { devices[0].pins.pin(other.address, other.identity.fingerprint, isVerified: true) }
    }
    #expect(ghost.opened.isEmpty, "seed \(seed)")
    #expect(ghost.keys.current == nil)
  }

  @Test(arguments: 1...5)
  func aGhostShownToSomeMakesTheirMediaUnreadableToTheOthers(_ seed: UInt64) throws {
    let bob = try split(World(seed: seed)) { $0.user.text == "alice" }
    #expect(!bob.refusals.isEmpty)
  }

  @Test func whoIsShownTheSameUnderstandsEachOther() {
    #expect(throws: Breach.splitIsUnderstood) { try split(World(seed: 1)) { _ in true } }
  }

  @discardableResult
  private func split(_ world: World, shown: @escaping (Device) -> Bool) throws -> SimDevice {
    _ = try haunted(world, shown: shown)
    let (alice, bob) = (world.devices[0], world.devices[1])
    #expect(shown(bob.address) || alice.stay?.keys.code != bob.stay?.keys.code)
    alice.stay?.resetGaps()
    bob.stay?.resetGaps()
    world.run(5_000)
    try Breach.unless(
      alice.stay?.heard[bob.address] == nil && bob.stay?.heard[alice.address] == nil, .splitIsUnderstood)
    return bob
  }

  @Test(arguments: 1...5)
  func aKeyThatDiffersFromThePinnedOneGetsNoEnvelope(_ seed: UInt64) throws { try changeKey(World(seed: seed)) }

  @Test func aClientThatTakesAnyKeyIsCaught() {
    #expect(throws: Breach.changedKeyGetsEnvelope) { try changeKey(World(seed: 1, weakness: .trustsWhatComes)) }
  }

  private func changeKey(_ world: World) throws {
    for user in ["alice", "bob", "carol"] { world.add(user) }
    world.run(1_000)
    let (alice, bob, carol) = (world.devices[0], world.devices[1], world.devices[2])
    // Alice and Carol know Bob's phone under another key.
    for device in [alice, carol] { device.pins.pin(bob.address, [UInt8](repeating: 9, count: 32)) }
    var given: [Device] = []
    world.alter = { request, _ in
      switch request {
      case .start(let start): given += (start.envelopes ?? []).map(\.to)
      case .keys(_, let keys): given += keys.envelopes.map(\.to)
      default: break
      }
      return request
    }
    alice.start(["bob", "carol"])
    world.run(1_000)
    let call = try #require(world.calls.calls.keys.first)
    bob.accept(call)
    carol.accept(call)
    world.run(10_000)
    try Breach.unless(!given.contains(bob.address), .changedKeyGetsEnvelope)
    #expect(given.contains(carol.address))
    for device in [alice, carol] {
      #expect(device.warnings.contains { $0.problem == .changedKey && $0.user == "bob" })
      #expect(device.stay?.heard[bob.address] == nil)
    }
    // The call goes on with the others.
    alice.stay?.resetGaps()
    carol.stay?.resetGaps()
    world.run(1_000)
    #expect(alice.stay?.heard[carol.address] ?? 0 > 15)
    #expect(carol.stay?.heard[alice.address] ?? 0 > 15)
    #expect(bob.stay?.heard[alice.address] == nil)
    // Alice looks at the new key and takes it: from the next key on they hear each other.
    alice.trust(try #require(alice.warnings.last { $0.problem == .changedKey }))
    carol.leave()
    world.run(5_000)
    #expect(alice.stay?.heard[bob.address] ?? 0 > 0)
    #expect(bob.stay?.heard[alice.address] ?? 0 > 0)
    try world.audit.check()
  }
}
