import Contract
import Crypto
import MediaModel
import Testing

@testable import ConclaveClient

/// Devices with changed, new or foreign keys: they get no key, people are told, and the call continues with the others.
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
    world.join("bob", identity: DeviceIdentity(user: "bob", device: "phone")!, participant: 9)
    return world
  }

  private func rotate(_ world: inout KeyWorld) {
    world.announce(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
  }

  @Test func aChangedKeyGetsNoEnvelopeAndTheCallGoesOn() throws {
    var world = withChangedBob()
    rotate(&world)
    #expect(world.envelopes.map(\.to.user.text) == ["carol"])
    world.deliverEnvelopes()
    world.switchAll()
    // Somebody who sees Bob's device for the first time gives it the key: Alice and Carol send nothing until they have decided.
    for name in ["alice", "carol"] {
      guard case .changedKeys(let shown) = world.members[name]!.silence.first else {
        Issue.record("\(name): \(world.members[name]!.silence)")
        continue
      }
      #expect(shown.map(\.fingerprint) == [world.members["bob"]!.entry.fingerprint.bytes])
      #expect(!world.members[name]!.isSending)
      world.feed(.sendAnyway(shown), to: name)
      #expect(world.members[name]!.isSending && world.members[name]!.silence.isEmpty)
    }
    #expect(try world.travel("on", from: "alice", to: "carol").0 == "on")
    for name in ["alice", "carol"] {
      #expect(world.members[name]!.refusals.isEmpty)
      #expect(world.members[name]!.warnings.map(\.problem) == [.changedKey])
    }
  }

  /// It is kept, and opens when the person trusts exactly that key; the sender is told why it waits.
  @Test func anEnvelopeOfAChangedDeviceWaitsForThePerson() throws {
    var world = withChangedBob()
    world.announce(["alice", "bob", "carol"], mode: .fresh, leader: "bob")
    let envelope = try #require(world.envelopes.first { $0.to.user.text == "carol" })
    let delivery = world.deliver(envelope, to: "carol")
    world.deliver(envelope, to: "carol")
    world.switchAll()
    world.run(.seconds(10))
    #expect(world.members["carol"]!.acknowledged[delivery] == nil)
    #expect(world.members["carol"]!.waits == 1)
    #expect(world.members["carol"]!.keyRequests == 0)
    #expect(world.members["carol"]!.refusals.isEmpty)
    #expect(!world.members["carol"]!.isSending)
    let entry = world.members["bob"]!.entry
    var other = entry.fingerprint.bytes
    other[0] ^= 1
    world.members["carol"]!.agreement.known.pins.pin(entry.address, other, isVerified: true)
    world.feed(.trusted(entry.address), to: "carol")
    #expect(!world.members["carol"]!.isSending, "another key than the one that waits was trusted")
    world.members["carol"]!.agreement.known.pins.pin(entry.address, entry.fingerprint.bytes, isVerified: true)
    world.feed(.trusted(entry.address), to: "carol")
    #expect(world.members["carol"]!.isSending)
    #expect(try world.travel("at last", from: "bob", to: "carol").0 == "at last")
  }

  @Test func aTrustedDeviceGetsTheKeyAndIsHeard() throws {
    var world = withChangedBob()
    rotate(&world)
    world.deliverEnvelopes()
    world.switchAll()
    world.members["alice"]!.agreement.known.pins.pin(
      world.members["bob"]!.entry.address, world.members["bob"]!.entry.fingerprint.bytes, isVerified: true)
    world.feed(.trusted(world.members["bob"]!.entry.address), to: "alice")
    world.feed(.keyRequest(KeyRequest(epoch: 3, to: world.entryWithKeys("bob"))), to: "alice")
    world.deliverEnvelopes()
    #expect(try world.travel("back", from: "bob", to: "alice").0 == "back")
    // Carol has not trusted it.
    #expect(throws: FrameCipherError.self) { try world.travel("back", from: "bob", to: "carol") }
  }

  /// The frames of a revoked device no longer open under any epoch, not even under one whose secret is gone and whose
  /// keys are kept for its last frames.
  @Test func nothingOfARevokedDeviceOpens() throws {
    var world = three()
    func seal() throws -> [[UInt8]] { try (0..<3).map { _ in try world.seal("x", from: "bob") } }
    let old = try seal()
    world.rotate(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
    let new = try seal()
    let alices = try world.seal("y", from: "alice")
    for frame in [old[0], new[0]] { #expect(try world.open(frame, as: "carol").0 == "x") }
    let bob = try #require(world.members["bob"]).agreement.own.identity
    let revoke = TrustStatement(
      .revoke, device: bob.device, fingerprint: bob.fingerprint, at: KeyWorld.clock, by: bob)
    for name in ["alice", "carol"] {
      _ = world.members[name]!.agreement.known.pins.remember(bob.publicKeys)
      world.members[name]!.agreement.known.pins.learn(revoke)
      world.feed(.trustChanged, to: name)
      for frame in [old[1], new[1]] {
        #expect(throws: FrameCipherError.unknownKey) { try world.open(frame, as: name) }
      }
      #expect(world.members[name]!.warnings.map(\.problem) == [.revoked])
      // It has the current key, and another member may give it the next one.
      guard case .revoked(let shown) = world.members[name]!.silence.first else {
        Issue.record("\(name): \(world.members[name]!.silence)")
        continue
      }
      #expect(shown.map(\.user) == ["bob"] && !world.members[name]!.isSending)
    }
    #expect(try world.open(alices, as: "carol").0 == "y")
    // The leader's next envelopes omit the revoked device.
    world.announce(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
    #expect(world.envelopes.map(\.to.user.text) == ["carol"])
    world.deliverEnvelopes()
    world.switchAll()
    for frame in [old[2], new[2]] {
      #expect(throws: FrameCipherError.unknownKey) { try world.open(frame, as: "carol") }
    }
  }

  @Test func aJoinKeyThatItsDeviceDidNotSignGetsNothing() {
    var world = three()
    world.join("dave")
    // The server replaces Dave's key by one of its own.
    let own = P256.KeyAgreement.PrivateKey()
    world.members["dave"]!.entry.joinKey?.publicKey = Base64Bytes(Array(own.publicKey.derRepresentation))
    world.announce(["alice", "bob", "carol", "dave"], mode: .fresh, leader: "alice")
    #expect(Set(world.envelopes.map(\.to.user.text)) == ["bob", "carol"])
    #expect(world.members["alice"]!.warnings.map(\.problem) == [.joinKeyNotSigned])
    #expect(world.members["dave"]!.refusals == [.notOnList])
  }

  @Test func aNewDeviceOfAKnownUserIsNews() {
    var world = three()
    var pins = world.members["alice"]!.agreement.known.pins
    pins.pin(Device(user: UserID("dave")!, device: DeviceID("laptop")!), [UInt8](repeating: 1, count: 32))
    world.members["alice"]!.agreement.known.pins = pins
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
    var strict = KeyAgreement(identity: alice.own.identity, join: alice.join, trust: .verifiedOnly, now: world.now)
    let effects = strict.start(world.joined("alice"), now: world.now, using: &world.generator)!
    world.members["alice"]!.agreement = strict
    world.members["alice"]!.cipher = FrameCipher()
    world.perform(effects, of: "alice")
    world.rotate(["alice", "bob"], mode: .fresh, leader: "alice")
    #expect(world.members["alice"]!.warnings.map(\.problem) == [.unverified])
    #expect(!world.members["alice"]!.isSending)
    world.members["alice"]!.agreement.known.pins.pin(entry.address, entry.fingerprint.bytes, isVerified: true)
    world.feed(.trusted(entry.address), to: "alice")
    #expect(world.members["alice"]!.isSending)
    world.feed(.keyRequest(KeyRequest(epoch: 2, to: world.entryWithKeys("bob"))), to: "alice")
    world.deliverEnvelopes()
    #expect(try world.travel("now", from: "alice", to: "bob").0 == "now")
  }

  /// A call of 70 that people join one after another.
  private func crowd() -> (world: KeyWorld, names: [String]) {
    var world = KeyWorld()
    world.confirms = false
    world.start("alice")
    let names = ["alice"] + (10..<80).map { "guest\($0)" }
    for name in names.dropFirst() { world.join(name) }
    world.rotate(names, mode: .ratchet, leader: "alice")
    return (world, names)
  }

  @Test func theKeysOfManyNewcomersAreAskedForAtATime() throws {
    var (world, names) = crowd()
    let before = world.members["guest10"]!.lookUps.count
    #expect(before == 1, "all that were there when it came")
    for newcomer in ["x1", "x2", "x3"] {
      world.join(newcomer)
      names.append(newcomer)
      world.rotate(names, mode: .ratchet, leader: "alice")
    }
    #expect(world.members["guest10"]!.lookUps.count == before)
    #expect(world.members["guest10"]!.warnings.isEmpty, "it does not know them yet, and does not report that")
    world.run(.milliseconds(400))
    #expect(
      world.members["guest10"]!.lookUps.dropFirst(before).map(\.users) == [["x1", "x2", "x3"].map { UserID($0)! }])
    #expect(try world.travel("hello", from: "x3", to: "guest10").0 == "hello")
    #expect(world.members["guest10"]!.warnings.isEmpty)
  }

  @Test func theSignerOfAnEnvelopeIsLookedUpAtOnce() throws {
    var (world, names) = crowd()
    world.join("x1")
    names.append("x1")
    world.rotate(names, mode: .ratchet, leader: "alice")
    let before = world.members["guest10"]!.lookUps.count
    world.rotate(names, mode: .fresh, leader: "x1")
    #expect(world.members["guest10"]!.lookUps.count == before + 1)
    #expect(
      world.members["guest10"]!.waits == 0, "no person is asked for trust in a device that was only not looked up")
    #expect(try world.travel("hello", from: "x1", to: "guest10").0 == "hello")
  }

  @Test func aLookUpThatFailsIsMadeAgainBeforeAnybodyIsWarned() throws {
    var world = KeyWorld.pair
    world.failingLookUps = ["bob": 2]
    world.join("carol")
    world.rotate(["alice", "bob", "carol"], mode: .ratchet, leader: "alice")
    let before = world.members["bob"]!.lookUps.count
    world.run(.seconds(10))
    #expect(world.members["bob"]!.lookUps.count == before + 2)
    #expect(world.members["bob"]!.warnings.isEmpty)
    #expect(try world.travel("hello", from: "carol", to: "bob").0 == "hello")
    world.failingLookUps = ["bob": 100]
    world.join("dave")
    world.rotate(["alice", "bob", "carol", "dave"], mode: .ratchet, leader: "alice")
    world.run(.seconds(60))
    #expect(world.members["bob"]!.warnings.map(\.problem) == [.unknownKeys])
    #expect(world.members["bob"]!.lookUps.count == before + 2 + 3, "it gives up")
  }
}
