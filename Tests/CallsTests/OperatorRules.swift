@testable import PeopleMachine
@testable import Calls
import Contract
import JSON
import MediaModel
import Testing

import CallMessages

/// The operator's commands, and the information that an operator gets.
struct OperatorRules {
  let stage = Stage()

  private func states(_ call: CallID) -> [String: MemberPhase] {
    let members = stage.node.inspection(of: call)?.members ?? []
    return Dictionary(uniqueKeysWithValues: members.map { ($0.user.text, $0.state) })
  }

  private var keyless: [ParticipantNumber: KeyState] {
    stage.takeOthers().reduce(into: [:]) {
      if case .keyless(_, let participant, let state) = $1 { $0[participant] = state }
    }
  }

  @Test func anEndedCallIsOverForAllAndKnownForItsReason() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    let call = try alice.call(["bob"])
    try bob.accept(call)
    #expect(stage.node.callSummaries.map(\.joined) == [2])
    stage.handle(.end(call))
    #expect(stage.node.callSummaries.isEmpty)
    #expect(stage.node.inspection(of: call)?.ended?.reason == .endedByOperator)
    #expect(stage.node.inspection(of: call)?.ended?.by == nil)
    stage.handle(.end(call))
    #expect(stage.node.isIdle)
  }

  /// The query may go to another server, so query and answer are JSON.
  @Test func inquiriesAndTheirAnswersAreReadAsTheyWereWritten() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    let over = try alice.call(["bob"])
    stage.handle(.end(over))
    let call = try alice.call(["bob"])
    try bob.accept(call)
    let inquiries: [Inquiry] = [
      .calls(.counts), .calls(.summaries), .calls(.inspection(call)), .calls(.inspection(over)),
      .calls(.inspection(CallID(unchecked: "none"))), .calls(.admitsGuest(link: "link", call)), .calls(.runs(call)),
      .people(.connectedUsers), .people(.isPresent(alice.user)), .people(.lastingLinksOf(alice.user)),
    ]
    for inquiry in inquiries {
      #expect(try JSONCoding.decode(Inquiry.self, from: try JSONCoding.encode(inquiry)) == inquiry)
      let answer = try JSONCoding.encode(stage.node.answer(inquiry, now: stage.now))
      let read = try JSONCoding.decode(InquiryAnswer.self, from: answer)
      #expect(try JSONCoding.encode(read) == answer, "\(inquiry)")
    }
    #expect(stage.node.counts == (1, 2))
    #expect(stage.node.inspection(of: over)?.ended != nil && stage.node.inspection(of: call)?.summary != nil)
  }

  @Test func membersAreToldThatAnOperatorEndedTheCall() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    let call = try alice.call(["bob"])
    try bob.accept(call)
    stage.advance(.seconds(3))
    stage.handle(.end(call))
    for device in [alice, bob] {
      #expect(device.events().ended == Ended(reason: .endedByOperator, by: nil, seconds: 3))
    }
  }

  @Test func aDisconnectedUserLeavesItsCallsAndKeepsItsDevices() throws {
    let (alice, bob, carol) = (stage.connect("alice"), stage.connect("bob"), stage.connect("carol"))
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    try carol.accept(call)
    stage.handle(.disconnectUser(bob.user))
    #expect(stage.closed == [bob.session])
    #expect(states(call) == ["alice": .joined, "bob": .left, "carol": .joined])
    #expect(stage.node.connectedUsers.map(\.user.text).sorted() == ["alice", "carol"])
    #expect(!stage.node.isPresent(bob.user) && stage.node.isPresent(alice.user))
    #expect(stage.node.people.directory.hasKeys(bob.user))
    stage.handle(.disconnectUser(bob.user))
    stage.handle(.disconnectUser(UserID(unchecked: "stranger")))
    #expect(stage.closed == [bob.session])
    _ = stage.connect("bob")
    #expect(stage.node.isPresent(bob.user))
  }

  @Test func aRingThatNobodyAnsweredYetOutlivesTheCalleesConnection() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    let call = try alice.call(["bob"])
    stage.handle(.disconnectUser(bob.user))
    #expect(states(call) == ["alice": .joined, "bob": .ringing])
  }

  @Test func aParticipantThatGoesWithoutTheKeyIsTold() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    let call = try alice.call(["bob"])
    try bob.accept(call)
    // Alice's device is asked for epoch 2, and makes no key.
    stage.advance(.seconds(1))
    let shown = stage.node.inspection(of: call)?.members.flatMap(\.participants) ?? []
    #expect(shown.last?.key == .missing && shown.last?.media == .never && shown.last?.signaling == true)
    _ = keyless
    _ = bob.ask(.call(call, .leave))
    #expect(keyless == [2: .missing])
  }

  private func shown(_ call: CallID) -> [CallInspection.Participant] {
    stage.node.inspection(of: call)?.members.flatMap(\.participants) ?? []
  }

  @Test func theLastNumbersOfAParticipantsQualityAreShown() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    let call = try alice.call(["bob"])
    try bob.accept(call)
    #expect(shown(call).map(\.quality) == [ParticipantQuality(), ParticipantQuality()])
    _ = alice.ask(.inCall(call, .stats(QualityNumbers(rtt: 20, loss: 0.5, firstFrameMs: 300))))
    stage.advance(.seconds(5))
    let told = stage.now
    _ = alice.ask(.inCall(call, .stats(QualityNumbers(rtt: 40, jitter: 3))))
    stage.handle(.media(.quality(try alice.peer(in: call), level: 2, bitrate: 90_000)))
    stage.advance(.seconds(2))
    stage.handle(.media(.quality(try alice.peer(in: call), level: 9, bitrate: 900_000)))
    let quality = shown(call)[0].quality
    #expect(quality.numbers == QualityNumbers(rtt: 40, loss: 0.5, jitter: 3, firstFrameMs: 300))
    #expect(quality.toldAt == told && quality.judgedAt == stage.now)
    #expect(quality.level == 4 && quality.bitrate == 900_000, "the newest, within its bounds")
    #expect(shown(call)[1].quality == ParticipantQuality())
    #expect(alice.code(.inCall(call, .stats(QualityNumbers(rtt: -1)))) == .requestInvalid)
    #expect(shown(call)[0].quality == quality, "a refused report changes nothing")
    try alice.rejoin(call)
    #expect(shown(call).map(\.quality) == [ParticipantQuality(), ParticipantQuality()], "another participant")
  }

  @Test func sinceWhenMediaFlowsAndHowManyTracksComeIsShown() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    let call = try alice.call(["bob"])
    try bob.accept(call)
    let peer = try bob.peer(in: call)
    #expect(shown(call)[1].media == .never && shown(call)[1].mediaSince == nil)
    stage.advance(.seconds(1))
    let connected = stage.now
    stage.handle(.media(.connected(peer)))
    stage.advance(.seconds(3))
    // Said again, for a new path.
    stage.handle(.media(.connected(peer)))
    #expect(shown(call)[1].media == .up && shown(call)[1].mediaSince == connected)
    let slot = SlotAssignment(mid: "3", track: TrackID(participant: 1, index: 1), source: .camera)
    stage.handle(.media(.configured(peer, request: 1, SlotMap(revision: 1, slots: [slot], unsupported: []))))
    #expect(shown(call)[1].quality.receives == 1 && shown(call)[0].quality.receives == nil)
    stage.handle(.media(.slots(peer, SlotMap(revision: 2, slots: [], unsupported: []))))
    #expect(shown(call)[1].quality.receives == 0)
    stage.advance(.seconds(20))
    stage.handle(.media(.disconnected(peer, silence: .seconds(10))))
    #expect(shown(call)[1].media == .gone && shown(call)[1].mediaSince == stage.now - .seconds(10))
  }

  @Test func aParticipantAloneHasItsOwnKey() throws {
    let alice = stage.connect("alice")
    let call = try alice.call([])
    _ = alice.ask(.call(call, .leave))
    #expect(keyless.isEmpty)
  }
}
