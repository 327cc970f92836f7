@testable import CallMachine
@testable import Calls
@testable import PeopleMachine
import Contract
import MediaModel
import Testing

import CallMessages

/// `authorize` of protocol section 7, and the other requests that the shell answers.
struct AuthorizeRules {
  let stage = Stage { $0.asksBackEnd = true }

  func start(_ client: Client, _ callees: [String], id: String = "s", join: UInt8 = 1) {
    let start = client.start(callees.map { UserID(unchecked: $0) }, join: join)
    stage.handle(.request(client.session, id: id, client.withWords(start)))
  }

  /// The only question that was asked.
  func question() throws -> (id: QuestionID, question: Question) {
    let asked: [(QuestionID, Question)] = stage.takeOthers().compactMap {
      if case .ask(let id, let question) = $0 { (id, question) } else { nil }
    }
    return try #require(asked.count == 1 ? asked.first : nil)
  }

  func joined(_ id: String = "s") throws -> Joined {
    guard case .ok(.joined(let joined))? = stage.reply(id) else { throw RequestError(.internal, "no reply") }
    return joined
  }

  @Test func aUserThatMayNotBeRungIsOfflineAndNotRung() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    start(alice, ["bob", "carol", "alice"])
    let asked = try question()
    #expect(stage.reply("s") == nil)
    stage.handle(.answer(asked.id, allowed: [bob.user]))
    let reply = try joined()
    #expect(asked.question == .authorize(.ring, from: alice.user, to: [bob.user, carol.user], call: reply.call.id))
    #expect(reply.results == [bob.user: .ringing, carol.user: .offline, alice.user: .alreadyJoined])
    #expect(reply.call.members.map(\.user) == [alice.user, bob.user])
    #expect(bob.events().rings.count == 1 && carol.events().isEmpty)
    stage.handle(.answer(asked.id, allowed: [carol.user]))
    #expect(carol.events().isEmpty, "an answer counts once")
  }

  /// The back end may answer after a restart; that does not answer a question of the new run.
  @Test func noQuestionHasTheIdOfOneOfAnEarlierRun() throws {
    start(stage.connect("alice"), ["bob"])
    let earlier = try question()
    stage.restart()
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    start(alice, ["bob"], id: "t", join: 2)
    let asked = try question()
    #expect(asked.id != earlier.id)
    stage.handle(.answer(earlier.id, allowed: [bob.user]))
    #expect(stage.reply("t") == nil && bob.events().rings.isEmpty)
    stage.handle(.answer(asked.id, allowed: [bob.user]))
    #expect(bob.events().rings.count == 1)
  }

  /// The back end's answer causes the rings, but they belong to the caller.
  @Test func theCallerPaysForRingsThatFollowFromTheAnswer() throws {
    let alice = stage.connect("alice")
    _ = stage.connect("bob")
    start(alice, ["bob"])
    let asked = try question()
    let answer = NodeCommand.answer(asked.id, allowed: [])
    #expect(stage.node.payer(of: answer) == alice.user)
    stage.handle(answer)
    #expect(stage.node.payer(of: answer) == nil, "it is answered")
  }

  /// Others are told when a connection ends, and when it comes back. The session no longer has a user when these
  /// events are known.
  @Test func aUserPaysForTheEndOfItsConnection() {
    let alice = stage.connect("alice")
    let end = NodeCommand.disconnect(alice.session)
    #expect(stage.node.payer(of: end) == alice.user)
    stage.handle(end)
    #expect(stage.node.payer(of: end) == nil)
    #expect(stage.node.payer(of: .connect(alice.session, Identity(device: alice.device, name: nil))) == alice.user)
  }

  @Test func noAnswerWithinASecondIsNo() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    start(alice, ["bob"])
    let asked = try question()
    stage.advance(.seconds(1))
    #expect(try joined().results == [bob.user: .offline])
    stage.handle(.answer(asked.id, allowed: [bob.user]))
    #expect(bob.events().isEmpty)
    #expect(stage.reply("s") == nil)
  }

  @Test func invitesAreAskedTooAndCheckedAnew() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    start(alice, ["bob", "dave"])
    stage.handle(.answer(try question().id, allowed: [bob.user, UserID(unchecked: "dave")]))
    let call = try joined().call.id
    try bob.accept(call)
    let carol = stage.connect("carol")
    stage.handle(.request(bob.session, id: "i", .call(call, .invite(Invite(callees: [carol.user])))))
    let asked = try question()
    #expect(asked.question == .authorize(.ring, from: bob.user, to: [carol.user], call: call))
    _ = bob.ask(.call(call, .leave))
    stage.handle(.answer(asked.id, allowed: [carol.user]))
    guard case .failed(let error)? = stage.reply("i") else { return #expect(Bool(false)) }
    #expect([.callNotJoined, .callEnded].contains(error.code))
    #expect(carol.events().isEmpty)
  }

  @Test func aRepeatedStartIsNotAskedAgain() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    start(alice, ["bob"])
    start(alice, ["bob"], id: "again")
    let asked = stage.takeOthers().compactMap { if case .ask(let id, _) = $0 { id } else { nil } }
    #expect(asked.count == 2)
    for id in asked { stage.handle(.answer(id, allowed: [bob.user])) }
    #expect(try joined() == joined("again"))
    start(alice, ["bob"], id: "later")
    #expect(stage.takeOthers().isEmpty)
    #expect(stage.node.control.calls.count == 1 && bob.events().rings.count == 1)
  }

  @Test func devicesOfWhomOneMayNotListAreLeftOut() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    let users = [alice.user, bob.user, carol.user]
    stage.handle(.request(alice.session, id: "d", .people(.listDevices(ListDevices(users: users)))))
    let asked = try question()
    #expect(asked.question == .authorize(.devices, from: alice.user, to: [bob.user, carol.user]))
    stage.handle(.answer(asked.id, allowed: [bob.user]))
    guard case .ok(.devices(let devices))? = stage.reply("d") else {
      return #expect(Bool(false))
    }
    #expect(devices.devices.map(\.user) == [alice.user, bob.user])
    #expect(try alice.get(.people(.listDevices(ListDevices(users: [alice.user]))), as: Devices.self).devices.count == 1)
  }

  @Test func watchingIsAskedOfTheBackEndAlone() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    stage.handle(
      .request(alice.session, id: "w", .people(.watchPresence(WatchPresence(users: [bob.user, carol.user])))))
    let asked = try question()
    #expect(asked.question == .authorize(.watch, from: alice.user, to: [bob.user, carol.user]))
    stage.handle(.answer(asked.id, allowed: [bob.user]))
    guard case .ok(.presence(let list))? = stage.reply("w") else {
      return #expect(Bool(false))
    }
    #expect(list.users.map(\.state) == [.available, .offline])
    bob.disconnect()
    carol.disconnect()
    #expect(alice.events().presences == ["bob offline"])
  }

  @Test func aConnectionThatGoesDropsItsQuestions() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    start(alice, ["bob"])
    let asked = try question()
    alice.disconnect()
    #expect(stage.node.people.questions.next == nil)
    stage.handle(.answer(asked.id, allowed: [bob.user]))
    #expect(stage.node.control.calls.isEmpty)
  }

  @Test func aDeviceHasABoundedNumberOfQuestions() throws {
    let alice = stage.connect("alice")
    for number in 0..<Questions.maximumOfDevice { start(alice, ["bob"], id: "s\(number)", join: UInt8(number)) }
    start(alice, ["bob"], id: "more", join: 99)
    guard case .failed(let error)? = stage.reply("more") else { return #expect(Bool(false)) }
    #expect(error.code == .serverBusy && error.retryAfterMs == 1_000)
    stage.advance(.seconds(1))
    start(alice, ["bob"], id: "then", join: 100)
    #expect(stage.reply("then") == nil, "it waits for its answer")
  }

  // MARK: history, drain, forget

  @Test func historyRequestsAreCheckedAndPassedOn() throws {
    let stage = Stage()
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"])
    for limit in [0, 201] { #expect(bob.code(.history(.list(ListHistory(limit: limit)))) == .requestInvalid) }
    #expect(bob.code(.history(.delete(DeleteHistory()))) == .requestInvalid)
    #expect(bob.code(.history(.delete(DeleteHistory(calls: [call], all: true)))) == .requestInvalid)
    #expect(bob.code(.history(.delete(DeleteHistory(all: false)))) == .requestInvalid)
    #expect(bob.code(.history(.totals(HistoryTotals(with: bob.user)))) == .requestInvalid)
    func query(_ request: Request) throws -> HistoryQuery {
      stage.handle(.request(bob.session, id: "h", request))
      guard case .history(bob.session, "h", let query)? = stage.takeOthers().first else {
        throw RequestError(.internal, "no query")
      }
      return query
    }
    #expect(
      try query(.history(.list(ListHistory())))
        == .list(bob.user, before: Timestamp(milliseconds: .max), limit: 50, rejoinable: [call]))
    let before = Timestamp(milliseconds: 5)
    #expect(
      try query(.history(.list(ListHistory(before: before, limit: 200))))
        == .list(bob.user, before: before, limit: 200, rejoinable: [call]))
    #expect(try query(.history(.delete(DeleteHistory(all: true)))) == .delete(bob.user, calls: nil))
    #expect(try query(.history(.delete(DeleteHistory(calls: [call])))) == .delete(bob.user, calls: [call]))
    #expect(try query(.history(.totals(HistoryTotals(with: alice.user)))) == .totals(bob.user, with: alice.user))
  }

  @Test func aServerThatDrainsStartsNoCallsAndEndsNone() throws {
    let stage = Stage()
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"], join: 1)
    stage.handle(.drain)
    #expect(alice.code(alice.start([])) == .serverDraining)
    #expect(try alice.call(["bob"], join: 1) == call, "a retry gets the first reply")
    try bob.accept(call)
    #expect(alice.code(.call(call, .invite(Invite(callees: [UserID(unchecked: "carol")])))) == nil)
  }

  @Test func nothingIsKeptOfAUserWhoIsForgotten() throws {
    let stage = Stage()
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    _ = stage.connect("bob", "tablet")
    let carol = stage.connect("carol")
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    try carol.accept(call)
    let other = try alice.call(["bob"]) { $0.aloneSeconds = 600 }
    _ = try alice.watch("bob")
    _ = alice.events()
    stage.handle(.forget(bob.user))
    #expect(alice.events().causes == [.left, .cancelled])
    #expect(Set(stage.closed).contains(bob.session) && stage.closed.count == 2)
    #expect(try alice.phase(of: "bob", in: call) == nil)
    #expect(try alice.phase(of: "bob", in: other) == nil)
    #expect(try alice.get(.people(.listDevices(ListDevices(users: [bob.user]))), as: Devices.self).devices.isEmpty)
    #expect(stage.node.people.directory.devices(of: bob.user).isEmpty)
    #expect(stage.connect("bob", keys: false).code(.call(call, .state)) == .callNotFound)
    _ = alice.ask(.call(call, .end))
    #expect(carol.code(.call(call, .state)) == .callEnded)
    #expect(stage.connect("bob", keys: false).code(.call(call, .state)) == .callNotFound)
  }
}
