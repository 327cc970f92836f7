import Contract
import MediaModel
import Testing

@testable import ConclaveClient

/// Key confirmation among the members of a call, and the replacement of their join keys.
struct ConfirmationTests {
  private func three() -> KeyWorld {
    var world = KeyWorld()
    world.start("alice")
    world.join("bob")
    world.rotate(["alice", "bob"], mode: .ratchet, leader: "alice")
    world.join("carol")
    world.rotate(["alice", "bob", "carol"], mode: .ratchet, leader: "alice")
    return world
  }

  @Test func allConfirmOnceAndAreConfirmed() {
    var world = three()
    for member in world.members.values { #expect(member.confirmation == .confirming) }
    world.run(.seconds(30))
    for member in world.members.values {
      #expect(member.confirmation == .confirmed)
      #expect(member.confirmations.map(\.epoch) == [3])
    }
  }

  @Test func aDeviceThatDoesNotConfirmIsNamedAndNobodyStops() {
    var world = three()
    // Carol has a different secret.
    world.members["carol"]!.agreement.epochs[3]?.secret = Epoch.secret(using: &world.generator)
    world.members["carol"]!.agreement.confirmations = Confirmations()
    world.run(.seconds(30))
    for name in ["alice", "bob"] {
      guard case .notConfirmed(let who) = world.members[name]!.confirmation else {
        Issue.record("\(name) was not told")
        continue
      }
      #expect(who.map(\.user) == ["carol"])
      #expect(world.members[name]!.isSending)
      #expect(world.members[name]!.silence.isEmpty)
    }
  }

  @Test func nothingIsConfirmedInAStormAndThatIsNoAlarm() {
    var world = three()
    for round in 0..<20 {
      world.announce(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
      world.deliverEnvelopes()
      world.switchAll()
      world.run(.milliseconds(300), step: .milliseconds(50))
      if round < 19 {
        for member in world.members.values {
          if case .notConfirmed = member.confirmation { Issue.record("a storm is no alarm") }
        }
      }
    }
    #expect(world.members["bob"]!.confirmations.count < 20)
    world.run(.seconds(3))
    #expect(world.members["bob"]!.confirmation == .confirmed)
  }

  /// After a fresh epoch the join key is replaced, and the next envelope is sealed to the new one.
  @Test func joinKeysAreReplaced() throws {
    var world = three()
    world.rotate(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
    world.run(.seconds(2))
    let refresh = try #require(world.members["bob"]!.confirmations.last?.joinKey)
    #expect(refresh.generation == 1)
    #expect(world.members["bob"]!.agreement.join.published == 1)
    // The next epoch is announced: an envelope to the old key is refused, one to the new key opens.
    world.announce(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
    world.envelopes = []
    world.run(.seconds(1))
    func ask(_ key: JoinKey?) {
      var entry = world.entryWithKeys("bob")
      entry.refresh = key
      world.feed(.keyRequest(KeyRequest(epoch: world.epoch, to: entry)), to: "alice")
      world.deliverEnvelopes()
    }
    ask(nil)
    #expect(world.members["alice"]!.warnings.map(\.problem) == [.oldJoinKey])
    ask(refresh)
    #expect(world.members["bob"]!.agreement.epochs[world.epoch]?.secret != nil)
    #expect(
      world.members["bob"]!.agreement.join.opener(JoinCredentials.hash(world.members["bob"]!.entry.joinKey!)) == nil)
    // It is not replaced twice within four minutes.
    world.switchAll()
    world.run(.seconds(2))
    #expect(world.members["bob"]!.confirmations.compactMap(\.joinKey).count == 1)
    world.run(.seconds(240), step: .seconds(1))
    world.announce(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
    world.envelopes = []
    ask(refresh)
    world.switchAll()
    world.run(.seconds(2))
    #expect(world.members["bob"]!.confirmations.compactMap(\.joinKey).map(\.generation) == [1, 2])
  }

  /// The server was killed before it stored the key: the same one goes with the next confirmation.
  @Test func aRefreshThatWasNotTakenIsOfferedAgain() throws {
    var world = three()
    var join = world.members["bob"]!.agreement.join
    let identity = world.members["bob"]!.agreement.own.identity
    let first = join.refresh(identity, at: KeyWorld.clock)
    let again = join.refresh(identity, at: KeyWorld.clock)
    #expect(again == first)
    join.publish()
    let next = join.refresh(identity, at: KeyWorld.clock)
    #expect(next.generation == 2)
    world.rotate(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
    world.epoch += 1
    world.run(.seconds(2))
    #expect(world.members["bob"]!.agreement.join.published == 0)
  }
}
