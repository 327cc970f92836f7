import CallMessages
import Contract
import MediaModel
import Testing

/// `hold` and call waiting (protocol section 4).
struct HoldRules {
  let stage = Stage()
  let alice: Client
  let bob: Client
  let carol: Client

  init() {
    alice = stage.connect("alice")
    bob = stage.connect("bob")
    carol = stage.connect("carol")
  }

  private func isHeld(_ user: String, in call: CallID, seenBy client: Client) throws -> [Bool]? {
    try client.state(call).members.first { $0.user.text == user }?.participants.map(\.held)
  }

  private func holds() -> [Bool] {
    stage.takeMedia().compactMap { if case .hold(_, let held) = $0 { held } else { nil } }
  }

  @Test func membersHearOfAHoldAndTheMediaPlaneDoes() throws {
    let call = try alice.call(["bob"])
    try bob.accept(call)
    #expect(bob.offer(call, .sending([:]), []) == nil)
    _ = alice.events()
    #expect(bob.code(.call(call, .hold(Hold(held: true)))) == nil)
    #expect(alice.events().causes == [.held])
    #expect(try isHeld("bob", in: call, seenBy: alice) == [true])
    #expect(bob.code(.call(call, .hold(Hold(held: true)))) == nil)
    #expect(alice.events().isEmpty && holds() == [true], "nothing changed")
    #expect(bob.code(.call(call, .hold(Hold(held: false)))) == nil)
    #expect(alice.events().causes == [.held])
    #expect(holds() == [false])
    #expect(carol.code(.call(call, .hold(Hold(held: true)))) == .callNotFound)
  }

  @Test func onlyAParticipantHolds() throws {
    let call = try alice.call(["bob"])
    #expect(bob.code(.call(call, .hold(Hold(held: true)))) == .callNotJoined)
  }

  @Test func acceptOfAnotherHoldsThePresentOne() throws {
    let first = try alice.call(["bob"])
    try bob.accept(first)
    #expect(bob.offer(first, .sending([:]), []) == nil)
    let second = try carol.call(["bob"])
    #expect(bob.events().rings.last?.waiting == true)
    _ = alice.events()
    try bob.accept(second)
    #expect(try isHeld("bob", in: first, seenBy: alice) == [true])
    #expect(try isHeld("bob", in: second, seenBy: carol) == [false])
    #expect(alice.events().causes == [.held])
    #expect(holds() == [true])
    #expect(bob.code(.call(first, .hold(Hold(held: false)))) == nil)
    #expect(try isHeld("bob", in: first, seenBy: alice) == [false])
    #expect(try isHeld("bob", in: second, seenBy: carol) == [true], "the other one is held then")
    _ = bob.ask(.call(first, .leave))
    #expect(try isHeld("bob", in: second, seenBy: carol) == [true], "nothing resumes by itself")
  }

  @Test func soDoStartJoinRejoinAndTransfer() throws {
    let first = try alice.call(["bob", "nobody"])
    try bob.accept(first)
    let second = try bob.call(["carol"])
    #expect(try isHeld("bob", in: first, seenBy: alice) == [true])
    try bob.rejoin(first)
    #expect(try isHeld("bob", in: first, seenBy: alice) == [false], "a new participant is not held")
    #expect(try isHeld("bob", in: second, seenBy: carol) == [true])
    let tablet = stage.connect("bob", "tablet")
    let dave = stage.connect("dave")
    let third = try tablet.call(["dave"])
    try tablet.transfer(second)
    #expect(try isHeld("bob", in: second, seenBy: carol) == [true, false])
    #expect(try isHeld("bob", in: third, seenBy: dave) == [true])
    #expect(try isHeld("bob", in: first, seenBy: alice) == [false], "of another device")
  }

  @Test func aHoldBeforeTheFirstOfferIsToldWithIt() throws {
    let call = try alice.call(["bob"])
    #expect(alice.code(.call(call, .hold(Hold(held: true)))) == nil)
    #expect(holds().isEmpty, "the media plane does not know the peer")
    #expect(alice.offer(call, .sending([:]), []) == nil)
    #expect(holds() == [true])
    #expect(alice.offer(call, .sending([:]), []) == nil)
    #expect(holds().isEmpty)
  }

  @Test func aHeldParticipantStaysOnTheListOfKeysAndIsNoSpeaker() throws {
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    _ = bob.ask(.call(call, .hold(Hold(held: true))))
    try carol.accept(call)
    stage.advance(.milliseconds(100))
    #expect(alice.events().rotations.last?.deliver?.count == 2)
    #expect(bob.names().contains(.keysRotate))
    stage.handle(.media(.speakers(call, [2, 1, 9])))
    #expect(carol.events().contains(.speakers(Speakers(participants: [1]))))
    stage.handle(.media(.speakers(call, [1])))
    #expect(carol.events().isEmpty, "no change")
  }
}
