import Contract
import MediaModel
import Testing

@testable import ConclaveClient

/// Epochs with an honest server: which devices can read each other, and when.
struct EpochTests {
  private func three() -> KeyWorld {
    var world = KeyWorld()
    world.start("alice")
    world.join("bob")
    world.rotate(["alice", "bob"], mode: .ratchet, leader: "alice")
    world.join("carol")
    world.rotate(["alice", "bob", "carol"], mode: .ratchet, leader: "alice")
    return world
  }

  /// After a restart of the server the announcement comes once everybody in a large call is back.
  @Test(arguments: [(2, 5_020), (300, 8_000), (5_000, 15_000)])
  func aNewcomerWaitsLongerForTheListOfALargeCall(members: Int, milliseconds: Int) throws {
    var world = KeyWorld()
    world.start("alice")
    world.join("bob")
    var joined = world.joined("bob")
    let alice = try #require(joined.call.members.first { $0.user.text == "alice" })
    joined.call.members += Array(repeating: alice, count: members - 2)
    var bob = try #require(world.members["bob"]).agreement
    _ = bob.enter(joined, now: world.now)
    func asks(at time: Int) -> Bool {
      bob.handleTimeout(now: world.now.advanced(by: .milliseconds(time))).contains {
        if case .request(.calls(.inCall(_, .listKeys))) = $0 { true } else { false }
      }
    }
    #expect(!asks(at: milliseconds - 1))
    #expect(asks(at: milliseconds))
  }

  @Test func everyoneReadsEveryone() throws {
    let world = three()
    for from in ["alice", "bob", "carol"] {
      for to in ["alice", "bob", "carol"] where to != from {
        let (text, opened) = try world.travel("hello", from: from, to: to)
        #expect(text == "hello")
        #expect(opened.participant == world.members[from]!.entry.participant)
        #expect(opened.track == 1)
      }
    }
    #expect(world.members.values.allSatisfy { $0.refusals.isEmpty })
    #expect(Set(world.members.values.map(\.code)).count == 1)
  }

  @Test func newMembersReadNothingFromBefore() throws {
    var world = KeyWorld()
    world.start("alice")
    world.join("bob")
    world.rotate(["alice", "bob"], mode: .ratchet, leader: "alice")
    let before = try world.seal("secret", from: "alice")
    world.join("carol")
    world.rotate(["alice", "bob", "carol"], mode: .ratchet, leader: "alice")
    #expect(throws: FrameCipherError.unknownKey) { try world.open(before, as: "carol") }
    #expect(try world.open(before, as: "bob").0 == "secret")
  }

  @Test func aRatchetSendsEnvelopesToTheNewOnly() {
    var world = KeyWorld()
    world.start("alice")
    world.join("bob")
    world.rotate(["alice", "bob"], mode: .ratchet, leader: "alice")
    world.join("carol")
    world.announce(["alice", "bob", "carol"], mode: .ratchet, leader: "alice")
    #expect(world.envelopes.map(\.to.user.text) == ["carol"])
  }

  @Test func formerMembersReadNothingAfter() throws {
    var world = three()
    let code = world.members["bob"]!.code
    world.rotate(["bob", "carol"], mode: .fresh, leader: "bob")
    let frame = try world.seal("gone?", from: "bob")
    #expect(try world.open(frame, as: "carol").0 == "gone?")
    #expect(throws: FrameCipherError.self) { try world.open(frame, as: "alice") }
    #expect(world.members["bob"]!.code != code)
    #expect(world.members["bob"]!.code == world.members["carol"]!.code)
  }

  @Test func theKeyBeforeOpensFramesForTenSeconds() throws {
    var world = three()
    let first = try world.seal("1", from: "bob")
    let second = try world.seal("2", from: "bob")
    world.rotate(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
    world.advance(by: .milliseconds(9_999))
    #expect(try world.open(first, as: "carol").0 == "1")
    world.advance(by: .milliseconds(1))
    #expect(throws: FrameCipherError.unknownKey) { try world.open(second, as: "carol") }
    #expect(try world.travel("3", from: "bob", to: "carol").0 == "3")
  }

  @Test func framesOfTheNewKeyOpenBeforeTheOwnSwitch() throws {
    var world = three()
    world.announce(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
    world.deliverEnvelopes()
    world.feed(.switchKeys(epoch: world.epoch), to: "bob")
    #expect(try world.travel("early", from: "bob", to: "carol").0 == "early")
    #expect(try world.travel("late", from: "carol", to: "bob").0 == "late")
  }

  @Test func theFirstAnswerCountsWhenTheLeaderWasChanged() throws {
    var world = three()
    let names = ["alice", "bob", "carol"]
    // Bob is asked second, makes another secret, and is told that he was late.
    let second = world.rotation(to: names, mode: .fresh, leader: "bob", for: "bob")
    world.announce(names, mode: .fresh, leader: "alice")
    let counted = world.envelopes
    let effects = world.members["bob"]!.agreement.handle(.rotate(second), now: world.now, using: &world.generator)
    #expect(effects.contains { if case .request(.calls(.inCall(_, .keys))) = $0 { true } else { false } })
    world.feed(.handedOut(epoch: world.epoch, taken: false), to: "bob")
    world.envelopes = counted
    world.deliverEnvelopes()
    world.switchAll()
    #expect(try world.travel("one key", from: "bob", to: "carol").0 == "one key")
  }

  /// The server accepted another leader's answer, and forgot the envelope for this device when the next epoch began
  /// during its absence.
  @Test func aLeaderThatWasNotAnsweredAsksForTheKey() throws {
    var world = three()
    let names = ["alice", "bob", "carol"]
    let second = world.rotation(to: names, mode: .fresh, leader: "bob", for: "bob")
    world.announce(names, mode: .fresh, leader: "alice")
    world.envelopes.removeAll { $0.to.user.text == "bob" }
    _ = world.members["bob"]!.agreement.handle(.rotate(second), now: world.now, using: &world.generator)
    world.deliverEnvelopes()
    world.switchAll()
    #expect(!world.members["bob"]!.isSending)
    world.advance(by: .milliseconds(500))
    #expect(world.members["bob"]!.keyRequests == 0, "the answer may be in flight")
    world.feed(.handedOut(epoch: world.epoch, taken: nil), to: "bob")
    #expect(world.members["bob"]!.keyRequests == 1)
    world.feed(.keyRequest(KeyRequest(epoch: world.epoch, to: world.entryWithKeys("bob"))), to: "alice")
    world.deliverEnvelopes()
    #expect(try world.travel("one key", from: "bob", to: "carol").0 == "one key")
  }

  @Test func aMissingKeyIsAskedForAndSendsNothingMeanwhile() throws {
    var world = three()
    world.announce(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
    let lost = world.envelopes.first { $0.to.user.text == "carol" }!
    world.envelopes.removeAll { $0 == lost }
    world.deliverEnvelopes()
    world.switchAll()
    #expect(!world.members["carol"]!.isSending)
    #expect(throws: FrameCipherError.noKey) { try world.seal("?", from: "carol") }
    world.advance(by: .milliseconds(500))
    #expect(world.members["carol"]!.keyRequests == 1)
    world.feed(.keyRequest(KeyRequest(epoch: world.epoch, to: world.entryWithKeys("carol"))), to: "alice")
    world.deliverEnvelopes()
    #expect(try world.travel("back", from: "carol", to: "bob").0 == "back")
    world.advance(by: .seconds(30))
    #expect(world.members["carol"]!.keyRequests == 1)
  }

  @Test func aKeyThatNeverComesIsAskedForThreeTimes() {
    var world = three()
    world.announce(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
    world.switchAll()
    for _ in 0..<20 { world.advance(by: .seconds(2)) }
    #expect(world.members["carol"]!.keyRequests == 3)
    #expect(world.members["carol"]!.refusals == [.keyWithheld])
  }

  @Test func aMissedAnnouncementIsMadeUpFromTheList() throws {
    var world = three()
    let names = ["alice", "bob", "carol"]
    world.announce(names, mode: .fresh, leader: "alice", only: ["alice", "bob"])
    world.feed(.switchKeys(epoch: world.epoch), to: "carol")
    #expect(world.members["carol"]!.listRequests == 1)
    world.feed(.list(world.keyList(since: world.epoch - 1)), to: "carol")
    world.advance(by: .milliseconds(500))
    #expect(world.members["carol"]!.keyRequests == 1)
    world.deliverEnvelopes()
    world.switchAll()
    #expect(try world.travel("again", from: "alice", to: "carol").0 == "again")
  }

  @Test func aLeaderWithoutTheOldSecretAsksForAFreshEpoch() {
    var world = three()
    world.announce(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
    world.switchAll()
    world.join("dave")
    let asked = world.members["carol"]!.keyRequests
    world.announce(["alice", "bob", "carol", "dave"], mode: .ratchet, leader: "carol")
    #expect(world.members["carol"]!.keyRequests == asked + 1)
  }

  @Test func aRejoinedDeviceTakesItsOldPlace() throws {
    var world = three()
    world.rejoin("bob", as: 9)
    world.rotate(["alice", "bob", "carol"], mode: .fresh, leader: "alice")
    #expect(try world.travel("new", from: "bob", to: "carol").1.participant == 9)
    #expect(world.members.values.allSatisfy { $0.refusals.isEmpty && $0.warnings.isEmpty })
  }
}
