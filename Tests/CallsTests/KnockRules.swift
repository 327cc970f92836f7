@testable import PeopleMachine
@testable import Calls
@testable import CallMachine
import Contract
import MediaModel
import Simulation
import Testing

import CallMessages

/// Guests who wait at the door until a member admits them (protocol section 4, "Guests").
struct KnockRules {
  let stage = Stage { $0.limits.guests = 40 }
  let alice: Client
  let bob: Client
  let call: CallID
  let key = Base64Bytes(Stage.digest(Array("waiting link".utf8)))
  let link: String

  init() throws {
    alice = stage.connect("alice")
    bob = stage.connect("bob")
    call = try alice.call(["bob"])
    try bob.accept(call)
    link = try Self.makeLink(alice, call, key)
  }

  private static func makeLink(_ client: Client, _ call: CallID, _ key: Base64Bytes) throws -> String {
    let word = Stage.words.word(toMake: key, waits: true, in: call, by: try keys(client))
    let made: CallLink = try client.get(.call(call, .link(MakeLink(admission: word))))
    client.stage.linkKeys[made.link] = key
    return made.link
  }

  private static func keys(_ client: Client) throws -> DeviceEntry {
    try #require(client.stage.node.people.directory[client.device]?.entry)
  }

  private func guest(_ name: String = "ana") -> Client { stage.connect("guest~\(name)", "guest", guestOf: call) }

  private func word(_ guest: Client, by key: Base64Bytes? = nil) throws -> Admission {
    Stage.words.word(toComeBy: key ?? self.key, in: call, by: try Self.keys(guest))
  }

  private func knock(_ guest: Client) throws -> RequestError.Code? {
    guest.code(.call(call, .knock(Knock(link: link, admission: try word(guest)))))
  }

  private func join(_ guest: Client) -> RequestError.Code? { guest.code(.call(call, .join(guest.join(link: link)))) }

  private func admission(of guest: Client, by member: Client) throws -> Admission {
    Stage.words.admitted(try word(guest), in: call, by: try Self.keys(member))
  }

  private func admit(_ guest: Client, by member: Client) throws -> RequestError? {
    member.error(.call(call, .admitGuest(AdmitGuest(admission: try admission(of: guest, by: member)))))
  }

  private func refuse(_ guest: Client, by member: Client) -> RequestError.Code? {
    member.code(.call(call, .refuseGuest(RefuseGuest(guest: guest.user))))
  }

  private func knocks(_ client: Client) -> [GuestKnock] {
    client.events().compactMap { if case .knock(let knock) = $0 { knock } else { nil } }
  }

  private func outcomes(_ client: Client) -> [String] {
    client.events().compactMap {
      if case .knockOver(let over) = $0 { "\(over.user.text) \(over.outcome.rawValue)" } else { nil }
    }
  }

  // MARK: waiting, and being admitted

  @Test func aGuestWaitsUntilAMemberAdmitsIt() throws {
    let ana = guest()
    #expect(join(ana) == .callNotAdmitted)
    _ = (alice.events(), bob.events())
    #expect(try knock(ana) == nil)
    let knock = try #require(knocks(bob).first)
    #expect(knock.user == ana.user && knock.name == "guest~ana" && knock.expiresAt == stage.now + .seconds(600))
    let link = try #require(knock.admissions.first { $0.user == nil })
    #expect(link.waits == true && link.link == key)
    #expect(try knock.admissions.first == word(ana) && knock.signers?.map(\.user) == [alice.user])
    #expect(knocks(alice).count == 1)
    #expect(ana.code(.call(call, .state)) == .callNotFound, "outside, it learns nothing of the call")
    #expect(join(ana) == .callNotAdmitted)
    let list: Devices = try ana.get(.people(.listDevices(ListDevices(users: [alice.user, bob.user]))))
    #expect(list.devices.isEmpty)

    _ = ana.events()
    #expect(try admit(ana, by: bob) == nil)
    for client in [alice, bob, ana] { #expect(outcomes(client) == ["guest~ana admitted"]) }
    #expect(join(ana) == nil)
    stage.advance(.seconds(1))
    let rotation = try #require(alice.events().rotations.last)
    #expect(rotation.added?.last?.user == ana.user)
    let words = try #require(rotation.admissions)
    #expect(words.first { $0.user == ana.user } == (try admission(of: ana, by: bob)))
    #expect(words.contains { $0.link == key && $0.user == nil }, "and the word of its link")
    #expect(try alice.state(call).members.last?.link == true)
  }

  @Test func theFirstAnswerCounts() throws {
    let (ana, ben) = (guest(), guest("ben"))
    #expect(try knock(ana) == nil && knock(ben) == nil)
    #expect(try admit(ana, by: bob) == nil)
    #expect(try admit(ana, by: alice)?.code == .userNotFound)
    #expect(refuse(ana, by: alice) == .userNotFound)
    let late = AdmitGuest(admission: try admission(of: ben, by: bob))
    #expect(refuse(ben, by: alice) == nil)
    #expect(bob.code(.call(call, .admitGuest(late))) == .userNotFound)
    #expect(join(ana) == nil)
  }

  @Test func aRefusedGuestIsToldAndNothingIsKeptOfIt() throws {
    let ana = guest()
    #expect(try knock(ana) == nil)
    _ = (alice.events(), ana.events())
    #expect(refuse(ana, by: bob) == nil)
    #expect(outcomes(ana) == ["guest~ana refused"], "told before its connection goes")
    #expect(outcomes(alice) == ["guest~ana refused"])
    #expect(stage.closed == [ana.session])
    #expect(stage.node.people.directory.devices(of: ana.user).isEmpty)
    let again = guest()
    #expect(try knock(again) == .callLinkInvalid, "the same guest")
    #expect(try knock(guest("ben")) == nil)
  }

  @Test func peopleWithAnAccountComeInAtOnce() throws {
    let carol = stage.connect("carol")
    #expect(join(carol) == nil)
    #expect(try knock(carol) == .authForbidden)
  }

  @Test func guestsOfALinkThatDoesNotWaitDoNotKnock() throws {
    let open: CallLink = try alice.get(.call(call, .link(MakeLink())))
    let ana = guest()
    let openKey = try #require(stage.linkKeys[open.link])
    let knock = Knock(link: open.link, admission: try word(ana, by: openKey))
    #expect(ana.code(.call(call, .knock(knock))) == .requestInvalid)
    #expect(ana.code(.call(call, .join(ana.join(link: open.link)))) == nil)
    #expect(try self.knock(ana) == .requestInvalid, "it is in the call")
  }

  @Test func aStrangerLearnsNothingByKnocking() throws {
    let ana = guest()
    let good = Knock(link: link, admission: try word(ana))
    func code(_ change: (inout Knock) -> Void, of call: CallID? = nil) -> RequestError.Code? {
      var knock = good
      change(&knock)
      return ana.code(.call(call ?? self.call, .knock(knock)))
    }
    #expect(code { $0.link = "nonsense" } == .callLinkInvalid)
    #expect(code { $0.admission.signature.bytes[0] ^= 1 } == .callLinkInvalid)
    #expect(code { $0.admission.link = Base64Bytes([UInt8](repeating: 7, count: 32)) } == .callLinkInvalid)
    #expect(code { $0.admission.user = UserID(unchecked: "guest~ben") } == .requestInvalid)
    #expect(code { $0.admission.fingerprint = Base64Bytes([1]) } == .requestInvalid)
    #expect(code({ _ in }, of: .random) == .authForbidden, "a guest has one call")
    #expect(knocks(alice).isEmpty)
  }

  // MARK: who answers

  @Test func onlyMembersWhoMayInviteAdmitAndTheDeviceThatIsInTheCall() throws {
    let ana = guest()
    #expect(try knock(ana) == nil)
    let laptop = stage.connect("bob", "laptop")
    #expect(try admit(ana, by: laptop)?.code == .callAnsweredElsewhere)
    let stranger = stage.connect("stranger")
    #expect(try admit(ana, by: stranger)?.code == .callNotFound)
    let ben = guest("ben")
    let open: CallLink = try alice.get(.call(call, .link(MakeLink())))
    #expect(ben.code(.call(call, .join(ben.join(link: open.link)))) == nil)
    #expect(try admit(ana, by: ben)?.code == .authForbidden)
    #expect(refuse(ana, by: ben) == .authForbidden)
    #expect(knocks(ben).isEmpty, "guests do not hear of others at the door")
    #expect(refuse(ana, by: laptop) == nil, "refusing lets nobody in")
  }

  @Test func whereOnlyTheInitiatorInvitesOnlyItHearsAndAnswers() throws {
    let dave = stage.connect("dave")
    let other = try alice.call(["dave"]) { $0.invite = .initiator }
    try dave.accept(other)
    let key = Base64Bytes(Stage.digest(Array("another".utf8)))
    let link = try Self.makeLink(alice, other, key)
    let ana = stage.connect("guest~ana", "guest", guestOf: other)
    let word = Stage.words.word(toComeBy: key, in: other, by: try Self.keys(ana))
    _ = (alice.events(), dave.events())
    #expect(ana.code(.call(other, .knock(Knock(link: link, admission: word)))) == nil)
    #expect(knocks(dave).isEmpty && knocks(alice).count == 1)
    let admitted = Stage.words.admitted(word, in: other, by: try Self.keys(dave))
    #expect(dave.code(.call(other, .admitGuest(AdmitGuest(admission: admitted)))) == .callInviteNotAllowed)
    #expect(dave.code(.call(other, .refuseGuest(RefuseGuest(guest: ana.user)))) == .callInviteNotAllowed)
    #expect(outcomes(dave).isEmpty)
  }

  @Test func aBadSignatureAdmitsNobody() throws {
    let (ana, ben) = (guest(), guest("ben"))
    #expect(try knock(ana) == nil && knock(ben) == nil)
    func field(_ change: (inout Admission) throws -> Void) throws -> String? {
      var word = try admission(of: ana, by: bob)
      try change(&word)
      let error = bob.error(.call(call, .admitGuest(AdmitGuest(admission: word))))
      return error.map { "\($0.code.rawValue) \($0.field ?? "")" }
    }
    let by = "request.invalid admission.admittedBy"
    #expect(try field { $0.admittedBy = nil } == by)
    #expect(try field { $0.admittedBy?.signature.bytes[0] ^= 1 } == by + ".signature")
    #expect(try field { $0.admittedBy = try admission(of: ben, by: bob).admittedBy } == by + ".signature")
    #expect(try field { $0.admittedBy = try admission(of: ana, by: alice).admittedBy } == by + ".fingerprint")
    #expect(try field { $0.admittedBy?.sigAlg = "PS256" } == by + ".sigAlg")
    #expect(try field { $0.fingerprint = Base64Bytes([1]) } == "request.invalid admission")
    #expect(try field { $0.user = UserID(unchecked: "guest~nobody") } == "user.not-found admission.user")
    #expect(outcomes(ana).isEmpty && join(ana) == .callNotAdmitted)
    #expect(try admit(ana, by: bob) == nil)
  }

  @Test func aLinksMarkIsPartOfItsSignature() throws {
    var word = Stage.words.word(toMake: Base64Bytes(Stage.digest([9])), waits: true, in: call, by: try Self.keys(alice))
    word.waits = nil
    #expect(alice.error(.call(call, .link(MakeLink(admission: word))))?.field == "admission.signature")
  }

  @Test func membersWhoComeLaterHearOfTheGuestsWhoWait() throws {
    let ana = guest()
    #expect(try knock(ana) == nil)
    let carol = stage.connect("carol")
    #expect(join(carol) == nil)
    #expect(knocks(carol).map(\.user) == [ana.user])
    _ = bob.events()
    try bob.rejoin(call)
    #expect(knocks(bob).map(\.user) == [ana.user])
    #expect(try admit(ana, by: carol) == nil)
    try bob.rejoin(call)
    #expect(knocks(bob).isEmpty, "it was answered")
  }

  // MARK: bounds

  @Test func asManyWaitAsThereIsRoomFor() throws {
    for number in 0..<16 { #expect(try knock(guest("a\(number)")) == nil) }
    #expect(try knock(guest("b")) == .callFull)
    let other = Base64Bytes(Stage.digest(Array("another".utf8)))
    let second = try Self.makeLink(alice, call, other)
    for number in 0..<17 {
      let next = guest("c\(number)")
      let knock = Knock(link: second, admission: try word(next, by: other))
      #expect(next.code(.call(call, .knock(knock))) == (number < 16 ? nil : .callFull))
    }
    #expect(stage.node.control.calls[call]?.knocks.users.count == 32)
  }

  @Test func aGuestWaitsAsLongAsItKnocksAndTenMinutesAtMost() throws {
    let (ana, ben) = (guest(), guest("ben"))
    #expect(try knock(ana) == nil && knock(ben) == nil)
    _ = (alice.events(), ana.events(), ben.events())
    stage.advance(.seconds(40))
    let again: Knocking = try ana.get(.call(call, .knock(Knock(link: link, admission: try word(ana)))))
    #expect(again.expiresAt == stage.now + .seconds(560))
    #expect(knocks(alice).isEmpty, "it is known")
    stage.advance(.milliseconds(20_000))
    #expect(outcomes(alice) == ["guest~ben over"] && outcomes(ben) == ["guest~ben over"])
    for _ in 0..<17 {
      stage.advance(.seconds(30))
      #expect(try knock(ana) == nil)
    }
    #expect(outcomes(alice).isEmpty)
    stage.advance(.seconds(30))
    #expect(outcomes(alice) == ["guest~ana over"] && outcomes(ana) == ["guest~ana over"])
    #expect(try knock(ana) == nil, "it may ask again")
  }

  @Test func anAdmittedGuestJoinsSoonOrWaitsAgain() throws {
    let ana = guest()
    #expect(try knock(ana) == nil && admit(ana, by: bob) == nil)
    _ = (alice.events(), ana.events())
    stage.advance(.milliseconds(119_999))
    #expect(try knock(ana) == nil)
    #expect(outcomes(ana) == ["guest~ana admitted"], "told again")
    stage.advance(.milliseconds(1))
    #expect(join(ana) == .callNotAdmitted)
    #expect(outcomes(alice).isEmpty, "the members were told how it ended")
  }

  @Test func aGuestWithOtherKeysIsAnother() throws {
    let ana = guest()
    #expect(try knock(ana) == nil)
    let before = try word(ana)
    var keys = ana.keys
    keys[1].publicKey = Base64Bytes([5, 5, 5])
    _ = ana.ask(.people(.registerDevice(RegisterDevice(name: nil, keys: keys))))
    let admitted = Stage.words.admitted(before, in: call, by: try Self.keys(bob))
    #expect(bob.code(.call(call, .admitGuest(AdmitGuest(admission: admitted)))) == nil)
    #expect(join(ana) == .callNotAdmitted, "bob has admitted the keys with which it knocked")
    _ = alice.events()
    #expect(try knock(ana) == nil)
    #expect(knocks(alice).count == 1)
    #expect(try admit(ana, by: alice) == nil)
    #expect(join(ana) == nil)
  }

  // MARK: the end of waiting

  @Test func aGuestThatLeavesWaitsNoLonger() throws {
    let ana = guest()
    #expect(ana.code(.call(call, .leave)) == .callNotFound)
    #expect(try knock(ana) == nil)
    #expect(ana.code(.call(call, .leave)) == nil)
    #expect(outcomes(alice) == ["guest~ana over"])
    #expect(try admit(ana, by: bob)?.code == .userNotFound)
  }

  @Test func aVoidLinkEndsTheWaiting() throws {
    let (ana, ben) = (guest(), guest("ben"))
    #expect(try knock(ana) == nil && knock(ben) == nil && admit(ben, by: bob) == nil)
    _ = (alice.events(), ana.events())
    #expect(alice.code(.call(call, .link(MakeLink(revoke: true)))) == nil)
    #expect(outcomes(alice) == ["guest~ana over"] && outcomes(ana) == ["guest~ana over"])
    #expect(join(ben) == .callLinkInvalid)
    #expect(try knock(ana) == .callLinkInvalid)
  }

  @Test func theRemovalOfAGuestEndsTheWaitingOfOthers() throws {
    let (ana, ben) = (guest(), guest("ben"))
    #expect(try knock(ana) == nil && admit(ana, by: bob) == nil && knock(ben) == nil)
    #expect(join(ana) == nil)
    #expect(bob.code(.call(call, .removeGuest(RemoveGuest(guest: ana.user)))) == nil)
    #expect(outcomes(ben) == ["guest~ben over"])
  }

  @Test func waitingGuestsGoWithTheCall() throws {
    let ana = guest()
    #expect(try knock(ana) == nil)
    #expect(alice.code(.call(call, .end)) == nil)
    #expect(outcomes(ana) == ["guest~ana over"])
    #expect(stage.closed == [ana.session])
    #expect(stage.node.people.directory.devices(of: ana.user).isEmpty)
    #expect(stage.node.control.timers.count(of: call) == 0)
  }

  // MARK: coming back

  @Test func anAdmittedGuestComesBackWithoutWaiting() throws {
    let ana = guest()
    #expect(try knock(ana) == nil && admit(ana, by: bob) == nil)
    #expect(join(ana) == nil)
    #expect(ana.code(.call(call, .leave)) == nil)
    #expect(ana.code(.call(call, .rejoin(ana.join()))) == nil)
    #expect(ana.code(.call(call, .leave)) == nil)
    #expect(join(ana) == nil, "also by the link")
    let list: KeyList = try alice.get(.inCall(call, .listKeys(ListKeys())))
    stage.advance(.seconds(1))
    let later: KeyList = try alice.get(.inCall(call, .listKeys(ListKeys())))
    for words in [list.admissions, later.admissions] {
      let own = words?.first { $0.user == ana.user }
      #expect(own == nil || own?.admittedBy != nil, "its word stays that by which it was admitted")
    }
    #expect(later.admissions?.contains { $0.user == ana.user } == true)
  }

  @Test func aRestartKeepsWhoWasAdmittedAndForgetsWhoWaits() throws {
    let (ana, ben) = (guest(), guest("ben"))
    #expect(try knock(ana) == nil && admit(ana, by: bob) == nil && knock(ben) == nil)
    #expect(join(ana) == nil)
    let signers = stage.stored.calls.first { $0.call.id == call }?.signers.map(\.user)
    #expect(signers.map(Set.init) == [alice.user, bob.user])
    stage.restart()
    let (alice, ana2) = (stage.connect("alice"), guest())
    try alice.rejoin(call)
    #expect(ana2.code(.call(call, .rejoin(ana2.join()))) == nil)
    stage.advance(.seconds(1))
    let list: KeyList = try alice.get(.inCall(call, .listKeys(ListKeys())))
    #expect(list.admissions?.first { $0.user == ana2.user }?.admittedBy != nil)
    _ = alice.events()
    let ben2 = guest("ben")
    #expect(join(ben2) == .callNotAdmitted)
    #expect(try knock(ben2) == nil)
    #expect(knocks(alice).map(\.user) == [ben2.user])
  }
}
