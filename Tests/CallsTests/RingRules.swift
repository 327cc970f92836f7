import CallMessages
import Contract
import MediaModel
import Testing

/// Rules 1 to 7 and 17 of protocol section 4.
struct RingRules {
  let stage = Stage()

  @Test func rule1RingingReachesEveryConnectedDevice() throws {
    let alice = stage.connect("alice")
    let devices = ["phone", "tablet", "laptop"].map { stage.connect("bob", $0) }
    let started = try alice.started(["bob"])
    #expect(started.results == [UserID(unchecked: "bob"): .ringing])
    for device in devices {
      let ring = try #require(device.events().rings.first)
      #expect(ring.from.text == "alice" && ring.media == .video && !ring.waiting && ring.envelope == nil)
      #expect(ring.expiresAt == stage.now + .seconds(30))
      #expect(ring.members.map(\.user.text) == ["alice", "bob"])
    }
  }

  @Test func rule1ADeviceThatConnectsDuringARingIsRungThen() throws {
    let alice = stage.connect("alice")
    stage.connect("bob").disconnect()
    let started = try alice.started(["bob"])
    #expect(started.results == [UserID(unchecked: "bob"): .offline])
    stage.advance(.seconds(10))
    #expect(stage.connect("bob", "tablet").events().rings.count == 1)
    #expect(stage.connect("bob", "phone").events().rings.count == 1, "once, not again by its mailbox")
    stage.advance(.seconds(20))
    #expect(!stage.connect("bob", "laptop").events().contains(.callRing))
  }

  @Test func rule2ExactlyOneOfTwoAnswersWins() throws {
    let alice = stage.connect("alice")
    let phone = stage.connect("bob", "phone")
    let tablet = stage.connect("bob", "tablet")
    let call = try alice.call(["bob"])
    try tablet.accept(call)
    #expect(phone.code(.call(call, .accept(phone.join()))) == .callAnsweredElsewhere)
    #expect(phone.names() == [.callRing, .callAnsweredElsewhere, .callMember])
    #expect(!tablet.names().contains(.callAnsweredElsewhere))
    #expect(try alice.state(call).members.map(\.participants.count) == [1, 1])
    #expect(try alice.state(call).state == .active)
  }

  @Test func rule3ADeclineStopsAllDevicesAndEveryMemberHears() throws {
    let alice = stage.connect("alice")
    let carol = stage.connect("carol")
    let phone = stage.connect("bob", "phone")
    let tablet = stage.connect("bob", "tablet")
    let call = try alice.call(["bob", "carol"])
    #expect(phone.code(.call(call, .decline(Decline(reason: "busy")))) == nil)
    #expect(tablet.names() == [.callRing, .callDeclinedElsewhere, .callMember])
    #expect(phone.names() == [.callRing, .callMember])
    #expect(alice.events().causes == [.declined])
    #expect(carol.events().causes == [.declined])
    #expect(tablet.code(.call(call, .accept(tablet.join()))) == .callNotRinging)
    #expect(phone.code(.call(call, .decline(Decline()))) == .callNotRinging)
  }

  @Test(arguments: [5, 30, 120]) func rule4ARingLasts(seconds: Int) throws {
    let alice = stage.connect("alice")
    let carol = stage.connect("carol")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob", "carol"]) { $0.ringSeconds = seconds == 30 ? nil : seconds }
    try carol.accept(call)
    stage.advance(.milliseconds(seconds * 1_000 - 1))
    #expect(try alice.phase(of: "bob", in: call) == .ringing)
    stage.advance(.milliseconds(1))
    #expect(try alice.phase(of: "bob", in: call) == .missed)
    #expect(bob.names().suffix(2) == [.callMissed, .callMember])
    #expect(carol.events().causes.last == .missed)
  }

  @Test(arguments: [4, 121]) func rule4ARingOfAnotherLengthIsRefused(seconds: Int) {
    let alice = stage.connect("alice")
    var policy = Policy()
    policy.ringSeconds = seconds
    guard case .failed(let error) = alice.ask(alice.start([], policy: policy)) else {
      return #expect(Bool(false))
    }
    #expect(error.code == .requestInvalid && error.field == "policy.ringSeconds")
  }

  @Test func rule5JoinedMembersInvite() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    let dave = stage.connect("dave")
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    _ = alice.events()
    let results: InviteResults = try bob.get(
      .call(call, .invite(Invite(callees: [dave.user, carol.user, alice.user]))))
    #expect(results.results == [dave.user: .ringing, carol.user: .alreadyRinging, alice.user: .alreadyJoined])
    #expect(alice.events().causes == [.invited])
    #expect(dave.names() == [.callRing, .callMember])
    #expect(carol.code(.call(call, .invite(Invite(callees: [dave.user])))) == .callNotJoined)
    #expect(stage.connect("eve").code(.call(call, .invite(Invite(callees: [dave.user])))) == .callNotFound)
  }

  @Test func rule5OrTheInitiatorAlone() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    let call = try alice.call(["bob"]) { $0.invite = .initiator }
    try bob.accept(call)
    #expect(bob.code(.call(call, .invite(Invite(callees: [carol.user])))) == .callInviteNotAllowed)
    #expect(alice.code(.call(call, .invite(Invite(callees: [carol.user])))) == nil)
  }

  @Test func rule6ABusyUserRingsWaitingOrIsBusyAtOnce() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let dave = stage.connect("dave")
    _ = try alice.call(["bob"])
    #expect(bob.events().rings.map(\.waiting) == [false])
    #expect(try dave.started(["bob"]) { $0.whenBusy = .reject }.results == [bob.user: .busy])
    #expect(try dave.started(["bob"]).results == [bob.user: .ringing])
    #expect(bob.events().rings.map(\.waiting) == [true])
  }

  @Test func rule6ExactlyOneOfTwoCallersWithRejectRings() throws {
    let bob = stage.connect("bob")
    let results = try ["alice", "dave"].map { name in
      try stage.connect(name).started(["bob"]) { $0.whenBusy = .reject }.results?[bob.user]
    }
    #expect(results == [.ringing, .busy])
    #expect(bob.events().rings.count == 1)
  }

  @Test func rule6ADisconnectedMemberIsNotBusy() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    bob.disconnect()
    stage.advance(.seconds(16))
    #expect(try alice.phase(of: "bob", in: call) == .disconnected)
    let again = stage.connect("bob", "tablet")
    #expect(try stage.connect("dave").started(["bob"]) { $0.whenBusy = .reject }.results == [bob.user: .ringing])
    #expect(again.events().rings.map(\.waiting) == [false])
  }

  @Test func rule7OnlyTheInitiatorEnds() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"])
    try bob.accept(call)
    #expect(bob.code(.call(call, .end)) == .callNotInitiator)
    #expect(stage.connect("eve").code(.call(call, .end)) == .callNotFound)
    stage.advance(.seconds(70))
    #expect(alice.code(.call(call, .end)) == nil)
    #expect(bob.events().ended == Ended(reason: .endedByInitiator, by: alice.user, seconds: 70))
    #expect(alice.code(.call(call, .end)) == .callEnded)
    #expect(bob.code(.call(call, .accept(bob.join()))) == .callEnded)
  }

  @Test func cancelIsForWhoRangThemOrTheInitiator() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    let dave = stage.connect("dave")
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    _ = bob.ask(.call(call, .invite(Invite(callees: [dave.user]))))
    #expect(bob.code(.call(call, .cancel(Cancel(callees: [carol.user])))) == .callNotInitiator)
    #expect(bob.code(.call(call, .cancel(Cancel()))) == nil)
    #expect(dave.names() == [.callRing, .callMember, .callCancelled, .callMember])
    #expect(!carol.events().contains(.callCancelled))
    #expect(alice.code(.call(call, .cancel(Cancel(callees: [carol.user])))) == nil)
    #expect(carol.events().contains(.callCancelled))
    #expect(alice.code(.call(call, .cancel(Cancel()))) == .callNotRinging)
    #expect(carol.code(.call(call, .join(carol.join()))) == .authForbidden)
  }

  @Test func rule17ADeviceWithoutKeysIsNotRung() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob", keys: false)
    let started = try alice.started(["bob", "nobody", "alice", "bob"])
    #expect(
      started.results == [
        bob.user: .noKeys, UserID(unchecked: "nobody"): .noKeys, alice.user: .alreadyJoined,
      ])
    #expect(started.call.members.map(\.user) == [alice.user])
    #expect(bob.events().isEmpty)
  }

  @Test func rule17OneWhoLeftDeclinedMissedOrWasCancelledIsRungAnew() throws {
    let alice = stage.connect("alice")
    let others = ["leaver", "decliner", "misser", "cancelled"].map { stage.connect($0) }
    let call = try alice.call(others.map(\.user.text))
    try others[0].accept(call)
    _ = others[0].ask(.call(call, .leave))
    _ = others[1].ask(.call(call, .decline(Decline())))
    _ = alice.ask(.call(call, .cancel(Cancel(callees: [others[3].user]))))
    stage.advance(.seconds(30))
    for other in others { _ = other.events() }
    let results: InviteResults = try alice.get(.call(call, .invite(Invite(callees: others.map(\.user)))))
    #expect(Set(results.results.values) == [.ringing])
    for other in others {
      #expect(other.events().rings.count == 1)
      #expect(other.code(.call(call, .accept(other.join()))) == nil)
    }
  }

  @Test func noMoreThanAHundredRing() throws {
    let stage = Stage { $0.limits.ringing = 3 }
    let alice = stage.connect("alice")
    let names = (0..<4).map { "u\($0)" }
    let others = names.map { stage.connect($0) }
    #expect(alice.code(alice.start(others.map(\.user))) == .callFull)
    #expect(others.allSatisfy { $0.events().isEmpty })
    let call = try alice.call(Array(names.prefix(3)))
    #expect(alice.code(.call(call, .invite(Invite(callees: [others[3].user])))) == .callFull)
    try others[0].accept(call)
    #expect(alice.code(.call(call, .invite(Invite(callees: [others[3].user])))) == nil)
  }
}
