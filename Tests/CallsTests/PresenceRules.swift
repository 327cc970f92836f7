@testable import PeopleMachine
@testable import Calls
import Contract
import MediaModel
import Testing

import CallMessages

/// Protocol section 7.
struct PresenceRules {
  let stage = Stage()

  /// The history has a past call of alice and bob.
  func acquainted(_ names: String...) {
    for case .ask(let id, .acquainted) in stage.takeOthers() {
      stage.handle(.answer(id, allowed: Set(names.map { UserID(unchecked: $0) })))
    }
  }

  /// Watches with the answer of the history; the result is in the events.
  func watch(_ watcher: Client, _ names: String...) {
    let users = names.map { UserID(unchecked: $0) }
    stage.handle(.request(watcher.session, id: "w", .people(.watchPresence(WatchPresence(users: users)))))
    for case .ask(let id, .acquainted(_, let to)) in stage.takeOthers() {
      stage.handle(.answer(id, allowed: Set(to)))
    }
  }

  @Test func eachChangeIsTold() throws {
    let alice = stage.connect("alice")
    watch(alice, "bob")
    let bob = stage.connect("bob")
    #expect(bob.set(.unavailable) == nil)
    #expect(bob.set(.unavailable) == nil)
    #expect(bob.set(.available) == nil)
    let dave = stage.connect("dave")
    let call = try dave.call(["bob"])
    try bob.accept(call)
    _ = bob.ask(.call(call, .leave))
    stage.connect("bob", "tablet").disconnect()
    bob.disconnect()
    #expect(
      alice.events().presences == [
        "bob available", "bob unavailable", "bob available", "bob ringing", "bob in-call", "bob available",
        "bob offline",
      ])
  }

  @Test func ringingAndInCallReturnToWhatWasSet() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    #expect(try alice.watch("bob") == ["bob": .inCall])
    #expect(bob.set(.unavailable) == nil)
    #expect(alice.events().presences.isEmpty, "in-call hides it")
    _ = bob.ask(.call(call, .leave))
    #expect(alice.events().presences == ["bob unavailable"])
  }

  @Test func aDisconnectedMemberIsNotInCall() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"]) { $0.aloneSeconds = 600 }
    try bob.accept(call)
    _ = try alice.watch("bob")
    bob.disconnect()
    stage.advance(.seconds(15))
    #expect(try alice.phase(of: "bob", in: call) == .disconnected)
    _ = stage.connect("bob", "tablet")
    #expect(alice.events().presences == ["bob offline", "bob available"])
  }

  @Test func unavailableUsersAreNotRung() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    _ = bob.set(.unavailable)
    let started = try alice.started(["bob", "carol"])
    #expect(started.results?[bob.user] == .unavailable)
    #expect(started.call.members.map(\.user) == [alice.user])
    #expect(bob.events().isEmpty)
    _ = bob.set(.available)
    #expect(try alice.started(["bob"]).results?[bob.user] == .ringing)
  }

  @Test func aShortReconnectKeepsWhatWasSetALongOneDoesNot() throws {
    let alice = stage.connect("alice")
    var bob = stage.connect("bob")
    _ = bob.set(.unavailable)
    bob.disconnect()
    stage.advance(.seconds(19))
    #expect(try alice.started(["bob"]).results?[bob.user] == .unavailable)
    bob = stage.connect("bob")
    #expect(try alice.started(["bob"]).results?[bob.user] == .unavailable)
    bob.disconnect()
    stage.advance(.seconds(20))
    bob = stage.connect("bob")
    #expect(try alice.started(["bob"]).results?[bob.user] == .ringing)
    _ = bob.set(.unavailable)
    bob.disconnect()
    stage.advance(.seconds(600))
    #expect(!stage.node.people.presence.isUnavailable(bob.user, now: stage.now))
    #expect(stage.node.nextDeadline == nil, "no timer waits for a device that is gone")
  }

  // MARK: who may be seen

  @Test func aStrangerLooksOfflineAndIsNotWatched() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    stage.handle(.request(alice.session, id: "w", .people(.watchPresence(WatchPresence(users: [bob.user])))))
    acquainted()
    _ = bob.set(.unavailable)
    #expect(alice.events().presences.isEmpty)
  }

  @Test func aRunningCallInCommonIsEnough() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    _ = try alice.call(["bob"])
    #expect(try bob.watch("alice") == ["alice": .inCall])
    #expect(try alice.watch("bob", "alice", "bob") == ["bob": .ringing, "alice": .inCall])
    #expect(stage.takeOthers().isEmpty, "nothing had to be asked")
  }

  @Test func theHistoryIsAskedForTheRestAndSilenceIsNo() throws {
    let alice = stage.connect("alice")
    _ = stage.connect("bob")
    _ = stage.connect("carol")
    let users = ["bob", "carol"].map { UserID(unchecked: $0) }
    stage.handle(.request(alice.session, id: "w", .people(.watchPresence(WatchPresence(users: users)))))
    guard case .ask(_, .acquainted(from: alice.user, to: users))? = stage.takeOthers().first else {
      return #expect(Bool(false))
    }
    stage.advance(.milliseconds(999))
    #expect(stage.reply("w") == nil)
    stage.advance(.milliseconds(1))
    guard case .ok(.presence(let list))? = stage.reply("w") else {
      return #expect(Bool(false))
    }
    #expect(list.users.map(\.state) == [.offline, .offline])
  }

  @Test func aConnectionWatchesAThousandUsersAtMostAndForgetsThemWhenItGoes() throws {
    let alice = stage.connect("alice")
    let names = (0...1_000).map { UserID(unchecked: "u\($0)") }
    #expect(alice.code(.people(.watchPresence(WatchPresence(users: names)))) == .requestTooLarge)
    watch(alice, "bob")
    let bob = stage.connect("bob")
    #expect(alice.events().presences == ["bob available"])
    #expect(alice.code(.people(.watchPresence(WatchPresence(users: Array(names.prefix(1_000)))))) == .requestTooLarge)
    let again = stage.connect("alice")
    _ = bob.set(.unavailable)
    #expect(again.events().presences.isEmpty, "a watch ends with its connection")
  }

  @Test func eitherUsersOrARoleIsWatched() {
    let alice = stage.connect("alice")
    #expect(alice.code(.people(.watchPresence(WatchPresence()))) == .requestInvalid)
    #expect(alice.code(.people(.watchPresence(WatchPresence(users: [], role: "a")))) == .requestInvalid)
    #expect(alice.code(.people(.watchPresence(WatchPresence(role: "")))) == .requestInvalid)
    #expect(alice.code(.people(.watchPresence(WatchPresence(users: [])))) == nil)
  }

  // MARK: roles

  @Test func aRoleIsOneOfTheTokens() {
    let bob = stage.connect("bob", roles: ["interpreter", "caller"])
    #expect(bob.set(.available, role: "admin") == .roleNotAllowed)
    #expect(bob.set(.available, role: "interpreter") == nil)
    #expect(stage.connect("alice").set(.available, role: "interpreter") == .roleNotAllowed)
  }

  @Test func usersWithARoleStartUnavailable() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob", roles: ["interpreter"])
    #expect(try alice.started(["bob"]).results?[bob.user] == .unavailable)
    #expect(bob.set(.available, role: "interpreter") == nil)
    #expect(try alice.started(["bob"]).results?[bob.user] == .ringing)
  }

  @Test func aRoleIsWatchedAsItIsPicked() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob", roles: ["interpreter", "teacher"])
    let carol = stage.connect("carol", roles: ["interpreter"])
    _ = bob.set(.available, role: "interpreter")
    let list: PresenceList = try alice.get(.people(.watchPresence(WatchPresence(role: "interpreter"))))
    #expect(list.users == [PresenceState(user: bob.user, state: .available)])
    _ = carol.set(.unavailable, role: "interpreter")
    _ = bob.set(.unavailable)
    _ = bob.set(.unavailable, role: "teacher")
    _ = bob.set(.available)
    carol.disconnect()
    #expect(
      alice.events().presences == ["carol unavailable", "bob unavailable", "bob offline", "carol offline"])
    _ = bob.set(.available, role: "interpreter")
    #expect(alice.events().presences == ["bob available"])
  }

  @Test func aRoleThatNeverStartsMayNotStartOrInvite() throws {
    let stage = Stage { $0.neverStarts = ["interpreter"] }
    let bob = stage.connect("bob", roles: ["interpreter", "caller"])
    let alice = stage.connect("alice")
    #expect(bob.code(bob.start([alice.user])) == .roleNotAllowed)
    _ = bob.set(.available, role: "caller")
    #expect(bob.code(bob.start([alice.user])) == nil)
    _ = bob.set(.available, role: "interpreter")
    #expect(bob.code(bob.start([alice.user])) == .roleNotAllowed)
    _ = stage.connect("carol")
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    #expect(bob.code(.call(call, .invite(Invite(callees: [UserID(unchecked: "dave")])))) == .roleNotAllowed)
    #expect(bob.code(.call(call, .link(MakeLink()))) == .roleNotAllowed)
  }
}
