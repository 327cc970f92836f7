@testable import CallMachine
@testable import Calls
import Contract
import MediaModel
import Testing

import CallMessages

/// Rule 13 of protocol section 4: a call that moves to another device.
struct TransferRules {
  let stage = Stage()
  let alice: Client
  let phone: Client
  let tablet: Client
  let call: CallID

  init() throws {
    alice = stage.connect("alice")
    phone = stage.connect("bob", "phone")
    tablet = stage.connect("bob", "tablet")
    call = try alice.call(["bob", "nobody"], join: 1)
    try phone.accept(call, join: 2)
    try phone.connectMedia(call)
    for client in [alice, phone, tablet] { _ = client.events() }
  }

  private func settleKeys(_ epoch: UInt32, by leader: Client, to others: [Client]) throws {
    stage.advance(.milliseconds(100))
    _ = try leader.handOut(call, epoch, to: others)
    stage.advance(.milliseconds(100))
  }

  @Test func theMemberHasTwoParticipantsUntilMediaFlowsOnTheNewDevice() throws {
    #expect(phone.offer(call, .sending(["0": .microphone]), [.init(mid: "0", source: .microphone)]) == nil)
    let old = try phone.peer(in: call)
    _ = alice.events()
    let joined = try tablet.transfer(call)
    #expect(joined.participant == 3)
    #expect(joined.call.members[1].participants.map(\.participant) == [2, 3])
    #expect(alice.events().causes == [.joined])
    #expect(phone.code(.inCall(call, .track(TrackID(participant: 2, index: 1), ChangeTrack(muted: true)))) == nil)
    _ = [alice, phone, tablet].map { $0.events() }
    _ = stage.takeMedia()
    try tablet.connectMedia(call)
    let events = alice.events()
    #expect(events.map(\.name) == [.trackRemoved, .callMember])
    #expect(events.causes == [.transferred])
    #expect(phone.names() == [.callMember], "its former tracks are ignored")
    #expect(tablet.names() == [.trackRemoved, .callMember])
    #expect(stage.takeMedia().contains { if case .remove(old) = $0 { true } else { false } })
    let participant = try #require(try alice.state(call).members[1].participants.first)
    #expect(participant.participant == 3 && participant.connected && participant.device.text == "tablet")
    stage.advance(.seconds(30))
    #expect(try alice.participants(of: "bob", in: call) == [3], "the 20 s are over with that")
    #expect(phone.code(.call(call, .leave)) == .callNotJoined)
  }

  @Test func withoutMediaFor20SecondsTheNewOneGoes() throws {
    try tablet.transfer(call)
    stage.advance(.milliseconds(19_999))
    #expect(try alice.participants(of: "bob", in: call) == [2, 3])
    stage.advance(.milliseconds(1))
    #expect(try alice.participants(of: "bob", in: call) == [2])
    #expect(alice.events().causes == [.joined, .failed])
    #expect(tablet.code(.call(call, .leave)) == .callNotJoined)
    #expect(try phone.state(call).members[1].state == .joined)
    #expect(try tablet.transfer(call).participant == 4)
  }

  @Test func itNeedsAnotherDeviceInTheCall() throws {
    let carol = stage.connect("carol")
    #expect(carol.code(.call(call, .transfer(carol.join()))) == .callNotFound)
    _ = alice.ask(.call(call, .invite(Invite(callees: [carol.user]))))
    #expect(carol.code(.call(call, .transfer(carol.join()))) == .callNotJoined)
    _ = phone.ask(.call(call, .leave))
    #expect(tablet.code(.call(call, .transfer(tablet.join()))) == .callNotJoined)
  }

  @Test func onTheDeviceThatIsInTheCallItIsARejoin() throws {
    #expect(try phone.transfer(call).participant == 3)
    #expect(alice.events().causes == [.rejoined])
    try tablet.transfer(call)
    #expect(try phone.transfer(call).participant == 5)
    #expect(try alice.participants(of: "bob", in: call) == [5], "the newest request counts")
    #expect(alice.events().causes == [.joined, .failed, .rejoined])
  }

  @Test func joinAndRejoinBesideAConnectedDeviceAreStillRefused() throws {
    let watch = stage.connect("bob", "watch")
    try tablet.transfer(call)
    #expect(watch.code(.call(call, .join(watch.join()))) == .callAnsweredElsewhere)
    #expect(watch.code(.call(call, .rejoin(watch.join()))) == .callAnsweredElsewhere)
    #expect(watch.code(.call(call, .decline(Decline()))) == .callAnsweredElsewhere)
    #expect(tablet.code(.call(call, .decline(Decline()))) == .callNotRinging)
  }

  @Test func aThirdDeviceTakesThePlaceOfTheSecond() throws {
    let watch = stage.connect("bob", "watch")
    try tablet.transfer(call)
    let second = try tablet.peer(in: call)
    #expect(try watch.transfer(call).participant == 4)
    #expect(try alice.participants(of: "bob", in: call) == [2, 4])
    stage.handle(.media(.connected(second)))
    #expect(try alice.participants(of: "bob", in: call) == [2, 4])
    try watch.connectMedia(call)
    #expect(try alice.participants(of: "bob", in: call) == [4])
  }

  @Test func anEpochThatBeginsWithItHasTheThirdOnItsList() throws {
    let second = stage.connect("bob", "second", mode: .individual)
    try second.transfer(call, join: 3)
    stage.advance(.milliseconds(100))
    _ = try alice.handOut(call, 2, to: [phone, second])
    try phone.rejoin(call, join: 4)
    stage.advance(.milliseconds(150))
    // Only the second device had not opened its envelope: the switch, and the events that wait for it, come at once.
    try tablet.transfer(call, join: 5)
    let list: KeyList = try tablet.get(.inCall(call, .listKeys(ListKeys())))
    #expect(list.epoch == 3 && list.list.map(\.device.text) == ["phone", "phone", "tablet"])
    #expect(tablet.names().contains(.keysRotate))
  }

  @Test func theNewDeviceMayRejoinWhileItArrives() throws {
    try tablet.transfer(call)
    stage.advance(.seconds(15))
    #expect(try tablet.rejoin(call).participant == 4)
    #expect(try alice.participants(of: "bob", in: call) == [2, 4])
    stage.advance(.seconds(15))
    #expect(try alice.participants(of: "bob", in: call) == [2, 4], "it has its own 20 s")
    #expect(try phone.rejoin(call).participant == 5)
    #expect(try alice.participants(of: "bob", in: call) == [5, 4], "and the old one may, too")
    try tablet.connectMedia(call)
    #expect(try alice.participants(of: "bob", in: call) == [4])
  }

  @Test func whenTheOldDeviceLeavesOrDiesTheNewOneStays() throws {
    try tablet.transfer(call)
    #expect(phone.code(.call(call, .leave)) == nil)
    #expect(try alice.participants(of: "bob", in: call) == [3])
    #expect(alice.events().causes == [.joined, .transferred])
    try tablet.connectMedia(call)
    try phone.transfer(call)
    tablet.disconnect()
    try tablet.loseMedia(call, silence: .seconds(10))
    stage.advance(.seconds(15))
    #expect(try alice.participants(of: "bob", in: call) == [4])
    stage.advance(.seconds(5))
    #expect(try alice.phase(of: "bob", in: call) == .left, "the 20 s continue")
  }

  @Test func whenTheNewDeviceLeavesOrDiesTheOldOneStays() throws {
    try tablet.transfer(call)
    #expect(tablet.code(.call(call, .leave)) == nil)
    #expect(try alice.participants(of: "bob", in: call) == [2])
    try tablet.transfer(call)
    tablet.disconnect()
    stage.advance(.seconds(15))
    #expect(try alice.participants(of: "bob", in: call) == [2])
    #expect(alice.events().causes == [.joined, .failed, .joined, .failed])
    #expect(try alice.state(call).members[1].state == .joined)
  }

  @Test func keysAreMadeForTheNewDeviceAndAgainWhenTheOldOneGoes() throws {
    try settleKeys(2, by: alice, to: [phone])
    _ = [alice, phone].map { $0.events() }
    try tablet.transfer(call, join: 3)
    stage.advance(.milliseconds(100))
    let rotation = try #require(alice.events().rotations.first)
    #expect(rotation.epoch == 3 && rotation.mode == .ratchet)
    #expect(rotation.deliver?.map(\.device.text) == ["tablet"])
    #expect(tablet.events().rotations.first?.list?.count == 3)
    _ = try alice.handOut(call, 3, to: [tablet])
    #expect(tablet.events().switches == [3])
    try tablet.connectMedia(call)
    stage.advance(.milliseconds(100))
    let last = try #require(alice.events().rotations.last)
    #expect(last.epoch == 4 && last.mode == .fresh && last.removed == [2])
    #expect(last.deliver?.map(\.device.text) == ["tablet"])
    #expect(phone.events().rotations.map(\.epoch) == [3], "nothing for a device that has left")
    #expect(phone.code(.inCall(call, .listKeys(ListKeys()))) == .callNotJoined)
  }

  @Test func aRepeatedTransferGetsTheFirstReplyAgain() throws {
    let first = try tablet.transfer(call, join: 7)
    _ = alice.events()
    #expect(try tablet.transfer(call, join: 7) == first)
    #expect(alice.events().isEmpty)
    #expect(tablet.code(.call(call, .rejoin(tablet.join(7)))) == .requestInvalid)
  }

  @Test func bothHearWhatParticipantsHearAndEachHasItsOwnTracks() throws {
    try tablet.transfer(call)
    _ = [alice, phone, tablet].map { $0.events() }
    #expect(tablet.offer(call, .sending(["0": .camera]), [.init(mid: "0", source: .camera)]) == nil)
    for client in [alice, phone, tablet] { #expect(client.names() == [.trackAdded]) }
    let track = TrackID(participant: 3, index: 1)
    #expect(phone.code(.inCall(call, .track(track, ChangeTrack(muted: true)))) == .trackNotOwn)
    #expect(tablet.code(.inCall(call, .track(track, ChangeTrack(muted: true)))) == nil)
    let peer = try tablet.peer(in: call)
    #expect(stage.takeMedia().contains { if case .mute(peer, track, true) = $0 { true } else { false } })
    stage.handle(.media(.need(peer, audio: 1, video: 1)))
    #expect(tablet.names() == [.trackUpdated, .mediaNeed] && phone.names() == [.trackUpdated])
    _ = phone.ask(.inCall(call, .requestKey(RequestKey())))
  }

  @Test func aScreenOfTheOldDeviceCountsUntilItGoes() throws {
    let screen = [MediaRequest.Track(mid: "0", source: .screen)]
    #expect(phone.offer(call, .sending(["0": .screen]), screen) == nil)
    try tablet.transfer(call)
    #expect(tablet.offer(call, .sending(["0": .screen]), screen) == .screenBusy)
    let replacing = [MediaRequest.Track(mid: "0", source: .screen, replace: true)]
    #expect(tablet.offer(call, .sending(["0": .screen]), replacing) == nil)
    #expect(try alice.state(call).members[1].participants.map(\.tracks.count) == [0, 1])
  }

  @Test func theEndTakesBoth() throws {
    try tablet.transfer(call)
    #expect(alice.code(.call(call, .end)) == nil)
    #expect(phone.events().ended != nil && tablet.events().ended != nil)
    #expect(stage.node.control.peers.isEmpty && stage.node.control.timers.count == 0)
  }

  @Test func theInitiatorMayTransferWhileItRings() throws {
    let other = stage.connect("alice", "laptop")
    let carol = stage.connect("carol")
    let call = try alice.call(["carol"])
    try other.transfer(call)
    try other.connectMedia(call)
    #expect(try other.state(call).state == .ringing)
    #expect(try other.phase(of: "carol", in: call) == .ringing)
    try carol.accept(call)
    #expect(alice.names().last == .callMember)
    #expect(try carol.state(call).state == .active)
  }

  @Test func eachConnectionOfBothDevicesBeginsWithTheState() throws {
    try tablet.transfer(call)
    for device in ["phone", "tablet"] {
      #expect(stage.connect("bob", device).names().first == .callState)
    }
    #expect(try tablet.stage.connect("bob", "watch").get(.listCalls, as: CallList.self).calls.isEmpty)
  }
}
