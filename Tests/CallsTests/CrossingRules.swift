import CallMessages
import Contract
import MediaModel
import Testing

/// "Calls that cross" of protocol section 4, rule by rule. `CrossingWorlds` tries the orders.
struct CrossingRules {
  let stage = Stage()
  let alice: Client
  let bob: Client

  init() {
    alice = stage.connect("alice")
    bob = stage.connect("bob")
  }

  private func phases(_ call: CallID, seenBy client: Client) throws -> [String: MemberPhase] {
    Dictionary(uniqueKeysWithValues: try client.state(call).members.map { ($0.user.text, $0.state) })
  }

  @Test(arguments: [CallMedia.audio, .video], [Policy.WhenBusy.ring, .reject])
  func aStartThatCrossesARingIsRefusedWithItsCall(media: CallMedia, whenBusy: Policy.WhenBusy) throws {
    let call = try alice.call(["bob"], media: media) { $0.whenBusy = whenBusy }
    _ = alice.events()
    var policy = Policy()
    policy.whenBusy = whenBusy
    let error = try #require(bob.error(bob.start([alice.user], media: .video, policy: policy)))
    #expect(error.code == .callCrossed && error.call == call)
    #expect(!alice.events().contains(.callRing) && stage.node.counts.calls == 1)
    try bob.accept(call)
    #expect(try phases(call, seenBy: alice) == ["alice": .joined, "bob": .joined])
  }

  @Test func groupsCrossWhenTheyAreOfTheSamePeople() throws {
    let carol = stage.connect("carol")
    let call = try alice.call(["bob", "carol"])
    #expect(bob.error(bob.start([carol.user, alice.user]))?.call == call)
    try bob.accept(call)
    #expect(carol.error(carol.start([alice.user, bob.user]))?.call == call, "two talk already")
    #expect(carol.events().rings.count == 1)
  }

  @Test func callsOfOtherPeopleDoNotCross() throws {
    let carol = stage.connect("carol")
    let dave = stage.connect("dave")
    _ = try alice.call(["carol", "dave"])
    _ = try bob.call(["carol", "dave"])
    #expect(carol.events().rings.map(\.waiting) == [false, true])
    #expect(carol.code(carol.start([alice.user])) == nil, "fewer people")
    #expect(dave.code(dave.start([alice.user, bob.user, carol.user])) == nil, "more people")
  }

  @Test func aCalleeWhoCannotBeRungMakesNoOtherCall() throws {
    let call = try alice.call(["bob", "nobody"])
    #expect(bob.error(bob.start([alice.user, UserID(unchecked: "stranger")]))?.call == call)
    let carol = stage.connect("carol")
    #expect(bob.code(bob.start([alice.user, carol.user])) == nil)
  }

  @Test func aCallerWhoRingsAgainRingsOnce() throws {
    let tablet = stage.connect("alice", "tablet")
    let first = try alice.call(["bob"])
    #expect(bob.events().rings.count == 1)
    _ = alice.events()
    let second = try tablet.call(["bob"])
    let events = bob.events()
    #expect(events.map(\.name) == [.callRing, .callCancelled, .callEnded])
    #expect(events.rings.map(\.waiting) == [false])
    #expect(events.ended == Ended(reason: .cancelled, by: alice.user, seconds: 0))
    #expect(alice.events().ended?.by == alice.user)
    #expect(bob.code(.call(first, .accept(bob.join()))) == .callEnded)
    try bob.accept(second)
  }

  @Test func withRejectTheOwnEarlierRingIsNotBusy() throws {
    let tablet = stage.connect("alice", "tablet")
    _ = try alice.call(["bob"]) { $0.whenBusy = .reject }
    #expect(try tablet.started(["bob"]) { $0.whenBusy = .reject }.results == [bob.user: .ringing])
  }

  @Test func aCallWithALinkIsNotReplaced() throws {
    let tablet = stage.connect("alice", "tablet")
    let first = try alice.call(["bob"])
    _ = alice.ask(.call(first, .link(MakeLink(expiresIn: 60))))
    _ = try tablet.call(["bob"])
    #expect(try phases(first, seenBy: alice) == ["alice": .joined, "bob": .ringing])
  }

  @Test func aRingWhoseCallerIsGoneIsReplacedByACallToThem() throws {
    let tablet = stage.connect("alice", "tablet")
    let first = try alice.call(["bob"])
    alice.disconnect()
    let second = try bob.call(["alice"])
    #expect(tablet.events().rings.count == 1)
    #expect(bob.events().ended?.reason == .cancelled, "of \(first.text)")
    try tablet.accept(second)
    #expect(stage.node.counts.calls == 1)
  }

  @Test(arguments: [1, 16, 200])
  func aMemberWhoseDeviceIsGoneComesBackByCallingTheOther(seconds: Int) throws {
    let call = try alice.call(["bob"])
    try bob.accept(call)
    bob.disconnect()
    stage.advance(.seconds(seconds))
    let tablet = stage.connect("bob", "tablet")
    _ = alice.events()
    #expect(tablet.error(tablet.start([alice.user]))?.call == call)
    if try phases(call, seenBy: tablet)["bob"] == .joined {
      try tablet.transfer(call)
    } else {
      try tablet.rejoin(call)
    }
    #expect(!alice.events().contains(.callRing))
    stage.advance(.seconds(16))
    #expect(try tablet.participants(of: "bob", in: call) == [3])
  }

  @Test func aCallToSomebodyWhoseDeviceIsGoneRingsAnew() throws {
    let call = try alice.call(["bob"])
    try bob.accept(call)
    bob.disconnect()
    let tablet = stage.connect("bob", "tablet")
    let second = try alice.call(["bob"])
    #expect(tablet.events().rings.map(\.waiting) == [false])
    #expect(alice.events().ended == Ended(reason: .allLeft, by: alice.user, seconds: 0))
    try tablet.accept(second)
    #expect(tablet.code(.call(call, .rejoin(tablet.join()))) == .callEnded)
  }

  @Test func mediaAloneKeepsACall() throws {
    let call = try alice.call(["bob"])
    try bob.accept(call)
    try bob.connectMedia(call)
    bob.disconnect()
    #expect(alice.error(alice.start([bob.user]))?.call == call)
  }

  @Test func theOtherDeviceOfSomebodyInTheCallMeansTheCall() throws {
    let tablet = stage.connect("bob", "tablet")
    let call = try alice.call(["bob"])
    try bob.accept(call)
    #expect(tablet.error(tablet.start([alice.user]))?.call == call)
    try tablet.transfer(call)
    #expect(try alice.participants(of: "bob", in: call) == [2, 3])
  }

  @Test func aServiceCallThatRingsBothIsMeantToo() throws {
    let service = stage.connectService()
    let made: StartedCall = try service.get(.start(StartCall(callees: [bob.user], media: .audio, as: alice.user)))
    let call = made.call.id
    #expect(bob.error(bob.start([alice.user]))?.call == call)
    try bob.accept(call)
    #expect(alice.error(alice.start([bob.user]))?.call == call)
    try alice.accept(call)
  }

  @Test func theBackEndIsNotAskedAboutACallThatCrosses() throws {
    let stage = Stage { $0.asksBackEnd = true }
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    // Bob's question is pending when Alice's ring is allowed.
    stage.handle(.request(alice.session, id: "a", alice.withWords(alice.start([bob.user]))))
    stage.handle(.request(bob.session, id: "b", bob.withWords(bob.start([alice.user]))))
    for case .ask(let question, _) in stage.takeOthers() {
      stage.handle(.answer(question, allowed: [alice.user, bob.user]))
    }
    guard case .ok(.joined(let joined))? = stage.reply("a") else { return #expect(Bool(false)) }
    guard case .failed(let error)? = stage.reply("b") else { return #expect(Bool(false)) }
    #expect(error.code == .callCrossed && error.call == joined.call.id)
    #expect(bob.error(bob.start([alice.user]))?.call == joined.call.id)
    #expect(!stage.takeOthers().contains { if case .ask = $0 { true } else { false } })
  }

  @Test func anAnswerEndsTheRingsThatItMakesPointless() throws {
    let carol = stage.connect("carol")
    let group = try alice.call(["bob", "carol"])
    let pair = try bob.call(["alice"])
    for client in [alice, bob, carol] { _ = client.events() }
    try alice.accept(pair)
    #expect(bob.names().contains(.callCancelled))
    #expect(bob.code(.call(group, .accept(bob.join()))) == .callNotRinging)
    #expect(try phases(group, seenBy: alice) == ["alice": .joined, "bob": .cancelled, "carol": .ringing])
    #expect(!carol.events().contains(.callCancelled))
  }

  @Test func aCallThatIsLeftWithoutARingThenEnds() throws {
    let carol = stage.connect("carol")
    let group = try alice.call(["bob", "carol"])
    let pair = try bob.call(["alice"])
    _ = bob.events()
    try bob.accept(group)
    #expect(bob.events().ended?.reason == .cancelled)
    #expect(alice.code(.call(pair, .accept(alice.join()))) == .callEnded)
    try carol.accept(group)
  }

  @Test func aRingBySomebodyElseGoesOn() throws {
    let carol = stage.connect("carol")
    let group = try alice.call(["bob", "carol"])
    try carol.accept(group)
    _ = alice.ask(.call(group, .cancel(Cancel(callees: [bob.user]))))
    _ = carol.ask(.call(group, .invite(Invite(callees: [bob.user]))))
    let pair = try bob.call(["alice"])
    try alice.accept(pair)
    #expect(try phases(group, seenBy: carol)["bob"] == .ringing, "Carol rings")
  }

  @Test func aStartThatIsRepeatedIsNoCrossing() throws {
    let first = try alice.started(["bob"], join: 1)
    #expect(try alice.started(["bob"], join: 1) == first)
  }
}
