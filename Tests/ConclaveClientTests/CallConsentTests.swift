import Contract
import Crypto
import MediaModel
import Octets
import Recording
import SFrame
import Testing

@testable import ConclaveClient

/// Consent to a recording: whatever the server says, a key leaves a device only for what its person agreed to, in epochs announced afterwards, with the starter's word
/// for exactly that epoch. The numbers are those of the table of lies in the design of recordings.
struct CallConsentTests {
  /// Alice and Bob in a call, and Alice's recording of it.
  private struct Stage {
    var world = KeyWorld.pair
    var consents: [String: CallConsent] = ["alice": CallConsent(), "bob": CallConsent()]
    var used: [String: UsedRecordings] = ["alice": UsedRecordings(), "bob": UsedRecordings()]
    var tracks: [UInt8: MediaSource] = [1: .microphone, 2: .camera]
    var exports: [String: [ExportTrackKeys]] = [:]
    var answers: [String: [ConsentToRecording]] = [:]
    var refused: [String: [RecordingProblem]] = [:]
    var withheld: [String: Set<UInt8>] = [:]
    var isConnected = true
    var generator = SplitMix64(seed: 5)
    let key: RecordingKey
    let statement: SignedStatement
    var id: RecordingID { statement.id }

    init() {
      key = RecordingKey(using: &generator)
      let alice = world.members["alice"]!.agreement.own.identity
      statement = SignedStatement(
        signing: RecordingStatement(
          id: RecordingWriter.id(using: &generator)!, kind: .call, call: KeyWorld.call,
          publicKey: Base64Bytes(key.publicKey), media: [.audio, .video], readers: [UserID("alice")!],
          at: KeyWorld.clock, by: alice.address, sigAlg: "", signature: Base64Bytes([])), by: alice)
    }

    var started: RecordingStarted { RecordingStarted(statement: statement.statement, since: KeyWorld.clock) }

    func facts(_ name: String) -> CallConsent.Facts {
      world.members[name]!.agreement.recordingFacts(
        tracks: tracks, isConnected: isConnected, clock: KeyWorld.clock, now: world.now)
    }

    mutating func settle(_ name: String) {
      let facts = facts(name)
      for effect in consents[name]!.settle(facts, used: &used[name]!) {
        switch effect {
        case .request(.exportTrackKeys(let keys)): exports[name, default: []].append(keys)
        case .request(.consentToRecording(let body)): answers[name, default: []].append(body)
        case .request: break
        case .withhold(let tracks): withheld[name] = tracks
        case .refused(let problem): refused[name, default: []].append(problem)
        }
      }
    }

    /// Alice begins, and everybody is told.
    mutating func begin() {
      consents["alice"]!.begin(id)
      for name in ["alice", "bob"] {
        consents[name]!.started(started)
        settle(name)
      }
    }

    /// The person answers, and the server takes it.
    mutating func answer(_ name: String, _ media: Set<RecordedMedium>, epoch: UInt32? = nil) {
      let facts = facts(name)
      _ = consents[name]!.answer(media, to: id, erase: false, facts)
      consents[name]!.answered(media, epoch: epoch ?? world.epoch, facts)
      settle(name)
    }

    /// The next epoch, without envelopes, and the starter's word for it.
    mutating func turn(word: Bool = true) {
      world.rotate(["alice", "bob"], mode: .fresh, leader: "alice")
      settle("alice")
      if word, let last = exports["alice"]?.last {
        consents["bob"]!.note(RecordingRuns(last, by: world.members["alice"]!.entry.participant))
      }
      settle("bob")
    }

    func shown(_ name: String) -> CallRecordingInfo? { consents[name]!.shown(facts(name)) }

    /// The keys of a sender, as a reader gets them.
    func opened(_ keys: ExportTrackKeys, of name: String) -> [UInt8: FrameSecret]? {
      let member = world.members[name]!
      let listHash = world.hashes[keys.epoch]!
      let stored = TrackKeys(keys, of: member.entry.participant, listHash: Base64Bytes(listHash))
      let scope = TrackKeyScope(
        epoch: keys.epoch, listHash: listHash, participant: member.entry.participant,
        fingerprint: member.entry.fingerprint.bytes, joinId: member.entry.joinId!.bytes)
      return stored.opened(
        scope, of: statement, with: key, from: RecordingSigner(member.agreement.own.identity))
    }
  }

  @Test func aKeyIsHandedOutForWhatWasAgreedTo() throws {
    var stage = Stage()
    stage.begin()
    #expect(stage.shown("bob")?.answer == nil && stage.shown("bob")?.user == "alice")
    stage.answer("alice", [.audio, .video])
    stage.answer("bob", [.audio])
    #expect(stage.exports["bob"] == nil, "not for the epoch in use: what was said in it stays closed")
    #expect(stage.shown("bob")?.awaited == [.microphone])
    stage.turn()
    let keys = try #require(stage.exports["bob"])
    #expect(keys.count == 1 && keys[0].tracks == [1] && keys[0].epoch == 3)
    #expect(stage.shown("bob")?.exported == [.microphone] && stage.shown("bob")?.awaited == [])
    // They open this track's frames, and no other's.
    let secrets = try #require(stage.opened(keys[0], of: "bob"))
    #expect(Set(secrets.keys) == [1])
    let frame = try stage.world.seal("hello", from: "bob", track: 1)
    let id = FrameKeyID(participant: 2, track: 1, epoch: 3).rawValue
    var context = ReceiverContext(keyID: id, secret: try #require(secrets[1]))
    #expect(try context.decrypt(frame) == Array("hello".utf8))
    let other = try stage.world.seal("hello", from: "bob", track: 2)
    let otherID = FrameKeyID(participant: 2, track: 2, epoch: 3).rawValue
    var wrong = ReceiverContext(keyID: otherID, secret: try #require(secrets[1]))
    #expect(throws: SFrameError.authenticationFailed) { try wrong.decrypt(other) }
    // Alice's word is her keys.
    let words = try #require(stage.exports["alice"])
    #expect(words.map(\.tracks) == [[], [1, 2]] && words.map(\.epoch) == [2, 3])
    #expect(stage.opened(words[1], of: "alice")?.count == 2)
  }

  @Test func withoutAnAnswerNothingLeaves() {
    var stage = Stage()
    stage.begin()
    stage.turn()
    stage.answer("bob", [])
    stage.turn()
    #expect(stage.exports["bob"] == nil && stage.shown("bob")?.answer == [])
  }

  /// A track that begins later in the epoch gets a further envelope, and only once.
  @Test func aLaterTrackIsAdded() {
    var stage = Stage()
    stage.tracks = [1: .microphone]
    stage.begin()
    stage.answer("bob", [.audio, .video])
    stage.turn()
    stage.tracks[2] = .camera
    stage.tracks[3] = .screen
    stage.settle("bob")
    stage.settle("bob")
    #expect(stage.exports["bob"]?.map(\.tracks) == [[1], [2]], "a screen was not agreed to")
  }

  /// 1 and 2: another key, other readers, more media; a device that is not on the list, or has another key.
  @Test func aForgedRequestIsNotShown() throws {
    let changes: [(inout RecordingStatement) -> Void] = [
      { $0.publicKey = Base64Bytes(Array(P256.KeyAgreement.PrivateKey().publicKey.derRepresentation)) },
      { $0.readers.append(UserID("mallory")!) }, { $0.media.append(.screen) }, { $0.call = CallID("another")! },
      { $0.by = Device(user: UserID("bob")!, device: DeviceID("phone")!) }, { $0.kind = .message },
    ]
    for (place, change) in changes.enumerated() {
      var stage = Stage()
      var statement = stage.statement.statement
      change(&statement)
      stage.consents["bob"]!.started(RecordingStarted(statement: statement, since: KeyWorld.clock))
      stage.settle("bob")
      #expect(stage.refused["bob"] == [.notSigned] && stage.shown("bob") == nil, "change \(place)")
      // It is told once.
      stage.consents["bob"]!.started(RecordingStarted(statement: statement, since: KeyWorld.clock))
      stage.settle("bob")
      #expect(stage.refused["bob"]?.count == 1)
    }
    var stage = Stage()
    let stranger = DeviceIdentity(user: "mallory", device: "d")!
    var statement = stage.statement.statement
    statement.by = stranger.address
    stage.consents["bob"]!.started(
      RecordingStarted(
        statement: SignedStatement(signing: statement, by: stranger).statement, since: KeyWorld.clock))
    stage.settle("bob")
    #expect(stage.refused["bob"] == [.stranger] && stage.shown("bob") == nil)
  }

  /// 2: the starter's pin differs.
  @Test func aStarterWithAnotherKeyIsRefused() {
    var stage = Stage()
    let address = stage.world.members["alice"]!.entry.address
    stage.world.members["bob"]!.agreement.known.pins.pin(address, [UInt8](repeating: 1, count: 32))
    stage.begin()
    #expect(stage.refused["bob"] == [.stranger] && stage.shown("bob") == nil)
  }

  /// 3: an id that was used by another statement.
  @Test func anIdBelongsToOneStatement() {
    var stage = Stage()
    stage.begin()
    var statement = stage.statement.statement
    statement.media = [.audio]
    let other = SignedStatement(signing: statement, by: stage.world.members["alice"]!.agreement.own.identity)
    stage.consents["bob"]!.started(RecordingStarted(statement: other.statement, since: KeyWorld.clock))
    stage.settle("bob")
    #expect(stage.refused["bob"] == [.usedBefore] && stage.shown("bob") == nil)
  }

  /// 3, 9, 10 and 12: a recording that was stopped, or whose starter has left: there is no word, so nothing leaves. An old word does not count.
  @Test func withoutTheStartersWordNothingLeaves() throws {
    var stage = Stage()
    stage.begin()
    stage.answer("bob", [.audio])
    stage.turn(word: false)
    #expect(stage.exports["bob"] == nil)
    let old = try #require(stage.exports["alice"]?.last)
    stage.turn(word: false)
    var word = RecordingRuns(old, by: 1)
    stage.consents["bob"]!.note(word)
    stage.settle("bob")
    word.epoch = 4
    stage.consents["bob"]!.note(word)
    stage.settle("bob")
    #expect(stage.exports["bob"] == nil, "a word is for one epoch and one list")
    // In another's name.
    let own = try #require(stage.exports["alice"]?.last)
    stage.consents["bob"]!.note(RecordingRuns(own, by: 2))
    stage.settle("bob")
    #expect(stage.exports["bob"] == nil)
    stage.consents["bob"]!.note(RecordingRuns(own, by: 1))
    stage.settle("bob")
    #expect(stage.exports["bob"]?.map(\.epoch) == [4])
  }

  /// 7 and 8: epochs from before the consent; none that was announced at the server when it took the answer.
  @Test func epochsFromBeforeTheAnswerStayClosed() {
    var stage = Stage()
    stage.begin()
    stage.turn()
    stage.answer("bob", [.audio], epoch: 4)
    stage.turn()
    #expect(stage.exports["bob"] == nil, "epoch 4 was announced before")
    stage.turn()
    #expect(stage.exports["bob"]?.map(\.epoch) == [5])
  }

  /// Until the server has taken the answer, nothing leaves.
  @Test func anAnswerThatIsOnItsWayCountsForNothing() {
    var stage = Stage()
    stage.begin()
    _ = stage.consents["bob"]!.answer([.audio], to: stage.id, erase: false, stage.facts("bob"))
    stage.turn()
    #expect(stage.exports["bob"] == nil)
    stage.consents["bob"]!.answerFailed([.audio])
    #expect(stage.shown("bob")?.answer == nil, "it was not taken")
    #expect(
      stage.consents["bob"]!.answer([.screen], to: stage.id, erase: false, stage.facts("bob")) == nil,
      "screens are not recorded")
  }

  /// 10 and 11: a withdrawal counts at once, and needs nobody.
  @Test func aWithdrawalEndsItWhateverTheServerDoes() throws {
    var stage = Stage()
    stage.begin()
    stage.answer("bob", [.audio, .video])
    stage.turn()
    #expect(stage.shown("bob")?.exported == [.microphone, .camera])
    stage.answer("bob", [.audio])
    #expect(stage.shown("bob")?.exported == [.microphone, .camera], "readers have the key that is in use")
    stage.world.now = stage.world.now.advanced(by: .seconds(9))
    stage.settle("bob")
    #expect(stage.withheld["bob"] == nil)
    stage.world.now = stage.world.now.advanced(by: .seconds(2))
    stage.settle("bob")
    #expect(stage.withheld["bob"] == [2] && stage.shown("bob")?.withheld == [.camera])
    stage.world.members["bob"]!.cipher.withhold([2])
    #expect(throws: FrameCipherError.muted) { try stage.world.seal("picture", from: "bob", track: 2) }
    #expect(throws: Never.self) { try stage.world.seal("sound", from: "bob", track: 1) }
    stage.turn()
    #expect(stage.exports["bob"]?.last?.tracks == [1] && stage.shown("bob")?.withheld == [])
    #expect(throws: Never.self) { try stage.world.seal("picture", from: "bob", track: 2) }
  }

  /// Without a connection the server cannot bring a key.
  @Test func theServersTimeRunsWhileItIsThere() {
    var stage = Stage()
    stage.begin()
    stage.answer("bob", [.audio])
    stage.turn()
    stage.answer("bob", [])
    stage.isConnected = false
    stage.settle("bob")
    stage.world.now = stage.world.now.advanced(by: .seconds(60))
    stage.settle("bob")
    #expect(stage.withheld["bob"] == nil)
    stage.isConnected = true
    stage.settle("bob")
    #expect(stage.consents["bob"]!.nextTimeout == stage.world.now.advanced(by: CallConsent.patience))
  }

  /// With *Verified devices only* an unverified starter gets nothing.
  @Test func anUnverifiedStarterGetsNothing() {
    var stage = Stage()
    let bob = stage.world.members["bob"]!.agreement
    stage.begin()
    stage.answer("bob", [.audio])
    stage.world.rotate(["alice", "bob"], mode: .fresh, leader: "alice")
    stage.settle("alice")
    stage.consents["bob"]!.note(RecordingRuns(stage.exports["alice"]!.last!, by: 1))
    var facts = stage.facts("bob")
    facts.known = KnownDevices(
      bob.own.identity, pins: bob.known.pins, trust: .verifiedOnly, directory: bob.known.directory)
    let effects = stage.consents["bob"]!.settle(facts, used: &stage.used["bob"]!)
    #expect(effects.isEmpty)
    stage.settle("bob")
    #expect(stage.exports["bob"]?.count == 1, "otherwise it does")
  }

  /// The same app agrees again by itself after a rejoin; nothing of the former stay counts.
  @Test func itAgreesAgainInANewStay() throws {
    var stage = Stage()
    stage.begin()
    stage.answer("bob", [.audio])
    stage.turn()
    stage.world.rejoin("bob", as: 3)
    stage.world.rotate(["alice", "bob"], mode: .fresh, leader: "alice")
    stage.consents["bob"]!.beginStay()
    stage.settle("bob")
    #expect(stage.answers["bob"]?.map(\.media) == [[.audio]])
    #expect(stage.exports["bob"]?.count == 1, "not before the server has taken it")
    stage.consents["bob"]!.answered([.audio], epoch: stage.world.epoch, stage.facts("bob"))
    stage.turn()
    let keys = try #require(stage.exports["bob"]?.last)
    #expect(keys.epoch == stage.world.epoch && stage.opened(keys, of: "bob") != nil)
  }

  /// The server forgets the consent of a device that was disconnected: it is told again, and what was agreed to goes on.
  @Test func aLostAnswerIsRepeated() {
    var stage = Stage()
    stage.begin()
    stage.answer("bob", [.audio])
    let state = CallRecordingState(
      statement: stage.statement.statement, since: KeyWorld.clock, consents: [], running: nil)
    stage.consents["bob"]!.take(state)
    stage.settle("bob")
    stage.settle("bob")
    #expect(stage.answers["bob"]?.map(\.media) == [[.audio]])
    stage.turn()
    #expect(stage.exports["bob"]?.count == 1)
  }

  /// 6: what the server says of others is shown as that.
  @Test func theStateTellsWhoAgreed() {
    var stage = Stage()
    let state = CallRecordingState(
      statement: stage.statement.statement, since: KeyWorld.clock,
      consents: [.init(participant: 1, media: [.audio]), .init(participant: 9, media: [])], running: nil)
    stage.consents["bob"]!.take(state)
    stage.settle("bob")
    #expect(stage.shown("bob")?.consents == [1: [.audio], 9: []])
    stage.consents["bob"]!.consented(RecordingConsent(recording: stage.id, participant: 9, media: [.video]))
    #expect(stage.shown("bob")?.consents[9] == [.video])
    stage.consents["bob"]!.stopped(RecordingStopped(recording: stage.id, reason: .stopped))
    #expect(stage.shown("bob") == nil)
    stage.consents["bob"]!.take(nil)
    #expect(stage.consents["bob"]!.isIdle)
  }
}
