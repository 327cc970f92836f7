import CallMessages
import Contract
import MediaModel
import Testing

/// Links (protocol section 4), and rule 9 while one is valid.
struct LinkRules {
  let stage = Stage()
  let alice: Client
  let bob: Client
  let guest: Client

  init() {
    alice = stage.connect("alice")
    bob = stage.connect("bob")
    guest = stage.connect("guest")
  }

  private func link(_ call: CallID, _ seconds: Int? = nil, by client: Client? = nil) throws -> CallLink {
    try (client ?? alice).get(.call(call, .link(MakeLink(expiresIn: seconds))))
  }

  private func join(_ call: CallID, _ link: String, _ client: Client? = nil) -> RequestError.Code? {
    let client = client ?? guest
    return client.code(.call(call, .join(client.join(link: link))))
  }

  @Test func itsHolderBecomesAMemberShownAsSuch() throws {
    let call = try alice.call(["bob"])
    let link = try link(call)
    #expect(link.expiresAt == stage.now + .seconds(3_600))
    #expect(
      link.link.utf8.allSatisfy { "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8.contains($0) }
    )
    let joined: Joined = try guest.get(.call(call, .join(guest.join(link: link.link))))
    let member = try #require(joined.call.members.first { $0.user == guest.user })
    #expect(member.link == true && member.state == .joined && joined.call.state == .active)
    #expect(joined.call.members.first?.link == nil)
    guard case .member(let change)? = alice.events().last else { return #expect(Bool(false)) }
    #expect(change.cause == .joined && change.member.link == true && change.member.name == "guest")
    _ = guest.ask(.call(call, .leave))
    #expect(guest.code(.call(call, .join(guest.join()))) == nil, "a member needs no link")
    #expect(bob.code(.call(call, .accept(bob.join()))) == nil)
  }

  @Test func aLinkThatIsOverForeignOrGarbledIsInvalid() throws {
    let call = try alice.call(["bob"]) { $0.ringSeconds = 120 }
    _ = stage.connect("dave")
    let other = try bob.call(["dave"]) { $0.ringSeconds = 120 }
    let good = try link(call, 60).link
    let foreign = try link(other, by: bob).link
    var flipped = Array(good.utf8)
    flipped[20] = flipped[20] == UInt8(ascii: "A") ? UInt8(ascii: "B") : UInt8(ascii: "A")
    for bad in [
      foreign, String(decoding: flipped, as: UTF8.self), "", String(good.dropLast()), good + "A", good + "==",
      String(repeating: "é", count: 27), String(repeating: "+", count: 54),
    ] {
      #expect(join(call, bad) == .callLinkInvalid)
    }
    #expect(guest.code(.call(call, .join(guest.join()))) == .callNotFound)
    #expect(guest.code(.call(call, .accept(Join(link: good)))) == .callNotFound, "only for join")
    stage.advance(.milliseconds(59_999))
    #expect(join(call, good) == nil)
    stage.advance(.milliseconds(1))
    #expect(join(call, good, stage.connect("late")) == .callLinkInvalid)
  }

  @Test func revokedLinksAreVoidAndNewOnesAreNot() throws {
    let call = try alice.call(["bob"])
    let old = try link(call).link
    #expect(alice.code(.call(call, .link(MakeLink(revoke: true)))) == nil)
    #expect(join(call, old) == .callLinkInvalid)
    let new = try link(call).link
    #expect(join(call, old) == .callLinkInvalid)
    #expect(join(call, new) == nil)
  }

  @Test func eachMemberThatMayInviteMayMakeOne() throws {
    let call = try alice.call(["bob", "nobody"]) { $0.invite = .initiator }
    #expect(bob.code(.call(call, .link(MakeLink()))) == .callNotJoined)
    try bob.accept(call)
    #expect(bob.code(.call(call, .link(MakeLink()))) == .callInviteNotAllowed)
    #expect(bob.code(.call(call, .link(MakeLink(revoke: true)))) == .callInviteNotAllowed)
    #expect(guest.code(.call(call, .link(MakeLink()))) == .callNotFound)
    for seconds in [0, 59, 86_401, .min, .max] {
      #expect(alice.code(.call(call, .link(MakeLink(expiresIn: seconds)))) == .requestInvalid)
    }
    #expect(try link(call, 86_400).expiresAt == stage.now + .seconds(86_400))
  }

  @Test func aCancelledOrDecliningUserMayComeInByIt() throws {
    let carol = stage.connect("carol")
    let call = try alice.call(["bob", "carol"])
    let link = try link(call).link
    _ = alice.ask(.call(call, .cancel(Cancel(callees: [bob.user]))))
    #expect(bob.code(.call(call, .join(bob.join()))) == .authForbidden)
    #expect(join(call, "nonsense", bob) == .callLinkInvalid)
    #expect(join(call, link, bob) == nil)
    _ = carol.ask(.call(call, .decline(Decline())))
    #expect(join(call, "nonsense", carol) == nil, "she needs none")
    #expect(try alice.state(call).members.map(\.link) == [nil, true, nil])
  }

  @Test func limitsHoldForLinksToo() throws {
    let stage = Stage {
      $0.limits.participants = 2
      $0.limits.members = 3
    }
    let alice = stage.connect("alice")
    let call = try alice.call(["nobody"]) { $0.aloneSeconds = 60 }
    let link: CallLink = try alice.get(.call(call, .link(MakeLink())))
    let guests = ["a", "b", "c"].map { stage.connect($0) }
    #expect(join(call, link.link, guests[0]) == nil)
    #expect(join(call, link.link, guests[1]) == .callFull)
    _ = guests[0].ask(.call(call, .leave))
    #expect(join(call, link.link, guests[1]) == nil)
    _ = guests[1].ask(.call(call, .leave))
    #expect(join(call, link.link, guests[2]) == .callFull, "three members are the limit, including those who left")
  }

  @Test func aStrangerLearnsFromNoRefusalWhetherACallIsOrWas() throws {
    let over = try alice.call(["bob"])
    let overLink = try link(over).link
    #expect(alice.code(.call(over, .end)) == nil)
    let call = try alice.call(["bob"])
    _ = stage.connect("dave")
    let linkless = try bob.call(["dave"])
    let good = try link(call).link
    let refusals = [
      (over, overLink), (over, "nonsense"), (call, overLink), (call, "nonsense"), (linkless, good),
      (linkless, "nonsense"),
      (CallID(unchecked: "other"), good), (CallID(unchecked: "other"), "nonsense"),
    ].map { id, link in guest.error(.call(id, .join(Join(link: link)))) }
    #expect(refusals.first??.code == .callLinkInvalid && Set(refusals).count == 1)
    #expect(join(over, "nonsense", bob) == .callEnded, "a former member hears that it is over")
    #expect(join(call, good) == nil)
  }

  @Test func aRepeatedJoinByLinkIsTheSameJoin() throws {
    let call = try alice.call(["bob"])
    let link = try link(call).link
    let first: Joined = try guest.get(.call(call, .join(Join(link: link, joinId: joinId(5)))))
    _ = alice.ask(.call(call, .link(MakeLink(revoke: true))))
    #expect(try guest.get(.call(call, .join(Join(link: link, joinId: joinId(5)))), as: Joined.self) == first)
  }

  @Test func rule9ALinkKeepsWhoIsAloneForAnHour() throws {
    let call = try alice.call([])
    _ = try link(call, 86_400)
    stage.advance(.milliseconds(3_599_999))
    #expect(try alice.state(call).state == .ringing)
    stage.advance(.milliseconds(1))
    #expect(alice.events().ended?.reason == .cancelled)
  }

  @Test func rule9OrUntilItIsOverOrRevoked() throws {
    let first = try alice.call([])
    _ = try link(first, 600)
    stage.advance(.milliseconds(599_999))
    #expect(try alice.state(first).state == .ringing)
    stage.advance(.milliseconds(1))
    #expect(alice.events().ended != nil)
    let second = try alice.call([])
    _ = try link(second, 60)
    stage.advance(.seconds(119))
    #expect(try alice.state(second).state == .ringing, "the minimum is 120 s")
    stage.advance(.seconds(1))
    #expect(alice.events().ended != nil)
    let third = try alice.call([])
    _ = try link(third)
    stage.advance(.seconds(130))
    #expect(alice.code(.call(third, .link(MakeLink(revoke: true)))) == nil)
    #expect(alice.events().ended != nil, "already alone for longer than 120 s")
  }

  @Test func rule9AnAloneTimeThatStartNamedStays() throws {
    let call = try alice.call([]) { $0.aloneSeconds = 10 }
    _ = try link(call)
    stage.advance(.seconds(10))
    #expect(alice.events().ended != nil)
  }

  @Test func rule9ACallOfTwoWithALinkGoesOn() throws {
    let call = try alice.call(["bob"])
    _ = try link(call, 60)
    try bob.accept(call)
    _ = bob.ask(.call(call, .leave))
    stage.advance(.milliseconds(59_999))
    #expect(try alice.state(call).state == .active)
    stage.advance(.milliseconds(1))
    #expect(alice.events().ended?.reason == .allLeft)
  }

  @Test func rule9AJoinByLinkMakesItACallOfMany() throws {
    let call = try alice.call(["bob"])
    try bob.accept(call)
    let link = try link(call).link
    #expect(join(call, link) == nil)
    _ = alice.ask(.call(call, .link(MakeLink(revoke: true))))
    _ = bob.ask(.call(call, .leave))
    _ = guest.ask(.call(call, .leave))
    stage.advance(.seconds(119))
    #expect(try alice.state(call).state == .active)
  }
}
