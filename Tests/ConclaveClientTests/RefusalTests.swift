import Contract
import Crypto
import MediaModel
import Testing

@testable import ConclaveClient

/// Attempts of a dishonest server or member: protocol section 5, epochs, rule 8, and envelopes that prove no sender.
struct RefusalTests {
  @Test func aLowerEpoch() {
    var world = KeyWorld.pair
    var rotation = world.rotation(to: ["alice", "bob"], mode: .fresh, leader: "alice", for: "bob")
    rotation.epoch = 1
    world.feed(.rotate(rotation), to: "bob")
    #expect(world.members["bob"]!.refusals.isEmpty)
    world.feed(.switchKeys(epoch: 1), to: "bob")
    #expect(world.members["bob"]!.agreement.current == 2)
  }

  @Test func aRatchetThatDropsADevice() {
    var world = KeyWorld.pair
    world.join("carol")
    world.rotate(["alice", "bob", "carol"], mode: .ratchet, leader: "alice")
    world.announce(["alice", "bob"], mode: .ratchet, leader: "alice")
    #expect(world.members["alice"]!.refusals == [.unsafeRatchet])
    #expect(world.members["bob"]!.refusals == [.unsafeRatchet])
    #expect(world.envelopes.isEmpty)
  }

  @Test func aStrangerToDeliverTo() {
    var world = KeyWorld.pair
    world.join("eve")
    var rotation = world.rotation(to: ["alice", "bob"], mode: .fresh, leader: "alice", for: "alice")
    rotation.deliver?.append(world.entryWithKeys("eve"))
    world.feed(.rotate(rotation), to: "alice")
    #expect(world.members["alice"]!.refusals == [.strangerOnDelivery])
    #expect(world.envelopes.map(\.to.user.text) == ["bob"])
  }

  @Test func aStrangerWhoAsksForAKey() {
    var world = KeyWorld.pair
    world.join("eve")
    world.feed(.keyRequest(KeyRequest(epoch: 2, to: world.entryWithKeys("eve"))), to: "alice")
    // The device's correct name with another's join key is a stranger, too.
    var masked = world.entryWithKeys("bob")
    masked.joinKey = world.members["eve"]!.entry.joinKey
    world.feed(.keyRequest(KeyRequest(epoch: 2, to: masked)), to: "alice")
    #expect(world.members["alice"]!.refusals == [.strangerOnDelivery, .strangerOnDelivery])
    #expect(world.envelopes.isEmpty)
  }

  @Test func aListThatIsNotTheHashedOne() {
    var world = KeyWorld.pair
    world.join("carol")
    var rotation = world.rotation(to: ["alice", "bob", "carol"], mode: .ratchet, leader: "alice", for: "carol")
    rotation.listHash = Base64Bytes([UInt8](repeating: 0, count: 32))
    world.feed(.rotate(rotation), to: "carol")
    #expect(world.members["carol"]!.refusals == [.listHashMismatch])
    rotation = world.rotation(to: ["alice", "bob", "carol"], mode: .ratchet, leader: "alice", for: "bob")
    rotation.added = []
    world.feed(.rotate(rotation), to: "bob")
    #expect(world.members["bob"]!.refusals == [.listHashMismatch])
  }

  @Test func aListWithoutThisDevice() {
    var world = KeyWorld.pair
    let others = world.rotation(to: ["alice"], mode: .fresh, leader: "alice", for: "alice")
    world.feed(.rotate(others), to: "bob")
    #expect(world.members["bob"]!.refusals == [.notOnList])
  }

  /// An envelope to Bob's join key.
  private func sealed(
    _ secret: SymmetricKey, _ context: EnvelopeContext, by identity: DeviceIdentity, _ world: inout KeyWorld
  ) -> Envelope {
    let entry = world.members["bob"]!.entry
    return .sealing(
      secret, for: entry.address, alg: entry.joinKey!.alg, publicKey: entry.joinKey!.publicKey.bytes, in: context,
      from: identity)!
  }

  /// Announces a fresh epoch to Bob, and returns Alice's envelope for him.
  private func envelope(_ world: inout KeyWorld) -> Envelope {
    world.announce(["alice", "bob"], mode: .fresh, leader: "alice")
    return world.envelopes.removeFirst()
  }

  @Test func anEnvelopeThatIsAltered() {
    var world = KeyWorld.pair
    let good = envelope(&world)
    var all: [Envelope] = []
    func altered(_ change: (inout Envelope) -> Void) {
      var copy = good
      change(&copy)
      all.append(copy)
    }
    altered { $0.signature = nil }
    altered { $0.signature?.bytes[0] ^= 1 }
    altered { $0.sigAlg = nil }
    altered { $0.sigAlg = "PS256" }
    altered { $0.from = nil }
    altered { $0.from?.user = UserID("mallory")! }
    altered { $0.from?.user = UserID("bob")! }
    altered { $0.to.user = UserID("alice")! }
    altered { $0.ciphertext.bytes[70] ^= 1 }
    altered { $0.alg = "RSA-OAEP-256" }
    altered { $0.key.bytes[0] ^= 1 }
    altered { $0.epoch = 2 }
    altered { $0.epoch = 1 }
    altered { $0.epoch = 9 }
    world.members["bob"]!.acknowledged = [:]
    for envelope in all { world.deliver(envelope, to: "bob") }
    world.switchAll()
    #expect(throws: FrameCipherError.noKey) { try world.seal("x", from: "bob") }
    // Only envelopes of past epochs were acknowledged, so that they are not sent again. The one of epoch 9 waits for
    // its list.
    #expect(world.members["bob"]!.acknowledged.values.filter { $0 }.count == 2)
    #expect(world.members["bob"]!.listRequests == 1)
    world.deliver(good, to: "bob")
    #expect(throws: Never.self) { try world.seal("x", from: "bob") }
  }

  @Test func anEnvelopeThatTheServerMade() {
    var world = KeyWorld.pair
    var forged = envelope(&world)
    let secret = [UInt8](repeating: 6, count: 32)
    forged.ciphertext = Base64Bytes(
      try! WrapAlgorithm.hpke.seal(secret, to: world.members["bob"]!.entry.joinKey!.publicKey.bytes))
    world.deliver(forged, to: "bob")
    forged.signature = nil
    world.deliver(forged, to: "bob")
    #expect(world.members["bob"]!.refusals == [.envelopeNotAuthentic, .envelopeNotAuthentic])
  }

  @Test func anEnvelopeOfAMemberWhoIsNotOnTheList() {
    var world = KeyWorld.pair
    world.join("eve")
    let good = envelope(&world)
    let eve = world.members["eve"]!.agreement.own.identity
    let epoch = world.members["bob"]!.agreement.epochs[3]!
    let forged = sealed(
      SymmetricKey(size: .bits256), EnvelopeContext(call: KeyWorld.call, epoch: 3, listHash: epoch.listHash), by: eve,
      &world)
    world.deliver(forged, to: "bob")
    #expect(world.members["bob"]!.refusals == [.envelopeNotAuthentic])
    world.deliver(good, to: "bob")
    #expect(world.members["bob"]!.agreement.epochs[3]?.secret != nil)
  }

  @Test(arguments: ["call", "list", "epoch"])
  func anEnvelopeForAnotherPlace(_ place: String) {
    var world = KeyWorld.pair
    _ = envelope(&world)
    let epoch = world.members["bob"]!.agreement.epochs[3]!
    var context = EnvelopeContext(call: KeyWorld.call, epoch: 3, listHash: epoch.listHash)
    switch place {
    case "call": context.call = CallID("6d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d5")!
    case "list": context.listHash[0] ^= 1
    default: context.epoch = 4
    }
    var envelope = sealed(
      SymmetricKey(size: .bits256), context, by: world.members["alice"]!.agreement.own.identity, &world)
    envelope.epoch = 3
    world.deliver(envelope, to: "bob")
    #expect(world.members["bob"]!.refusals == [.envelopeNotAuthentic])
  }

  @Test func aSecretOfTheWrongSize() {
    var world = KeyWorld.pair
    _ = envelope(&world)
    let epoch = world.members["bob"]!.agreement.epochs[3]!
    let short = sealed(
      SymmetricKey(size: .bits128), EnvelopeContext(call: KeyWorld.call, epoch: 3, listHash: epoch.listHash),
      by: world.members["alice"]!.agreement.own.identity, &world)
    world.deliver(short, to: "bob")
    #expect(world.members["bob"]!.refusals == [.envelopeNotReadable])
  }

  @Test func theFirstSecretOfAnEpochStays() {
    var world = KeyWorld.pair
    let good = envelope(&world)
    world.deliver(good, to: "bob")
    let epoch = world.members["bob"]!.agreement.epochs[3]!
    let second = sealed(
      SymmetricKey(size: .bits256), EnvelopeContext(call: KeyWorld.call, epoch: 3, listHash: epoch.listHash),
      by: world.members["alice"]!.agreement.own.identity, &world)
    world.deliver(second, to: "bob")
    #expect(world.members["bob"]!.agreement.epochs[3]!.secret == epoch.secret)
  }
}
