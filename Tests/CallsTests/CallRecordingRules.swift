@testable import PeopleMachine
@testable import CallMachine
@testable import Calls
import Contract
import MediaModel
import Testing

import CallMessages

/// The recording of a call (protocol section 13.7): who may begin one, what may be stored of whom, and how it ends.
struct CallRecordingRules {
  static let id = RecordingRules.id
  static let everything: [RecordedMedium] = [.audio, .video, .screen]

  let stage: Stage
  let call: CallID
  /// alice began the call, and is going to record it.
  let alice: Client
  let bob: Client
  let carol: Client
  /// dave has not answered yet.
  let dave: Client
  private let media = RecordedMedia()

  init() throws {
    stage = Stage { $0.records = .members }
    (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    (carol, dave) = (stage.connect("carol"), stage.connect("dave"))
    call = try alice.call(["bob", "carol", "dave"], join: 1) {
      $0.screens = 16
      $0.ringSeconds = 120
    }
    try bob.accept(call, join: 2)
    try carol.accept(call, join: 3)
    stage.advance(.milliseconds(100))
    _ = try alice.handOut(call, 2, to: [bob, carol])
    stage.advance(.seconds(3))
    for client in [alice, bob, carol] { #expect(client.sendEverything(call) == nil) }
    for client in [alice, bob, carol, dave] { _ = client.events() }
  }

  // MARK: steps

  private func start(_ change: (inout RecordingStatement) -> Void = { _ in }) -> RequestError.Code? {
    alice.code(.inCall(call, .startRecording(StartCallRecording(statement: alice.statement(call, change)))))
  }

  private func consent(_ client: Client, _ media: [RecordedMedium], erase: Bool? = nil) -> RequestError.Code? {
    client.code(
      .inCall(call, .consentToRecording(ConsentToRecording(recording: Self.id, media: media, erase: erase))))
  }

  private func export(_ client: Client, _ tracks: [UInt8], _ epoch: UInt32) -> RequestError.Code? {
    client.code(.inCall(call, .exportTrackKeys(Client.trackKeys(tracks, epoch))))
  }

  /// Lets the epoch come that a consent has called for; alice leads.
  private func nextEpoch(_ epoch: UInt32) throws {
    stage.advance(.seconds(2))
    try lead(epoch)
  }

  /// alice hands out the key of an epoch that was announced, and all devices have it.
  private func lead(_ epoch: UInt32) throws {
    let newest = try #require(stage.node.control.calls[call]?.epochs.newest)
    let envelopes = newest.list.map(\.address).filter { $0 != alice.device }.map { device in
      var envelope = alice.envelope(for: alice, epoch: epoch)
      envelope.to = device
      return envelope
    }
    let keys = HandOutKeys(epoch: epoch, envelopes: envelopes)
    _ = try alice.get(.inCall(call, .keys(keys)), as: KeysDelivered.self)
    #expect(try alice.state(call).epoch == epoch)
  }

  private func keys(_ epoch: UInt32, _ tracks: UInt8...) -> Set<RecordedPeer.Key> {
    Set(tracks.map { RecordedPeer.Key(epoch: epoch, track: $0) })
  }

  private func kept(_ participant: ParticipantNumber) -> Set<RecordedPeer.Key>? {
    media.fold(stage.takeRecorded())
    return media.peers[participant]?.keys
  }

  private func awaited(_ participant: ParticipantNumber) -> Set<RecordedPeer.Key>? {
    media.fold(stage.takeRecorded())
    return media.peers[participant]?.awaited
  }

  // MARK: what may be stored

  @Test(arguments: [
    (CallRecordingRules.everything, [1, 2, 3] as [UInt8]), ([.audio], [1]), ([.video], [2]), ([.screen], [3]),
    ([.audio, .screen], [1, 3]),
    ([], []),
  ])
  func onlyAgreedMediaAreStored(agreed: [RecordedMedium], tracks: [UInt8]) throws {
    #expect(start() == nil)
    #expect(consent(alice, Self.everything) == nil && consent(bob, agreed) == nil)
    try nextEpoch(3)
    for track in [1, 2, 3] as [UInt8] {
      #expect(export(bob, [track], 3) == (tracks.contains(track) ? nil : .recordingNotAllowed))
    }
    let expected = Set(tracks.map { RecordedPeer.Key(epoch: 3, track: $0) })
    #expect(kept(2) == (tracks.isEmpty ? nil : expected))
    #expect(awaited(2) == (tracks.isEmpty ? nil : []))
  }

  @Test func nothingIsStoredOfAPersonWhoDoesNotAnswer() throws {
    #expect(start() == nil)
    #expect(consent(bob, Self.everything) == nil)
    try nextEpoch(3)
    #expect(export(carol, [1], 3) == .recordingNotAllowed)
    #expect(kept(3) == nil && media.people.map(\.user) == [bob.user])
  }

  @Test func speechBeforeTheConsentStaysClosed() throws {
    #expect(start() == nil)
    #expect(consent(bob, Self.everything) == nil)
    #expect(export(bob, [1], 2) == .recordingNotAllowed)
    #expect(kept(2) == [] && awaited(2) == [], "nothing of epoch 2")
    try nextEpoch(3)
    #expect(awaited(2) == keys(3, 1, 2, 3), "it may still export these")
    #expect(export(bob, [1, 3], 3) == nil)
    #expect(kept(2) == keys(3, 1, 3) && awaited(2) == keys(3, 2))
  }

  @Test func aNarrowerConsentCountsAtOnceAndAWiderOneFromTheNextEpochOn() throws {
    #expect(start() == nil)
    #expect(consent(bob, Self.everything) == nil)
    try nextEpoch(3)
    #expect(export(bob, [1, 2, 3], 3) == nil)
    #expect(consent(bob, [.audio]) == nil)
    #expect(kept(2) == keys(3, 1), "the sound goes on under its key")
    #expect(consent(bob, [.audio, .video]) == nil)
    #expect(kept(2) == keys(3, 1), "the same key does not open pictures again")
    #expect(export(bob, [2], 3) == .recordingNotAllowed)
    try nextEpoch(4)
    #expect(export(bob, [1, 2], 4) == nil)
    #expect(kept(2) == keys(3, 1).union(keys(4, 1, 2)))
  }

  @Test(arguments: [false, true]) func aWithdrawalEndsItAtOnce(erases: Bool) throws {
    #expect(start() == nil)
    #expect(consent(bob, Self.everything) == nil)
    try nextEpoch(3)
    #expect(export(bob, [1, 2, 3], 3) == nil)
    _ = alice.events()
    #expect(consent(bob, [], erase: erases ? true : nil) == nil)
    #expect(kept(2) == [] && awaited(2) == [])
    #expect(media.erased == (erases ? [bob.user] : []))
    #expect(
      alice.events().contains(
        .recordingConsent(RecordingConsent(recording: Self.id, participant: 2, media: []))))
    try nextEpoch(4)
    #expect(export(bob, [1], 4) == .recordingNotAllowed && kept(2) == [])
    #expect(consent(bob, [.audio], erase: true) == .requestInvalid, "what goes on is not erased")
  }

  @Test func onlyTheNewestThreeEpochsAreStored() throws {
    #expect(start() == nil)
    #expect(consent(bob, [.audio]) == nil)
    for epoch: UInt32 in 3...6 {
      try nextEpoch(epoch)
      #expect(export(bob, [1], epoch) == nil)
      // The next one.
      #expect(consent(carol, epoch % 2 == 0 ? [] : [.audio]) == nil)
    }
    #expect(kept(2) == keys(4, 1).union(keys(5, 1)).union(keys(6, 1)))
  }

  @Test func aTrackThatBeginsLaterIsWaitedFor() throws {
    #expect(start() == nil)
    let sources: [String: TrackSource] = ["0": .microphone, "1": .camera, "2": .screen, "3": .screenAudio]
    #expect(consent(bob, [.audio, .screen]) == nil)
    try nextEpoch(3)
    #expect(awaited(2) == keys(3, 1, 3))
    let tracks = sources.sorted { $0.key < $1.key }.map { MediaRequest.Track(mid: $0.key, source: $0.value) }
    #expect(bob.offer(call, .sending(sources), tracks) == nil)
    #expect(awaited(2) == keys(3, 1, 3, 4), "the screen's sound belongs to the screen")
  }

  @Test func theMediaPlaneLearnsTheReelsOwnerAndWhenTheStayIsOver() throws {
    #expect(start() == nil)
    #expect(consent(bob, [.audio]) == nil)
    media.fold(stage.takeRecorded())
    #expect(media.people.map(\.participant) == [2] && media.people[0].joinId == joinId(2))
    #expect(media.people[0].keys == bob.keys && media.people[0].device == bob.device.device)
    #expect(media.began.map(\.statement.id) == [Self.id])
    let peer = try bob.peer(in: call)
    #expect(media.peers[2]?.peer == peer)
    #expect(bob.code(.call(call, .leave)) == nil)
    media.fold(stage.takeRecorded())
    #expect(media.gone == [peer] && media.peers.isEmpty)
  }

  // MARK: epochs

  @Test func consentsWithinTwoSecondsShareAnEpoch() throws {
    #expect(start() == nil)
    #expect(consent(alice, [.audio]) == nil)
    stage.advance(.milliseconds(1_000))
    #expect(consent(bob, [.audio]) == nil)
    stage.advance(.milliseconds(999))
    #expect(consent(carol, [.audio]) == nil)
    #expect(alice.events().rotations.isEmpty)
    stage.advance(.milliseconds(1))
    let rotate = try #require(alice.events().rotations.first)
    #expect(rotate.epoch == 3 && rotate.mode == .fresh, "clients refuse a ratchet without a newcomer")
    #expect(rotate.added == [] && rotate.removed == [] && rotate.deliver?.count == 2)
    try lead(3)
    stage.advance(.seconds(10))
    #expect(alice.events().rotations.isEmpty, "one for all three")
  }

  @Test func othersDoNotWaitForConsents() throws {
    #expect(start() == nil)
    #expect(consent(alice, [.audio]) == nil)
    stage.advance(.milliseconds(500))
    try dave.accept(call)
    stage.advance(.milliseconds(100))
    let rotations = alice.events().rotations
    #expect(rotations.map(\.epoch) == [3] && rotations.map(\.mode) == [.ratchet])
    try lead(3)
    stage.advance(.seconds(10))
    #expect(export(alice, [1], 3) == nil)
    #expect(alice.events().rotations.isEmpty, "the consent went into the same epoch")
  }

  @Test func anAnswerThatChangesNothingCallsForNoEpoch() throws {
    #expect(start() == nil)
    #expect(consent(bob, []) == nil, "declined")
    stage.advance(.seconds(10))
    #expect(alice.events().rotations.isEmpty)
    #expect(consent(bob, [.audio]) == nil)
    try nextEpoch(3)
    _ = alice.events()
    #expect(consent(bob, [.audio]) == nil, "again")
    stage.advance(.seconds(10))
    #expect(alice.events().isEmpty)
  }

  @Test func consentChangesTenTimesAMinute() throws {
    #expect(start() == nil)
    for time in 0..<10 { #expect(consent(bob, time % 2 == 0 ? [.audio] : []) == nil) }
    #expect(consent(bob, [.audio]) == .rateLimited)
    #expect(consent(bob, []) == nil, "that is its answer already")
    #expect(consent(carol, [.audio]) == nil)
    stage.advance(.seconds(60))
    #expect(consent(bob, [.audio]) == nil)
  }

  // MARK: the starter's word

  @Test func theStartersWordForAnEpochGoesToThoseWhoAgreed() throws {
    #expect(start() == nil)
    #expect(consent(bob, [.audio]) == nil)
    try nextEpoch(3)
    for client in [alice, bob, carol] { _ = client.events() }
    // It sends nothing, and records.
    #expect(export(alice, [], 3) == nil)
    let word = RecordingRuns(Client.trackKeys([], 3), by: 1)
    #expect(bob.events() == [.recordingRuns(word)])
    #expect(carol.events().isEmpty && alice.events().isEmpty)
    #expect(try bob.state(call).recording?.running == word)
    #expect(export(bob, [], 3) == .requestInvalid, "only the starter has a word to give")
    #expect(export(alice, [], 3) == nil)
    #expect(bob.events().isEmpty, "one for an epoch")
    #expect(consent(alice, [.audio]) == nil)
    try nextEpoch(4)
    _ = bob.events()
    #expect(export(alice, [1], 4) == nil)
    #expect(bob.events() == [.recordingRuns(RecordingRuns(Client.trackKeys([1], 4), by: 1))])
    #expect(kept(1) == keys(4, 1))
  }

  @Test func trackKeysAreOfOwnTracksAndOfTheirSize() throws {
    #expect(start() == nil)
    #expect(consent(bob, Self.everything) == nil)
    try nextEpoch(3)
    #expect(export(bob, [4], 3) == .recordingNotAllowed, "no such track")
    #expect(export(bob, [2, 1], 3) == .requestInvalid)
    #expect(export(bob, [1, 1], 3) == .requestInvalid)
    #expect(export(bob, [0], 3) == .requestInvalid, "0 is for messages")
    #expect(export(bob, [1], 4) == .keysNotAllowed)
    #expect(export(bob, [1], 1) == .keysEpochStale)
    var keys = Client.trackKeys([1], 3)
    keys.ciphertext.bytes.append(0)
    #expect(bob.code(.inCall(call, .exportTrackKeys(keys))) == .requestInvalid)
    keys = Client.trackKeys([1], 3)
    keys.recording = RecordingID([UInt8](repeating: 8, count: 16))!
    #expect(bob.code(.inCall(call, .exportTrackKeys(keys))) == .recordingNotFound)
    media.fold(stage.takeRecorded())
    #expect(media.exported.isEmpty)
    #expect(export(bob, [1], 3) == nil && export(bob, [1], 3) == nil && export(bob, [1, 2], 3) == nil)
    media.fold(stage.takeRecorded())
    #expect(media.exported.map(\.tracks) == [[1], [1, 2]], "the same keys are stored once")
    let list: KeyList = try bob.get(.inCall(call, .listKeys(ListKeys())))
    #expect(media.exported.allSatisfy { $0.participant == 2 && $0.listHash == list.listHash })
  }

  @Test func keysOfTheEpochInUseAreTakenWhileTheNextIsAnnounced() throws {
    #expect(start() == nil)
    #expect(consent(bob, [.audio]) == nil)
    try nextEpoch(3)
    #expect(consent(carol, [.audio]) == nil)
    stage.advance(.seconds(2))
    #expect(try alice.state(call).epoch == 3 && alice.events().rotations.last?.epoch == 4)
    #expect(export(bob, [1], 3) == nil && export(bob, [1], 4) == nil)
    #expect(kept(2) == keys(3, 1).union(keys(4, 1)))
  }

  // MARK: people who come and go

  @Test func aLateJoinerIsAsked() throws {
    #expect(start() == nil)
    #expect(consent(bob, [.audio]) == nil)
    let recording = try #require(try dave.accept(call).call.recording)
    #expect(recording.statement == alice.statement(call) && recording.running == nil)
    #expect(recording.consents == [.init(participant: 2, media: [.audio])])
    stage.advance(.milliseconds(300))
    try lead(3)
    #expect(dave.sendEverything(call) == nil && consent(dave, [.video]) == nil)
    try nextEpoch(4)
    #expect(export(dave, [2], 4) == nil)
    #expect(kept(4) == keys(4, 2))
  }

  @Test func aGuestIsRecordedIfItAgreesAndRecordsNobody() throws {
    #expect(start() == nil)
    let link = try alice.get(.call(call, .link(MakeLink())), as: CallLink.self).link
    let ana = stage.connect("guest~ana", "guest", guestOf: call)
    #expect(ana.code(.call(call, .join(ana.join(link: link)))) == nil)
    stage.advance(.milliseconds(300))
    try lead(3)
    #expect(ana.sendEverything(call) == nil && consent(ana, [.audio]) == nil)
    try nextEpoch(4)
    #expect(export(ana, [1], 4) == nil)
    #expect(kept(4) == keys(4, 1))
    #expect(ana.code(.inCall(call, .stopRecording(StopCallRecording(recording: Self.id)))) == .authForbidden)
    let other = StartCallRecording(statement: ana.statement(call))
    #expect(ana.code(.inCall(call, .startRecording(other))) == .authForbidden)
  }

  @Test func aParticipantThatRejoinsAgreesAgain() throws {
    #expect(start() == nil)
    #expect(consent(bob, [.audio]) == nil)
    try nextEpoch(3)
    #expect(export(bob, [1], 3) == nil)
    let peer = try bob.peer(in: call)
    let again = try bob.rejoin(call, join: 9)
    #expect(again.participant == 4 && again.call.recording?.consents == [])
    media.fold(stage.takeRecorded())
    #expect(media.gone == [peer])
    stage.advance(.milliseconds(300))
    try lead(4)
    #expect(bob.sendEverything(call) == nil)
    #expect(export(bob, [1], 4) == .recordingNotAllowed)
    #expect(consent(bob, [.audio]) == nil)
    try nextEpoch(5)
    #expect(export(bob, [1], 5) == nil)
    #expect(kept(4) == keys(5, 1), "a reel of its own")
  }

  @Test func theOtherDeviceOfATransferIsAsked() throws {
    #expect(start() == nil)
    #expect(consent(bob, [.audio]) == nil)
    try nextEpoch(3)
    let peer = try bob.peer(in: call)
    let laptop = stage.connect("bob", "laptop")
    try laptop.transfer(call)
    #expect(try alice.state(call).recording?.consents == [.init(participant: 2, media: [.audio])])
    try laptop.connectMedia(call)
    media.fold(stage.takeRecorded())
    #expect(media.gone == [peer] && media.peers.isEmpty)
    #expect(try alice.state(call).recording?.consents == [])
  }

  @Test func aDeviceWithoutKeysIsNeverRecorded() throws {
    #expect(start() == nil)
    let tablet = stage.connect("dave", "tablet", keys: false)
    _ = try tablet.get(.call(call, .accept(Join(joinId: joinId(8)))), as: Joined.self)
    #expect(consent(tablet, [.audio]) == .keysNotAllowed)
    #expect(export(tablet, [1], 2) == .keysNotAllowed)
    let statement = StartCallRecording(
      statement: tablet.statement(call) { $0.id = RecordingID([UInt8](repeating: 8, count: 16))! })
    #expect(alice.code(.inCall(call, .stopRecording(StopCallRecording(recording: Self.id)))) == nil)
    #expect(tablet.code(.inCall(call, .startRecording(statement))) == .keysNotAllowed)
  }

  @Test func aHeldParticipantStaysAgreed() throws {
    #expect(start() == nil)
    #expect(consent(bob, [.audio]) == nil)
    try nextEpoch(3)
    #expect(export(bob, [1], 3) == nil)
    #expect(bob.code(.call(call, .hold(Hold(held: true)))) == nil)
    #expect(kept(2) == keys(3, 1))
    #expect(stage.takeMedia().contains { if case .hold(_, true) = $0 { true } else { false } })
  }

  // MARK: who may, and what a statement says

  @Test func oneRecordingAtATime() throws {
    #expect(start() == nil)
    #expect(
      bob.events() == [
        .recordingStarted(RecordingStarted(statement: alice.statement(call), since: stage.now))
      ])
    #expect(start() == nil, "the same again")
    #expect(bob.events().isEmpty)
    let other = StartCallRecording(
      statement: bob.statement(call) { $0.id = RecordingID([UInt8](repeating: 8, count: 16))! })
    #expect(bob.code(.inCall(call, .startRecording(other))) == .recordingBusy)
  }

  @Test(arguments: [
    (Policy.Record?.none, Policy.Record?.none, RequestError.Code.recordingUnavailable),
    (nil, .members, .recordingUnavailable), (.nobody, .members, .recordingNotAllowed),
    (.members, .nobody, .recordingNotAllowed), (.members, .initiator, .recordingNotAllowed),
    (.initiator, nil, .recordingNotAllowed), (.initiator, .members, .recordingNotAllowed),
  ])
  func serverAndPolicyDecideWhoRecords(
    server: Policy.Record?, policy: Policy.Record?, others: RequestError.Code
  ) throws {
    let stage = Stage { $0.records = server }
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    let call = try alice.call(["bob"], join: 1) { $0.record = policy }
    try bob.accept(call, join: 2)
    stage.advance(.milliseconds(100))
    _ = try alice.handOut(call, 2, to: [bob])
    stage.advance(.seconds(3))
    func code(_ client: Client) -> RequestError.Code? {
      client.code(.inCall(call, .startRecording(StartCallRecording(statement: client.statement(call)))))
    }
    #expect(code(bob) == others)
    let isInitiators = [server, policy].contains(.initiator) && ![server, policy].contains(.nobody) && server != nil
    #expect(code(alice) == (isInitiators ? nil : others))
    #expect(try alice.state(call).policy.record == policy)
  }

  @Test func aStatementNamesThisCallAndIsSigned() throws {
    let changes: [(String, (inout RecordingStatement) -> Void)] = [
      ("kind", { $0.kind = .own }), ("call", { $0.call = .random }), ("call", { $0.call = nil }),
      ("by", { $0.by = bob.device }), ("media", { $0.media = [] }), ("media", { $0.media = [.audio, .audio] }),
      ("readers", { $0.readers = (0..<65).map { UserID(unchecked: "u\($0)") } }),
      ("readers", { $0.readers = [bob.user, bob.user] }), ("publicKey", { $0.publicKey.bytes.removeLast() }),
    ]
    for (field, change) in changes {
      let statement = StartCallRecording(statement: alice.statement(call, change))
      let error = alice.error(.inCall(call, .startRecording(statement)))
      #expect(error?.code == .requestInvalid && error?.field == "statement.\(field)")
    }
    var statement = alice.statement(call)
    statement.readers.append(carol.user)
    let error = alice.error(.inCall(call, .startRecording(StartCallRecording(statement: statement))))
    #expect(error?.field == "statement.signature")
    #expect(bob.events().isEmpty && stage.takeRecorded().isEmpty)
  }

  @Test func aDeviceRecordsOnceItIsOnTheListInUse() throws {
    try dave.accept(call)
    let statement = StartCallRecording(statement: dave.statement(call))
    #expect(dave.code(.inCall(call, .startRecording(statement))) == .keysNotAllowed)
    stage.advance(.milliseconds(300))
    #expect(dave.code(.inCall(call, .startRecording(statement))) == .keysNotAllowed, "announced, not switched to")
    try lead(3)
    #expect(dave.code(.inCall(call, .startRecording(statement))) == nil)
  }

  @Test func mediaThatTheStatementDoesNotNameAreNotRecorded() throws {
    #expect(start { $0.media = [.audio] } == nil)
    #expect(consent(bob, [.audio, .video]) == .requestInvalid)
    #expect(consent(bob, [.audio, .audio]) == .requestInvalid)
    #expect(consent(bob, [.audio]) == nil)
  }

  // MARK: the end

  @Test func theStarterAndTheInitiatorStopIt() throws {
    let statement = StartCallRecording(statement: bob.statement(call))
    #expect(bob.code(.inCall(call, .startRecording(statement))) == nil)
    #expect(consent(carol, [.audio]) == nil)
    try nextEpoch(3)
    let stop = Request.inCall(call, .stopRecording(StopCallRecording(recording: Self.id)))
    #expect(carol.code(stop) == .recordingNotAllowed)
    _ = carol.events()
    #expect(alice.code(stop) == nil)
    #expect(carol.events() == [.recordingStopped(RecordingStopped(recording: Self.id, reason: .stopped))])
    media.fold(stage.takeRecorded())
    #expect(media.ended == [Self.id])
    #expect(try alice.state(call).recording == nil)
    #expect(alice.code(stop) == .recordingEnded && consent(carol, [.audio]) == .recordingEnded)
    #expect(bob.code(.inCall(call, .startRecording(statement))) == .recordingEnded, "with the same id")
    stage.advance(.seconds(2))
    #expect(alice.events().rotations.last?.epoch == 4, "nothing that follows can be opened")
  }

  @Test func aStopBeforeAnyConsentCallsForNoEpoch() throws {
    #expect(start() == nil)
    #expect(alice.code(.inCall(call, .stopRecording(StopCallRecording(recording: Self.id)))) == nil)
    stage.advance(.seconds(10))
    #expect(alice.events().rotations.isEmpty)
  }

  @Test func itEndsWhenItsStarterLeaves() throws {
    #expect(start() == nil)
    _ = bob.events()
    #expect(alice.code(.call(call, .leave)) == nil)
    #expect(bob.events().contains(.recordingStopped(RecordingStopped(recording: Self.id, reason: .starterLeft))))
  }

  @Test func itEndsWhenItsStarterMovesToAnotherDevice() throws {
    #expect(start() == nil)
    let laptop = stage.connect("alice", "laptop")
    try laptop.transfer(call)
    #expect(try bob.state(call).recording != nil)
    try laptop.connectMedia(call)
    #expect(try bob.state(call).recording == nil)
  }

  @Test func itWaitsForAStarterThatIsDisconnected() throws {
    #expect(start() == nil)
    #expect(consent(alice, [.audio]) == nil)
    alice.disconnect()
    stage.advance(.seconds(20))
    #expect(try bob.phase(of: "alice", in: call) == .disconnected)
    #expect(try bob.state(call).recording?.consents == [])
    let again = stage.connect("alice", keys: false)
    try again.rejoin(call, join: 9)
    #expect(try bob.state(call).recording?.statement == alice.statement(call))
    again.disconnect()
    stage.advance(.seconds(15 + 300))
    #expect(try bob.state(call).recording == nil, "it has left")
  }

  @Test func itEndsWithTheCall() throws {
    #expect(start() == nil)
    _ = bob.events()
    #expect(alice.code(.call(call, .end)) == nil)
    #expect(bob.names() == [.recordingStopped, .callEnded])
    media.fold(stage.takeRecorded())
    #expect(media.ended == [Self.id])
  }

  @Test(arguments: [RecordingStopped.Reason.diskFull, .quota, .unavailable])
  func itEndsWhenTheStoreTakesNoMore(reason: RecordingStopped.Reason) throws {
    #expect(start() == nil)
    _ = bob.events()
    stage.handle(.recordingFailed(call, RecordingID([UInt8](repeating: 8, count: 16))!, reason))
    stage.handle(.recordingFailed(.random, Self.id, reason))
    #expect(bob.events().isEmpty)
    stage.handle(.recordingFailed(call, Self.id, reason))
    #expect(bob.events() == [.recordingStopped(RecordingStopped(recording: Self.id, reason: reason))])
  }

  // MARK: a restart

  @Test func aRestartKeepsTheRecordingAndNoConsent() throws {
    #expect(start() == nil)
    #expect(consent(bob, [.audio]) == nil)
    try nextEpoch(3)
    #expect(export(bob, [1], 3) == nil)
    media.fold(stage.takeRecorded())
    stage.restart()
    let again = stage.connect("bob", keys: false)
    let recording = try #require(try again.state(call).recording)
    #expect(recording.statement == alice.statement(call) && recording.consents == [])
    #expect(stage.node.recordings == [Self.id: call])
    stage.advance(.milliseconds(500))
    #expect(stage.takeRecorded().isEmpty, "nothing is stored of anybody")
    let starter = stage.connect("alice", keys: false)
    #expect(starter.code(.inCall(call, .stopRecording(StopCallRecording(recording: Self.id)))) == nil)
    stage.restart()
    #expect(stage.node.recordings.isEmpty)
    let late = stage.connect("alice", keys: false)
    let statement = StartCallRecording(statement: alice.statement(call))
    #expect(late.code(.inCall(call, .startRecording(statement))) == .recordingEnded)
  }
}

/// The knowledge of the store and the media plane.
final class RecordedMedia {
  private(set) var began: [StartCallRecording] = []
  private(set) var people: [RecordedPerson] = []
  private(set) var peers: [ParticipantNumber: RecordedPeer] = [:]
  private(set) var exported: [TrackKeys] = []
  private(set) var gone: [PeerID] = []
  private(set) var erased: [UserID] = []
  private(set) var ended: [RecordingID] = []

  func fold(_ changes: [CallRecordingChange]) {
    for change in changes {
      switch change {
      case .began(let body, _): began.append(body)
      case .joined(let person, _): people.append(person)
      case .keeps(let peer): peers[peer.participant] = peer
      case .exported(let keys, _): exported.append(keys)
      case .went(_, let peer):
        gone.append(peer)
        peers = peers.filter { $0.value.peer != peer }
      case .erased(_, let user): erased.append(user)
      case .ended(let id): ended.append(id)
      }
    }
  }
}

extension Client {
  /// This device's statement that it records the call.
  func statement(_ call: CallID, _ change: (inout RecordingStatement) -> Void = { _ in }) -> RecordingStatement {
    var statement = RecordingStatement(
      id: CallRecordingRules.id, kind: .call, call: call, publicKey: Base64Bytes([UInt8](repeating: 4, count: 91)),
      media: CallRecordingRules.everything, readers: [user], at: Stage.start, by: device, sigAlg: "ES256",
      signature: Base64Bytes([]))
    change(&statement)
    if let entry = stage.node.people.directory[device]?.entry { statement.sign(entry, digest: Stage.digest) }
    return statement
  }

  static func trackKeys(_ tracks: [UInt8], _ epoch: UInt32) -> ExportTrackKeys {
    .of(tracks, CallRecordingRules.id, epoch)
  }

  /// Sends a microphone, a camera and a screen: tracks 1 to 3.
  func sendEverything(_ call: CallID) -> RequestError.Code? {
    let sources: [String: TrackSource] = ["0": .microphone, "1": .camera, "2": .screen]
    let tracks = sources.sorted { $0.key < $1.key }.map { MediaRequest.Track(mid: $0.key, source: $0.value) }
    return offer(call, .sending(sources), tracks)
  }
}
