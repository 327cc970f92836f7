@testable import PeopleMachine
@testable import CallMachine
@testable import Calls
import Contract
import MediaModel
import Testing

import CallMessages

/// Rules 8 to 16 of protocol section 4.
struct LifeRules {
  let stage = Stage()

  @Test func rule8TheInitiatorMayLeaveRejoinAndEnd() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    try carol.accept(call)
    #expect(alice.code(.call(call, .leave)) == nil)
    #expect(try bob.state(call).state == .active)
    #expect(try alice.rejoin(call).participant == 4)
    #expect(alice.code(.call(call, .leave)) == nil)
    #expect(alice.code(.call(call, .end)) == nil, "also without being there")
  }

  @Test func theStateSaysWhenAnotherJoinedFirst() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    let call = try alice.call(["bob", "carol"])
    #expect(try alice.state(call).answeredAt == nil)
    stage.advance(.seconds(4))
    try bob.accept(call)
    let answeredAt = try #require(try alice.state(call).answeredAt)
    #expect(answeredAt == stage.now)
    stage.advance(.seconds(2))
    try carol.accept(call)
    #expect(try carol.state(call).answeredAt == answeredAt)
  }

  @Test func rule8WhileNobodyHasJoinedItsLeaveCancelsAllRings() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob", "carol"])
    #expect(alice.code(.call(call, .leave)) == nil)
    let events = bob.events()
    #expect(events.contains(.callCancelled))
    #expect(events.causes.prefix(2) == [.left, .cancelled])
    #expect(events.ended?.reason == .cancelled)
  }

  @Test func rule8AndSoDoesItsGoingDisconnected() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"]) { $0.aloneSeconds = 60 }
    alice.disconnect()
    stage.advance(.milliseconds(14_999))
    #expect(try bob.phase(of: "bob", in: call) == .ringing)
    stage.advance(.milliseconds(1))
    #expect(try bob.phase(of: "bob", in: call) == .cancelled)
    stage.advance(.seconds(60))
    #expect(bob.events().ended?.reason == .cancelled)
  }

  @Test(arguments: [
    (["declined", "declined"], EndReason.declined), (["declined", "missed"], .noAnswer),
    (["missed", "missed"], .noAnswer), (["declined", "cancelled"], .cancelled), (["cancelled", "missed"], .noAnswer),
  ])
  func rule9ACallThatNeverBecameActiveEnds(outcomes: [String], reason: EndReason) throws {
    let alice = stage.connect("alice")
    let others = [stage.connect("bob"), stage.connect("carol")]
    let call = try alice.call(["bob", "carol"]) { $0.aloneSeconds = 7 }
    for (other, outcome) in zip(others, outcomes) {
      switch outcome {
      case "declined": _ = other.ask(.call(call, .decline(Decline())))
      case "cancelled": _ = alice.ask(.call(call, .cancel(Cancel(callees: [other.user]))))
      default: break
      }
    }
    stage.advance(.seconds(40))
    #expect(alice.events().ended == Ended(reason: reason, by: nil, seconds: 0))
    #expect(others[0].events().ended?.reason == reason)
  }

  @Test func rule9ACallOfTwoEndsAtOnceWhenOneIsAlone() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let declined = try alice.call(["bob"])
    _ = bob.ask(.call(declined, .decline(Decline())))
    #expect(alice.events().ended?.reason == .declined)
    _ = bob.events()
    let left = try alice.call(["bob"])
    try bob.accept(left)
    _ = alice.ask(.call(left, .leave))
    #expect(bob.events().ended?.reason == .allLeft)
  }

  @Test func rule9NotWhenAnotherWasInvited() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    let call = try alice.call(["bob"])
    try bob.accept(call)
    _ = alice.ask(.call(call, .invite(Invite(callees: [carol.user]))))
    _ = carol.ask(.call(call, .decline(Decline())))
    _ = bob.ask(.call(call, .leave))
    stage.advance(.milliseconds(119_999))
    #expect(try alice.state(call).state == .active)
    stage.advance(.milliseconds(1))
    #expect(alice.events().ended?.reason == .allLeft)
  }

  @Test func rule9ARingCountsAsCompany() throws {
    let alice = stage.connect("alice")
    let call = try alice.call(["bob", "carol"])
    #expect(stage.connect("bob").code(.call(call, .accept(Join()))) == .callNotFound)
    let dave = stage.connect("dave")
    stage.advance(.seconds(119))
    _ = alice.ask(.call(call, .invite(Invite(callees: [dave.user]))))
    stage.advance(.seconds(29))
    #expect(try alice.state(call).state == .ringing)
    stage.advance(.seconds(121))
    #expect(alice.events().ended?.reason == .noAnswer)
  }

  @Test func secondsCountToWhenTheLastOneWasThere() throws {
    let (alice, bob, carol) = (stage.connect("alice"), stage.connect("bob"), stage.connect("carol"))
    let call = try alice.call(["bob", "carol"]) { $0.awaySeconds = 300 }
    try bob.accept(call)
    try carol.accept(call)
    for client in [alice, bob] { try client.connectMedia(call) }
    stage.advance(.seconds(46))
    // Both browsers are killed: their signaling ends at once, and the loss of media is noticed later.
    for client in [alice, bob] { client.disconnect() }
    stage.advance(.seconds(10))
    for client in [alice, bob] { try client.loseMedia(call, silence: .seconds(10)) }
    stage.advance(.seconds(100))
    #expect(carol.code(.call(call, .leave)) == nil)
    stage.advance(.seconds(400))
    let topic = stage.webhooks.compactMap { if case .ended(let ended) = $0.event.body { ended } else { nil } }
    #expect(topic.last == Ended(reason: .allLeft, by: nil, seconds: 156), "Carol was last, 110 s after the others")
  }

  @Test func secondsCountToTheLastConnectionOfAllWhoWereLost() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    let call = try alice.call(["bob"])
    try bob.accept(call)
    for client in [alice, bob] { try client.connectMedia(call) }
    stage.advance(.seconds(46))
    for client in [alice, bob] { client.disconnect() }
    stage.advance(.seconds(10))
    for client in [alice, bob] { try client.loseMedia(call, silence: .seconds(10)) }
    stage.advance(.seconds(400))
    #expect(stage.node.inspection(of: call)?.ended == Ended(reason: .allLeft, by: nil, seconds: 46))
  }

  @Test func rule9ACallExpires() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"]) { $0.maxHours = 2 }
    try bob.accept(call)
    stage.advance(.seconds(7_200))
    #expect(alice.events().ended?.reason == .expired)
    #expect(alice.code(.call(call, .state)) == .callEnded)
    #expect(stage.node.control.timers.count(of: call) == 0)
  }

  @Test func rule10DisconnectedIsWhenBothHaveBeenGoneFor15Seconds() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob", "carol"]) { $0.awaySeconds = 40 }
    try bob.accept(call)
    try bob.connectMedia(call)
    bob.disconnect()
    stage.advance(.seconds(60))
    #expect(try alice.phase(of: "bob", in: call) == .joined, "media continues without signaling")
    _ = alice.events()
    try bob.loseMedia(call, silence: .seconds(6))
    #expect(alice.events().causes == [.disconnected])
    stage.advance(.milliseconds(8_999))
    #expect(try alice.phase(of: "bob", in: call) == .joined)
    stage.advance(.milliseconds(1))
    #expect(try alice.phase(of: "bob", in: call) == .disconnected)
    stage.advance(.seconds(40))
    #expect(try alice.phase(of: "bob", in: call) == .left)
    #expect(alice.events().causes == [.disconnected, .left])
  }

  @Test func rule10SilenceOlderThan15SecondsCountsAtOnce() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    try bob.connectMedia(call)
    bob.disconnect()
    stage.advance(.seconds(60))
    try bob.loseMedia(call, silence: .seconds(30))
    #expect(try alice.phase(of: "bob", in: call) == .disconnected)
  }

  @Test func rule10MediaGoneAloneIsNotConnected() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"])
    try bob.accept(call)
    try bob.connectMedia(call)
    #expect(alice.events().causes == [.accepted, .connected])
    try bob.loseMedia(call)
    guard case .member(let change)? = alice.events().last else { return #expect(Bool(false)) }
    #expect(change.member.state == .joined && change.member.participants.map(\.connected) == [false])
    stage.advance(.seconds(600))
    #expect(try alice.phase(of: "bob", in: call) == .joined, "signaling is there")
  }

  @Test func rule10WithoutMediaAParticipantFails() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    let call = try alice.call(["bob", "carol"]) { $0.connectSeconds = 10 }
    try alice.connectMedia(call)
    try bob.accept(call)
    try carol.accept(call)
    try carol.connectMedia(call)
    stage.advance(.seconds(10))
    #expect(bob.events().causes.last == .failed)
    #expect(try alice.phase(of: "bob", in: call) == .left)
    #expect(try alice.phase(of: "carol", in: call) == .joined)
  }

  @Test func rule12RejoinGivesANewParticipantInOneStep() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"])
    try bob.accept(call)
    #expect(bob.offer(call, .sending(["0": .microphone]), [.init(mid: "0", source: .microphone)]) == nil)
    let old = try bob.peer(in: call)
    let again = stage.connect("bob")
    #expect(stage.closed == [bob.session])
    #expect(again.names().first == .callState)
    _ = alice.events()
    let joined = try again.rejoin(call)
    #expect(joined.participant == 3)
    #expect(joined.call.members[1].participants.map(\.participant) == [3])
    let events = alice.events()
    #expect(events.map(\.name) == [.trackRemoved, .callMember])
    #expect(events.causes == [.rejoined])
    #expect(again.names() == [.callState, .trackRemoved, .callMember])
    #expect(stage.takeMedia().contains { if case .remove(old) = $0 { true } else { false } })
  }

  @Test func rule13BesideAConnectedOneThereIsNoOther() throws {
    let alice = stage.connect("alice")
    let phone = stage.connect("bob", "phone")
    let tablet = stage.connect("bob", "tablet")
    let call = try alice.call(["bob", "carol"])
    try phone.accept(call)
    #expect(tablet.code(.call(call, .join(tablet.join()))) == .callAnsweredElsewhere)
    #expect(tablet.code(.call(call, .rejoin(tablet.join()))) == .callAnsweredElsewhere)
    phone.disconnect()
    stage.advance(.seconds(15))
    #expect(try tablet.rejoin(call).participant == 3)
    #expect(try alice.state(call).members[1].participants.map(\.device.text) == ["tablet"])
  }

  @Test func rule14ARepeatedJoinGetsTheFirstReplyAgain() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let first = try alice.started(["bob", "carol"], join: 1)
    let accepted = try bob.accept(first.call.id, join: 2)
    for client in [alice, bob] { _ = client.events() }
    #expect(try alice.started(["bob", "carol"], join: 1) == first)
    #expect(try bob.accept(first.call.id, join: 2) == accepted)
    #expect(bob.code(.call(first.call.id, .rejoin(bob.join(2)))) == .requestInvalid)
    #expect(alice.events().isEmpty && bob.events().isEmpty)
    _ = alice.ask(.call(first.call.id, .end))
    #expect(try alice.started(["bob", "carol"], join: 1) == first)
    #expect(bob.code(.call(first.call.id, .accept(bob.join(2)))) == .callEnded)
  }

  @Test func rule15AParticipantKeepsItsKeysAndOthersHearOfNewOnes() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"], join: 1)
    try bob.accept(call)
    _ = alice.events()
    let list: KeyList = try alice.get(.inCall(call, .listKeys(ListKeys())))
    var keys = alice.keys
    keys[0].publicKey.bytes.append(1)
    let registered: Registered = try alice.get(.people(.registerDevice(RegisterDevice(name: nil, keys: keys))))
    #expect(registered.fingerprint != list.list[0].fingerprint)
    #expect(bob.names().last == .keysDevicesChanged)
    #expect(try alice.get(.inCall(call, .listKeys(ListKeys())), as: KeyList.self).list == list.list)
    _ = bob.events()
    _ = alice.ask(.people(.registerDevice(RegisterDevice(name: "new name", keys: keys))))
    #expect(bob.events().isEmpty, "the same keys again are no change")
  }

  @Test func rule16TheFirstEventOnEachConnectionIsTheState() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob", mode: .individual)
    let call = try alice.call(["bob"])
    try bob.accept(call)
    let before = bob.deliveries()
    bob.disconnect()
    let again = stage.connect("bob", mode: .individual)
    let after = again.deliveries()
    #expect(after.first?.message.body.name == .callState)
    #expect(after.dropFirst().prefix(before.count - 1).allSatisfy { $0.redelivered })
    #expect(after.dropFirst().map(\.message.body.name) == [.callMember], "the ring is over")
  }

  @Test func aMemberWhoDeclinedMissedOrLeftMayJoin() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob", "carol"])
    _ = bob.ask(.call(call, .decline(Decline())))
    #expect(bob.code(.call(call, .rejoin(bob.join()))) == .callNotJoined)
    #expect(try bob.get(.listCalls, as: CallList.self).calls.map(\.id) == [call])
    let joined: Joined = try bob.get(.call(call, .join(bob.join())))
    #expect(joined.participant == 2 && joined.call.state == .active)
    #expect(alice.events().causes == [.declined, .joined])
    #expect(bob.code(.call(call, .leave)) == nil)
    #expect(bob.code(.call(call, .leave)) == .callNotJoined)
    #expect(bob.code(.call(call, .join(bob.join()))) == nil)
  }

  @Test func aCallIsFull() throws {
    let stage = Stage { $0.limits.participants = 2 }
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    #expect(carol.code(.call(call, .accept(carol.join()))) == .callFull)
    _ = bob.ask(.call(call, .leave))
    #expect(carol.code(.call(call, .accept(carol.join()))) == nil)
  }

  @Test func nothingIsLeftOfACall() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"])
    try bob.accept(call)
    stage.advance(.seconds(1))
    _ = alice.ask(.call(call, .end))
    #expect(
      stage.node.control.timers.count == 0 && stage.node.control.calls.isEmpty
        && stage.node.people.memberships.isEmpty)
    #expect(stage.node.control.peers.isEmpty && stage.node.control.starts.isEmpty)
  }
}

extension MediaOffer {
  /// An offer with sending sections by mid, VP8 or Opus, and `receiving` more sections.
  static func sending(
    _ sections: [String: TrackSource], codec: String? = nil, fingerprint: UInt8 = 1, direction: Direction = .sendonly
  ) -> MediaOffer {
    MediaOffer(
      credentials: ICECredentials(fragment: "abcd", password: "secret"),
      fingerprint: CertificateFingerprint(hash: "sha-256", digest: [fingerprint]), extensions: HeaderExtensionIDs(),
      allowsMixedExtensions: false,
      sections: sections.sorted { $0.key < $1.key }.map { mid, source in
        Section(
          mid: mid, kind: .media(source.kind), direction: direction,
          formats: [
            PayloadFormat(payloadType: 96, codec: codec ?? (source.kind == .video ? "VP8" : "opus"), clockRate: 90_000)
          ])
      })
  }
}
