import Contract
import Crypto
import MediaModel
import Testing

@testable import ConclaveClient

/// Devices whose keys changed, or are new, or are not their own: they get no key, people are told, and the call goes on with the others.
struct TrustTests {
  private func three() -> KeyWorld {
    var world = KeyWorld()
    world.start("alice")
    world.join("bob")
    world.join("carol")
    world.rotate(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
    return world
  }

  /// Bob's phone comes back with other keys than those that Alice and Carol pinned.
  private func withChangedBob() -> KeyWorld {
    var world = three()
    let ghost = DeviceIdentity(user: "bob", device: "phone")!
    let join = JoinCredentials(ghost, using: &world.generator)
    world.directory[1].keys = ghost.registration
    world.directory[1].fingerprint = Base64Bytes(ghost.fingerprint)
    var entry = world.members["bob"]!.entry
    entry.fingerprint = Base64Bytes(ghost.fingerprint)
    entry.participant = 9
    entry.joinId = join.joinId
    entry.joinKey = join.joinKey
    world.members["bob"] = KeyWorld.Member(
      agreement: KeyAgreement(identity: ghost, call: KeyWorld.call, join: join), entry: entry)
    return world
  }

  /// The next epoch, of which the new Bob gets the whole list.
  private func rotate(_ world: inout KeyWorld) {
    let names = ["alice", "bob", "carol"]
    for name in names {
      var rotation = world.rotation(to: names, mode: .fresh, leader: "alice", for: name)
      if name == "bob" { rotation.list = names.map { world.members[$0]!.entry } }
      world.feed(.rotate(rotation), to: name)
    }
    world.list = names.map { world.members[$0]!.entry }
    world.epoch += 1
  }

  @Test func aChangedKeyGetsNoEnvelopeAndTheCallGoesOn() throws {
    var world = withChangedBob()
    rotate(&world)
    #expect(world.envelopes.map(\.to.user.text) == ["carol"])
    world.deliverEnvelopes()
    world.switchAll()
    #expect(try world.travel("on", from: "alice", to: "carol").0 == "on")
    for name in ["alice", "carol"] {
      #expect(world.members[name]!.refusals.isEmpty)
      #expect(world.members[name]!.warnings.map(\.problem) == [.changedKey])
    }
  }

  @Test func anEnvelopeOfAChangedDeviceIsRefused() {
    var world = withChangedBob()
    rotate(&world)
    let epoch = world.members["carol"]!.agreement.epochs[3]!
    let forged = Envelope.sealing(
      SymmetricKey(size: .bits256), for: world.members["carol"]!.entry,
      keys: world.members["carol"]!.agreement.identity.publicKeys,
      in: EnvelopeContext(call: KeyWorld.call, epoch: 3, listHash: epoch.list.hash),
      from: world.members["bob"]!.agreement.identity)!
    world.deliver(forged, to: "carol")
    #expect(world.members["carol"]!.refusals == [.envelopeNotAuthentic])
  }

  @Test func whoIsTrustedGetsTheKeyAndIsHeard() throws {
    var world = withChangedBob()
    rotate(&world)
    world.deliverEnvelopes()
    world.switchAll()
    world.members["alice"]!.agreement.pins.pin(
      world.members["bob"]!.entry.address, world.members["bob"]!.entry.fingerprint.bytes, isVerified: true)
    world.feed(.trusted(world.members["bob"]!.entry.address), to: "alice")
    world.feed(.keyRequest(KeyRequest(epoch: 3, to: world.entryWithKeys("bob"))), to: "alice")
    world.deliverEnvelopes()
    #expect(try world.travel("back", from: "bob", to: "alice").0 == "back")
    // Carol has not trusted it.
    #expect(throws: FrameCipherError.self) { try world.travel("back", from: "bob", to: "carol") }
  }

  @Test func aJoinKeyThatItsDeviceDidNotSignGetsNothing() {
    var world = three()
    world.join("dave")
    // The server puts a key of its own in the place of Dave's.
    let own = P256.KeyAgreement.PrivateKey()
    world.members["dave"]!.entry.joinKey?.publicKey = Base64Bytes(Array(own.publicKey.derRepresentation))
    world.announce(["alice", "bob", "carol", "dave"], mode: .fresh, leader: "alice")
    #expect(Set(world.envelopes.map(\.to.user.text)) == ["bob", "carol"])
    #expect(world.members["alice"]!.warnings.map(\.problem) == [.joinKeyNotSigned])
    #expect(world.members["dave"]!.refusals == [.notOnList])
  }

  @Test func aNewDeviceOfAKnownUserIsNews() {
    var world = three()
    var pins = world.members["alice"]!.agreement.pins
    pins.pin(Device(user: UserID("dave")!, device: DeviceID("laptop")!), [UInt8](repeating: 1, count: 32))
    world.members["alice"]!.agreement.pins = pins
    world.join("dave")
    world.announce(["alice", "bob", "carol", "dave"], mode: .ratchet, leader: "alice")
    #expect(world.members["alice"]!.warnings.map(\.problem) == [.newDevice])
    #expect(world.members["bob"]!.warnings.isEmpty)
    #expect(world.envelopes.map(\.to.user.text) == ["dave"])
  }

  @Test func verifiedOnlySendsNothingWhileAStrangerIsThere() throws {
    var world = KeyWorld()
    world.start("alice")
    world.join("bob")
    let entry = world.members["bob"]!.entry
    let alice = world.members["alice"]!.agreement
    var strict = KeyAgreement(
      identity: alice.identity, call: KeyWorld.call, join: alice.join, trust: .verifiedOnly)
    let effects = strict.start(KeyWorld.call, as: 1, now: world.now, using: &world.generator)
    world.members["alice"]!.agreement = strict
    world.members["alice"]!.cipher = FrameCipher()
    world.perform(effects, of: "alice")
    world.rotate(["alice", "bob"], mode: .fresh, leader: "alice")
    #expect(world.members["alice"]!.warnings.map(\.problem) == [.unverified])
    #expect(!world.members["alice"]!.isSending)
    world.members["alice"]!.agreement.pins.pin(entry.address, entry.fingerprint.bytes, isVerified: true)
    world.feed(.trusted(entry.address), to: "alice")
    #expect(world.members["alice"]!.isSending)
    world.feed(.keyRequest(KeyRequest(epoch: 2, to: world.entryWithKeys("bob"))), to: "alice")
    world.deliverEnvelopes()
    #expect(try world.travel("now", from: "alice", to: "bob").0 == "now")
  }
}
