@testable import CallMachine
import Contract
import MediaModel
import Simulation
import Testing

import CallMessages

/// State besides the calls that survives a restart: presence, former joins, calls of forgotten users.
struct RestartMemoryRules {
  let stage = Stage()

  private func user(_ name: String) -> UserID { UserID(unchecked: name) }

  // MARK: presence

  @Test func unavailableUsersStaySo() throws {
    let bob = stage.connect("bob")
    _ = stage.connect("carol")
    #expect(bob.set(.unavailable) == nil)
    stage.restart(after: .seconds(60))
    let alice = stage.connect("alice")
    #expect(
      try alice.started(["bob", "carol"], join: 1).results == [user("bob"): .unavailable, user("carol"): .offline])
    stage.advance(.seconds(19))
    _ = stage.connect("bob", keys: false)
    stage.advance(.seconds(60))
    #expect(try alice.started(["bob"], join: 2).results == [user("bob"): .unavailable])
  }

  @Test func aDeviceThatDoesNotComeBackIsForgottenAfter20Seconds() throws {
    let bob = stage.connect("bob")
    #expect(bob.set(.unavailable) == nil)
    stage.restart()
    #expect(stage.disk.stored.presence.count == 1)
    stage.advance(.seconds(20))
    let alice = stage.connect("alice")
    #expect(try alice.started(["bob"]).results == [user("bob"): .offline])
    stage.advance(.seconds(120))
    #expect(stage.disk.stored.presence.isEmpty, "nothing is kept forever")
    #expect(stage.node.storable == stage.disk.contents)
  }

  @Test func aRoleThatWasPickedIsKept() throws {
    func connect() -> Client { stage.connect("ivan", roles: ["interpreter"]) }
    let writes = stage.disk.writes
    let ivan = connect()
    #expect(stage.disk.stored.presence.isEmpty, "a role's initial setting is not written")
    #expect(stage.disk.writes == writes + 1, "its keys are")
    #expect(ivan.code(.people(.setPresence(SetPresence(state: .available, role: "interpreter")))) == nil)
    stage.restart()
    _ = connect()
    let alice = stage.connect("alice")
    let list: PresenceList = try alice.get(.people(.watchPresence(WatchPresence(role: "interpreter"))))
    #expect(list.users == [PresenceState(user: user("ivan"), state: .available)])
    stage.handle(.forget(user("ivan")))
    #expect(stage.disk.stored.presence.isEmpty)
  }

  // MARK: joins (rule 14)

  @Test func aFormerJoinThatIsRepeatedDoesNothing() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"]) { $0.aloneSeconds = 600 }
    let first = try bob.accept(call, join: 2)
    #expect(bob.code(.call(call, .leave)) == nil)
    stage.restart()
    let again = stage.connect("bob")
    #expect(try again.accept(call, join: 2).participant == first.participant)
    #expect(try stage.connect("alice").phase(of: "bob", in: call) == .left)
    #expect(again.code(.call(call, .rejoin(again.join(2)))) == .requestInvalid, "it identifies one stay")
    #expect(try again.rejoin(call, join: 3).participant == 3)
  }

  @Test func theNewestOfManyJoinsAreKept() throws {
    let alice = stage.connect("alice")
    let call = try alice.call([]) { $0.aloneSeconds = 600 }
    let bob = StoredNumber(device: Device(user: user("bob"), device: DeviceID(unchecked: "phone")))
    var numbers = ParticipantNumbers()
    for number in 1...StoredNumber.capacity + 1 { numbers.add(number, bob.device, joinId(of: UInt64(number))) }
    #expect(!numbers.contains(joinId(of: 1)) && numbers.contains(joinId(of: 2)))
    #expect(numbers[1] == nil && numbers[2] != nil && numbers[StoredNumber.capacity + 1] != nil)
    #expect(stage.disk.stored.numbers[call]?.count == 1)
  }

  // MARK: forgetting

  @Test func aForgottenInitiatorIsInNothingThatIsKept() throws {
    let alice = stage.connect("alice")
    let call = try alice.call(["bob", "carol"], join: 1)
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    _ = try alice.get(.call(call, .invite(Invite(callees: [bob.user, carol.user])))) as InviteResults
    try bob.accept(call)
    try carol.accept(call)
    stage.handle(.forget(alice.user))
    #expect(bob.code(.call(call, .leave)) == nil)
    #expect(carol.code(.call(call, .leave)) == nil)
    let end = try #require(stage.disk.stored.ended.first)
    #expect(end.starter == nil && end.joinId == nil && end.reply == nil)
    #expect(Set(end.users) == [bob.user, carol.user])
    stage.restart()
    #expect(stage.connect("bob", keys: false).code(.call(call, .state)) == .callEnded)
    #expect(stage.connect("alice").code(.call(call, .state)) == .callNotFound)
  }

  @Test func theActsOfAUserInAnEndedCallAreForgotten() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"], join: 1)
    try bob.accept(call)
    #expect(alice.code(.call(call, .end)) == nil)
    var end = try #require(stage.disk.stored.ended.first)
    #expect(end.end.by == alice.user && end.starter?.user == alice.user)
    end.forget(bob.user)
    #expect(end.users == [alice.user] && end.reply?.results == [:] && end.reply?.call.members.count == 1)
    #expect(end.starter?.user == alice.user, "a repeated start makes no second call still")
    end.forget(alice.user)
    #expect(end.users.isEmpty && end.end.by == nil && end.starter == nil && end.reply == nil)
  }
}
