@testable import Calls
@testable import CallMachine
import Contract
import MediaModel
import Simulation
import Testing

import CallMessages

/// The facts about calls that are stored for the history (protocol section 8).
struct HistoryRules {
  let stage = Stage()

  private func outcome(of user: String) -> HistoryEntry.Outcome? {
    stage.disk.history.compactMap { fact -> HistoryEntry.Outcome? in
      if case .part(_, let who, _, _, let outcome) = fact, who.text == user { outcome } else { nil }
    }.last
  }

  @Test func aCallerThatHangsUpAfterAllDeclinedWasDeclined() throws {
    let alice = stage.connect("alice")
    let callees = ["bob", "carol"].map { stage.connect($0) }
    let call = try alice.call(["bob", "carol"])
    for callee in callees { #expect(callee.code(.call(call, .decline(Decline()))) == nil) }
    #expect(alice.code(.call(call, .end)) == nil)
    #expect(outcome(of: "alice") == .declined)
  }

  @Test func aCallerThatHangsUpWhileOthersMissedItHasAMissedCall() throws {
    let alice = stage.connect("alice")
    for user in ["bob", "carol"] { _ = stage.connect(user) }
    let call = try alice.call(["bob", "carol"]) { $0.ringSeconds = 5 }
    stage.advance(.seconds(6))
    #expect(alice.code(.call(call, .end)) == nil)
    #expect(outcome(of: "alice") == .missed)
  }

  @Test func aCalleeWhoIsNotRungHasTheCallAsMissed() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    _ = bob.ask(.people(.setPresence(SetPresence(state: .unavailable))))
    _ = try alice.call(["bob", "nobody"])
    #expect(outcome(of: "bob") == .missed && outcome(of: "alice") == nil, "alice may ring others for a while")
    stage.advance(.seconds(120))
    #expect(outcome(of: "alice") == .missed)
    #expect(outcome(of: "nobody") == nil, "a user without devices has no history")

    // A busy user whom the policy does not ring has also missed it.
    let other = stage.connect("dave")
    try carol.accept(try other.call(["carol"]))
    _ = try alice.call(["carol", "bob"]) { $0.whenBusy = .reject }
    let missed = stage.disk.history.count {
      if case .part(_, carol.user, _, .incoming, .missed) = $0 { true } else { false }
    }
    #expect(missed == 1)
  }

  @Test func aCalleeWhoIsInvitedAgainAndComesHasAnsweredIt() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    _ = stage.connect("carol")
    _ = bob.ask(.people(.setPresence(SetPresence(state: .unavailable))))
    let call = try alice.call(["bob", "carol"])
    #expect(outcome(of: "bob") == .missed)
    _ = bob.ask(.people(.setPresence(SetPresence(state: .available))))
    #expect(alice.code(.call(call, .invite(Invite(callees: [bob.user])))) == nil)
    try bob.accept(call)
    #expect(outcome(of: "bob") == .answered && outcome(of: "alice") == .answered)
  }

  @Test func aForgottenUserWhoWasNotRungIsInTheHistoryOnceCalledAgain() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    _ = stage.connect("carol")
    _ = bob.ask(.people(.setPresence(SetPresence(state: .unavailable))))
    let call = try alice.call(["bob", "carol"])
    stage.handle(.forget(bob.user))
    #expect(stage.node.control.calls[call]?.silenced.names.isEmpty == true)

    let again = stage.connect("bob")
    _ = again.ask(.people(.setPresence(SetPresence(state: .unavailable))))
    let before = stage.disk.history.count
    #expect(alice.code(.call(call, .invite(Invite(callees: [bob.user])))) == nil)
    #expect(stage.disk.history.dropFirst(before) == [.part(call, bob.user, name: "bob", .incoming, .missed)])
  }

  @Test func aForgottenUserThatComesBackByALinkIsInTheHistoryAgain() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"])
    try bob.accept(call)
    let link: CallLink = try bob.get(.call(call, .link(MakeLink(expiresIn: 3_600, revoke: nil))))
    stage.handle(.forget(alice.user))
    let again = stage.connect("alice")
    _ = try again.get(.call(call, .join(again.join(link: link.link))), as: Joined.self)
    let stays = stage.disk.history.count { if case .came(_, alice.user, _) = $0 { true } else { false } }
    #expect(stays == 1, "the stay before is forgotten, this one is not")
  }

  @Test func aCallThatAServiceStartedHasAnOutcomeForItsInitiator() throws {
    _ = stage.connect("alice")
    _ = stage.connect("bob")
    let service = stage.connectService()
    var policy = Policy()
    policy.ringSeconds = 5
    let callees = [UserID(unchecked: "bob")]
    let start = StartCall(callees: callees, media: .audio, policy: policy, as: UserID(unchecked: "alice"))
    #expect(service.code(.start(start)) == nil)
    stage.advance(.seconds(6))
    #expect(outcome(of: "alice") == .missed)
  }
}
