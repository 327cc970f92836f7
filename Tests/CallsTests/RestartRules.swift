@testable import PeopleMachine
@testable import CallMachine
@testable import Calls
import Contract
import MediaModel
import Simulation
import Testing

import CallMessages

/// Rule 11 of protocol section 4: the server's death does not end a call.
struct RestartRules {
  let stage = Stage()

  /// A call of two, both with media, in its second epoch.
  private func callOfTwo() throws -> (call: CallID, alice: Client, bob: Client) {
    let alice = stage.connect("alice", mode: .individual)
    let bob = stage.connect("bob", mode: .individual)
    let call = try alice.call(["bob"], join: 1)
    try bob.accept(call, join: 2)
    for client in [alice, bob] { try client.connectMedia(call) }
    stage.advance(.milliseconds(100))
    _ = try alice.handOut(call, 2, to: [bob])
    acknowledgeAll(bob)
    stage.advance(.seconds(3))
    acknowledgeAll(alice)
    acknowledgeAll(bob)
    return (call, alice, bob)
  }

  @discardableResult
  private func acknowledgeAll(_ client: Client) -> [EventDelivery] {
    let deliveries = client.deliveries()
    for delivery in deliveries { client.acknowledge(delivery.seq) }
    return deliveries
  }

  // MARK: calls and members

  @Test func theCallIsAsItWasAndNobodyIsConnected() throws {
    let (call, alice, _) = try callOfTwo()
    let before = try alice.state(call)
    stage.restart(after: .seconds(2))
    let again = stage.connect("alice", keys: false)
    #expect(again.names().first == .callState, "the first event on each connection of a joined device (rule 16)")
    let now = try again.state(call)
    #expect(try #require(now.rev) > #require(before.rev))
    var expected = before
    expected.rev = now.rev
    for place in expected.members.indices { expected.members[place].participants[0].connected = false }
    #expect(now == expected)
    #expect(before.epoch == 2 && before.members.map(\.state) == [.joined, .joined])
  }

  @Test func noPeerHasTheIdOfOneOfAnEarlierRun() throws {
    let (call, _, _) = try callOfTwo()
    let earlier = Set(stage.node.control.peers.keys)
    stage.restart()
    try stage.connect("alice").rejoin(call)
    let peers = Set(stage.node.control.peers.keys)
    #expect(earlier.count == 2 && !peers.isEmpty && peers.isDisjoint(with: earlier))
  }

  @Test func everybodyComesBackByRejoin() throws {
    let (call, _, _) = try callOfTwo()
    stage.restart()
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    #expect(try alice.rejoin(call).participant == 3)
    #expect(try bob.rejoin(call).participant == 4, "never a number twice")
    #expect(try alice.state(call).members.map(\.participants.count) == [1, 1], "no ghost")
    try alice.connectMedia(call)
    try bob.connectMedia(call)
    stage.advance(.seconds(3_600))
    #expect(try alice.state(call).state == .active)
    #expect(alice.code(.call(call, .end)) == nil, "alice is the initiator still")
  }

  @Test func aDeviceThatDoesNotComeBackIsDisconnectedAndThenLeft() throws {
    let (call, _, _) = try callOfTwo()
    stage.restart()
    let alice = stage.connect("alice")
    try alice.rejoin(call)
    try alice.connectMedia(call)
    stage.advance(.milliseconds(14_999))
    #expect(try alice.phase(of: "bob", in: call) == .joined)
    stage.advance(.milliseconds(1))
    #expect(try alice.phase(of: "bob", in: call) == .disconnected)
    // The server is down for most of the time for which bob may be away.
    stage.restart(after: .seconds(299))
    let again = stage.connect("alice")
    #expect(try again.phase(of: "bob", in: call) == .disconnected)
    stage.advance(.seconds(1))
    #expect(again.code(.call(call, .state)) == .callEnded, "alice was the only one left of two (rule 9)")
  }

  @Test func messagesKeptForAnAbsentDeviceGoAfter2Minutes() throws {
    let (call, _, _) = try callOfTwo()
    stage.restart()
    let alice = stage.connect("alice", keys: false)
    try alice.rejoin(call)
    try alice.connectMedia(call)
    // After 15 s bob is disconnected, and could come back for 2 minutes.
    stage.advance(.seconds(15 + 121))
    #expect(!stage.connect("bob", keys: false, mode: .individual).names().contains(.callMember))
  }

  @Test func beingAloneGoesOn() throws {
    let alice = stage.connect("alice")
    let call = try alice.call([]) { $0.aloneSeconds = 60 }
    stage.advance(.seconds(50))
    stage.restart(after: .seconds(5))
    let again = stage.connect("alice")
    try again.rejoin(call)
    stage.advance(.seconds(4))
    #expect(try again.phase(of: "alice", in: call) == .joined)
    stage.advance(.seconds(1))
    #expect(again.code(.call(call, .state)) == .callEnded)
  }

  @Test func tracksKeepTheirNames() throws {
    let (call, alice, _) = try callOfTwo()
    let sources: [String: TrackSource] = ["0": .microphone, "1": .camera]
    let tracks = [MediaRequest.Track(mid: "0", source: .microphone), MediaRequest.Track(mid: "1", source: .camera)]
    #expect(alice.offer(call, .sending(sources), tracks) == nil)
    #expect(alice.code(.inCall(call, .track(TrackID(participant: 1, index: 2), ChangeTrack(muted: true)))) == nil)
    stage.restart()
    let again = stage.connect("alice")
    let camera = try again.state(call).members[0].participants[0].tracks[1]
    #expect(camera.track == TrackID(participant: 1, index: 2) && camera.muted)
    // The media plane is new: it accepts a first offer, and n is never used for another source.
    let shared: [String: TrackSource] = ["1": .screen]
    #expect(again.offer(call, .sending(shared), [MediaRequest.Track(mid: "1", source: .screen)]) == nil)
    #expect(stage.negotiations.last?.tracks.map(\.track) == [TrackID(participant: 1, index: 3)])
  }

  // MARK: rings

  @Test func aRingGoesOnAndStillBringsItsEnvelope() throws {
    let alice = stage.connect("alice")
    let phone = stage.connect("bob", "phone", mode: .individual)
    let tablet = stage.connect("bob", "tablet", mode: .individual)
    let envelopes = [phone, tablet].map { alice.envelope(for: $0, epoch: 1) }
    let call = try alice.call(["bob"], envelopes: envelopes)
    acknowledgeAll(tablet)
    stage.restart(after: .seconds(10))
    let ring = try #require(stage.connect("bob", "phone", mode: .individual).events().rings.first)
    #expect(ring.envelope?.to == phone.device && ring.envelope?.from == alice.device)
    #expect(ring.list?.map(\.user.text) == ["alice", "bob", "bob"])
    #expect(ring.expiresAt == Stage.start + .seconds(30))
    let other = stage.connect("bob", "tablet", mode: .individual)
    #expect(other.events().rings.map(\.envelope) == [nil], "it was acknowledged")
    try other.accept(call)
    #expect(try other.state(call).state == .active)
  }

  @Test func aRingThatRanOutMeanwhileIsMissed() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob", mode: .individual)
    let call = try alice.call(["bob", "carol"])
    let carol = stage.connect("carol")
    _ = try alice.get(.call(call, .invite(Invite(callees: [carol.user])))) as InviteResults
    stage.restart(after: .seconds(40))
    let again = stage.connect("bob", mode: .individual)
    #expect(again.names().first == .callMissed, "rung devices are told how the ring ended")
    #expect(!again.names().contains(.callRing))
    #expect(stage.disk.history.contains(.part(call, bob.user, name: "bob", .incoming, .missed)))
  }

  @Test func usersRungBeforeHearOfTheEnd() throws {
    let alice = stage.connect("alice")
    _ = stage.connect("bob", "phone")
    _ = stage.connect("bob", "tablet")
    let call = try alice.call(["bob"])
    stage.restart()
    let phone = stage.connect("bob", "phone")
    try phone.accept(call)
    #expect(stage.connect("bob", "tablet").names().contains(.callAnsweredElsewhere))
  }

  @Test func keysAndNamesAreKnownStill() throws {
    _ = stage.connect("bob")
    let alice = stage.connect("alice")
    let before: Devices = try alice.get(.people(.listDevices(ListDevices(users: [UserID(unchecked: "bob")]))))
    stage.restart()
    let again = stage.connect("alice", keys: false)
    #expect(try again.get(.people(.listDevices(ListDevices(users: [UserID(unchecked: "bob")])))) == before)
    let started = try again.started(["bob"])
    #expect(started.results == [UserID(unchecked: "bob"): .offline])
    #expect(started.call.members.last?.name == "bob")
  }

  // MARK: keys

  @Test func anEnvelopeThatWasNotAcknowledgedComesAgain() throws {
    let (call, alice, bob) = try callOfTwo()
    let carol = stage.connect("carol", mode: .individual)
    _ = try alice.get(.call(call, .invite(Invite(callees: [carol.user])))) as InviteResults
    try carol.accept(call)
    stage.advance(.milliseconds(100))
    _ = try alice.handOut(call, 3, to: [carol, bob])
    let sent = try #require(carol.deliveries().first { $0.message.body.isEnvelope })
    acknowledgeAll(bob)
    // The switch does not wait for carol.
    stage.advance(.seconds(2))
    #expect(try alice.state(call).epoch == 3)
    stage.restart(after: .seconds(1))
    let again = stage.connect("carol", keys: false, mode: .individual).deliveries()
    let repeated = again.filter { $0.message.body.isEnvelope }
    #expect(repeated.map(\.seq) == [sent.seq] && repeated.map(\.redelivered) == [true])
    #expect(repeated.first?.message.body == sent.message.body)
    let others = stage.connect("bob", keys: false, mode: .individual).events()
    #expect(others.envelopes.isEmpty, "bob has acknowledged")
  }

  @Test func anEnvelopeThatWasNeverWrittenComesForTheFirstTime() throws {
    let (call, alice, bob) = try callOfTwo()
    let carol = stage.connect("carol")
    _ = try alice.get(.call(call, .invite(Invite(callees: [carol.user])))) as InviteResults
    bob.disconnect()
    try carol.accept(call)
    stage.advance(.milliseconds(100))
    _ = try alice.handOut(call, 3, to: [carol, bob])
    stage.advance(.seconds(2))
    stage.restart()
    let again = stage.connect("bob", keys: false, mode: .individual).deliveries()
    let envelope = try #require(again.first { $0.message.body.isEnvelope })
    #expect(!envelope.redelivered && envelope.seq > 1 << 32)
  }

  @Test func aSupersededEnvelopeNeverComesAgain() throws {
    let (call, alice, bob) = try callOfTwo()
    stage.advance(.seconds(600))
    _ = try alice.handOut(call, 3, to: [bob])
    stage.advance(.seconds(603))
    #expect(stage.node.control.calls[call]?.epochs.newest.number == 4)
    stage.restart()
    #expect(stage.connect("bob", keys: false, mode: .individual).events().envelopes.isEmpty)
  }

  @Test func anEpochUnderWayIsGivenUpForAFreshOne() throws {
    let start = stage.now
    let (call, _, bob) = try callOfTwo()
    stage.advance((start + .seconds(601)) - stage.now)
    #expect(bob.events().rotations.map(\.epoch) == [3], "announced, its key not handed out")
    stage.restart()
    let again = stage.connect("bob", keys: false, mode: .individual)
    stage.advance(.milliseconds(100))
    let rotation = try #require(again.events().rotations.first)
    #expect(rotation.epoch == 4 && rotation.mode == .fresh && rotation.leader == 2)
    #expect(try again.state(call).epoch == 2)
    _ = try again.handOut(call, 4, to: [])
    stage.advance(.seconds(2))
    #expect(try again.state(call).epoch == 4)
  }

  @Test func keysRotateInTheirTime() throws {
    let (call, _, _) = try callOfTwo()
    stage.restart(after: .seconds(5))
    let bob = stage.connect("bob")
    try bob.connectMedia(call)
    let alice = stage.connect("alice")
    try alice.connectMedia(call)
    stage.advance(.seconds(580))
    #expect(!bob.names().contains(.keysRotate))
    stage.advance(.seconds(15))
    #expect(bob.names().contains(.keysRotate))
  }

  // MARK: numbers and repetitions

  @Test func seqJumps() throws {
    let (_, alice, _) = try callOfTwo()
    let before = stage.node.people.directory[alice.device]?.mailbox.lastSeq ?? 0
    stage.restart()
    let first = try #require(stage.connect("alice").deliveries().first)
    #expect(before < 1 << 32 && first.seq == 1 << 32 + 1)
    stage.restart()
    #expect(stage.connect("alice").deliveries().first?.seq == 2 << 32 + 1)
  }

  @Test func aRepeatedJoinGetsItsReplyAndDoesNothing() throws {
    let (call, _, _) = try callOfTwo()
    stage.restart()
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    #expect(try alice.started(["bob"], join: 1).call.id == call)
    #expect(try alice.started(["bob"], join: 1).participant == 1)
    #expect(try bob.accept(call, join: 2).participant == 2)
    #expect(try bob.rejoin(call, join: 3).participant == 3)
    stage.restart()
    let again = stage.connect("bob")
    #expect(try again.rejoin(call, join: 3).participant == 3)
    #expect(stage.node.control.calls.count == 1)
  }

  @Test func aCallThatEndedHasEnded() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"], join: 1)
    #expect(alice.code(.call(call, .end)) == nil)
    #expect(stage.disk.isEmptyOfCalls)
    stage.restart()
    let again = stage.connect("alice")
    #expect(again.code(.call(call, .state)) == .callEnded)
    #expect(stage.connect("bob").code(.call(call, .accept(Join()))) == .callEnded)
    #expect(stage.connect("eve").code(.call(call, .state)) == .callNotFound)
    #expect(try again.started(["bob"], join: 1).call.id == call)
    #expect(stage.node.control.calls.isEmpty, "a repeated start makes no second call")
    _ = bob
  }

  @Test func theLogsCountsOutliveARestart() throws {
    let (call, alice, _) = try callOfTwo()
    stage.handle(.failures(call, 2))
    stage.handle(.failures(CallID(unchecked: "gone"), 1))
    stage.restart(after: .seconds(2))
    stage.handle(.failures(call, 1))
    stage.restart(after: .seconds(2))
    let tally = try #require(stage.node.callTallies.first)
    #expect(tally.call == call && tally.failures == 3 && tally.participants == 2)
    #expect(tally.members.map(\.user).contains(alice.user))
  }

  // MARK: how long it lasted

  @Test func aCallToWhichNobodyComesBackLastedUntilTheServerStopped() throws {
    let (call, _, _) = try callOfTwo()
    stage.advance(.seconds(60))
    let startedAt = try #require(stage.node.callSummaries.first).startedAt
    stage.noteRunning()
    let last = stage.now
    stage.advance(.seconds(3))
    stage.restart(after: .seconds(3_600))
    stage.advance(.seconds(700))
    let ended = try #require(stage.node.inspection(of: call)?.ended)
    #expect(ended.reason == .allLeft)
    #expect(ended.seconds == Int((last.milliseconds - startedAt.milliseconds) / 1_000))
  }

  @Test func someoneWhoComesBackAfterARestartIsCountedFurther() throws {
    let (call, _, _) = try callOfTwo()
    stage.noteRunning()
    let startedAt = try #require(stage.node.callSummaries.first).startedAt
    stage.restart(after: .seconds(5))
    let alice = stage.connect("alice")
    try alice.rejoin(call)
    stage.advance(.seconds(100))
    #expect(alice.code(.call(call, .end)) == nil)
    let ended = try #require(stage.node.inspection(of: call)?.ended)
    #expect(ended.seconds == Int((stage.now.milliseconds - startedAt.milliseconds) / 1_000))
  }

  @Test func theLastToBeThereIsKnownAfterARestart() throws {
    let (call, alice, bob) = try callOfTwo()
    let startedAt = try #require(stage.node.callSummaries.first).startedAt
    let carol = stage.connect("carol")
    _ = alice.ask(.call(call, .invite(Invite(callees: [carol.user]))))
    try carol.accept(call)
    for client in [alice, bob] { client.disconnect() }
    for client in [alice, bob] { try client.loseMedia(call, silence: .seconds(0)) }
    stage.advance(.seconds(50))
    #expect(carol.code(.call(call, .leave)) == nil)
    let last = stage.now
    stage.noteRunning()
    stage.restart(after: .seconds(10))
    stage.advance(.seconds(700))
    #expect(
      stage.node.inspection(of: call)?.ended?.seconds == Int((last.milliseconds - startedAt.milliseconds) / 1_000))
  }

  // MARK: what is written

  @Test func aJoinOfALargeCallIsAFewRecords() throws {
    // Without a join key the initiator is on no list, so that no epoch is led.
    let alice = stage.connect("alice")
    let clients = (0..<100).map { stage.connect("u\($0)") }
    let start = StartCall(id: .random, callees: clients.map(\.user), media: .audio)
    let call = try (alice.get(.start(start)) as Joined).call.id
    var most = 0
    for client in clients {
      let before = stage.disk.writes
      try client.accept(call)
      most = max(most, stage.disk.writes - before)
    }
    // A member, a number, progress, a mailbox, and in the history two parts and a stay.
    #expect(most <= 7)
    let before = stage.disk.writes
    stage.handle(.media(.speakers(call, [1])))
    try clients[3].connectMedia(call)
    #expect(stage.disk.writes == before, "media and speakers are not stored")
  }

  /// The list of a large call is not written again for each who comes or goes.
  @Test func anEpochOfALargeCallWritesTheEntriesThatDiffer() throws {
    let alice = stage.connect("alice")
    let others = (0..<60).map { stage.connect("u\($0)") }
    let dave = stage.connect("dave")
    let clients = Dictionary(uniqueKeysWithValues: (others + [dave]).map { ($0.device, $0) })
    let call = try alice.call(others.map(\.user.text), join: 1)
    /// How many entries the next epoch writes.
    func next() throws -> Int {
      let before = stage.entryWrites
      stage.advance(.milliseconds(300))
      let rotation = try #require(alice.events().rotations.last)
      _ = try alice.handOut(call, rotation.epoch, to: rotation.deliver?.compactMap { clients[$0.address] } ?? [])
      let newest = try #require(stage.node.control.calls[call]?.epochs.newest)
      #expect(newest.number == rotation.epoch)
      #expect(Set(try #require(stage.disk.call(call)).entries) == Set(newest.list))
      return stage.entryWrites - before
    }
    for other in others { try other.accept(call) }
    #expect(try next() == 60)
    #expect(alice.code(.call(call, .invite(Invite(callees: [dave.user])))) == nil)
    try dave.accept(call)
    #expect(try next() == 1)
    #expect(dave.code(.call(call, .leave)) == nil)
    #expect(try next() == 1)
  }

  @Test func historyIsWhatHappened() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    let start = stage.now
    let call = try alice.call(["bob", "carol"]) { $0.aloneSeconds = 0 }
    stage.advance(.seconds(1))
    try bob.accept(call)
    #expect(carol.code(.call(call, .decline(Decline()))) == nil)
    stage.advance(.seconds(5))
    #expect(bob.code(.call(call, .leave)) == nil)
    func part(_ client: Client, _ direction: HistoryEntry.Direction, _ outcome: HistoryEntry.Outcome?) -> HistoryFact {
      .part(call, client.user, name: client.user.text, direction, outcome)
    }
    let expected: [HistoryFact] = [
      .call(call, .video, startedAt: start), part(alice, .outgoing, nil), .came(call, alice.user, at: start),
      part(bob, .incoming, nil), part(carol, .incoming, nil), part(alice, .outgoing, .answered),
      part(bob, .incoming, .answered), .came(call, bob.user, at: start + .seconds(1)),
      part(carol, .incoming, .declined), .went(call, bob.user, at: start + .seconds(6)),
      .went(call, alice.user, at: start + .seconds(6)), .ended(call, at: start + .seconds(6)),
    ]
    #expect(Set(stage.disk.history) == Set(expected) && stage.disk.history.count == expected.count)
  }

  @Test func anUnansweredCallSaysHow() throws {
    for (outcome, seconds, decline) in [(HistoryEntry.Outcome.declined, 1, true), (.missed, 31, false)] {
      let stage = Stage()
      let alice = stage.connect("alice")
      let bob = stage.connect("bob")
      let call = try alice.call(["bob"])
      if decline { _ = bob.ask(.call(call, .decline(Decline()))) }
      stage.advance(.seconds(seconds))
      #expect(stage.disk.history.contains(.part(call, alice.user, name: "alice", .outgoing, outcome)))
      #expect(stage.disk.history.contains(.part(call, bob.user, name: "bob", .incoming, outcome)))
    }
  }

  // MARK: forgetting

  @Test func aForgottenUserIsGone() throws {
    let (call, alice, bob) = try callOfTwo()
    let carol = stage.connect("carol")
    _ = try alice.get(.call(call, .invite(Invite(callees: [carol.user])))) as InviteResults
    try carol.accept(call)
    _ = acknowledgeAll(alice)
    stage.handle(.forget(bob.user))
    #expect(stage.closed == [bob.session])
    #expect(alice.events().causes == [.left])
    #expect(try alice.state(call).members.map(\.user.text) == ["alice", "carol"])
    #expect(stage.connect("bob", keys: false).code(.call(call, .state)) == .callNotFound)
    let devices: Devices = try alice.get(.people(.listDevices(ListDevices(users: [bob.user]))))
    #expect(devices.devices.isEmpty)
    #expect(alice.code(.call(call, .end)) == nil)
    #expect(!stage.disk.history.contains { if case .part(_, bob.user, _, _, _) = $0 { true } else { false } })
    stage.restart()
    #expect(stage.node.storable == stage.disk.contents)
  }
}
