import CallMessages
import Contract
import Foundation
import Logging
import MediaModel
import Synchronization
import Testing

@testable import CallMachine
@testable import ConclaveServer

/// Records the metadata of each line.
private final class Lines: LogHandler, Sendable {
  let lines = Mutex<[(level: Logger.Level, metadata: [String: String])]>([])
  var logLevel: Logger.Level {
    get { .info }
    set {}
  }
  var metadata: Logger.Metadata {
    get { [:] }
    set {}
  }
  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { nil }
    set {}
  }

  func log(event: LogEvent) {
    let metadata = (event.metadata ?? [:]).mapValues { "\($0)" }
    lines.withLock { $0.append((event.level, metadata)) }
  }

  var all: [[String: String]] { lines.withLock { $0.map(\.metadata) } }
}

struct CallLogTests {
  private let lines = Lines()
  private let alice = UserID("alice")!
  private let bob = UserID("bob")!
  private let call = CallID(unchecked: "3f0c8a4e-0000-4000-8000-000000000001")

  private func log() -> CallLog {
    let lines = lines
    return CallLog(Logger(label: "test") { _ in lines })
  }

  private func event(_ seconds: Int64, _ body: EventBody) -> EventMessage {
    EventMessage(at: Timestamp(milliseconds: 1_790_000_000_000 + seconds * 1_000), call: call, body: body)
  }

  private func member(_ user: UserID, _ number: ParticipantNumber, connected: Bool) -> MemberState {
    let participant = ParticipantState(
      participant: number, device: DeviceID("phone")!, joinId: Base64Bytes([1]), connected: connected, held: false,
      tracks: [])
    return MemberState(user: user, name: "Secret Name", state: .joined, participants: [participant])
  }

  private func joins(_ user: UserID, _ number: ParticipantNumber, at seconds: Int64, connected: Bool) -> EventMessage {
    let cause: MemberCause = connected ? .connected : .joined
    return event(seconds, .member(MemberChange(member: member(user, number, connected: connected), cause: cause)))
  }

  private func goes(_ user: UserID, _ cause: MemberCause, at seconds: Int64) -> EventMessage {
    let state: MemberPhase = cause == .disconnected ? .disconnected : .left
    let member = MemberState(user: user, name: "Secret Name", state: state, participants: [])
    return event(seconds, .member(MemberChange(member: member, cause: cause)))
  }

  private func ends(at seconds: Int64) -> EventMessage {
    event(seconds, .ended(Ended(reason: .allLeft, by: alice, seconds: 7)))
  }

  @Test func aCallThatWentWellIsOneLine() {
    var log = log()
    for event in [
      joins(alice, 1, at: 0, connected: false), joins(alice, 1, at: 1, connected: true),
      joins(bob, 2, at: 1, connected: true), goes(alice, .left, at: 20), ends(at: 30),
    ] { log.take(event) }
    #expect(
      lines.all == [
        [
          "call": call.text, "event": "ended", "cause": "all-left", "seconds": "7", "participants": "2",
          "failures": "0",
        ]
      ])
  }

  @Test func mediaThatNeverCameIsAFailureAndSoIsMediaThatWasLost() {
    var log = log()
    for event in [
      joins(alice, 1, at: 0, connected: false), joins(bob, 2, at: 0, connected: true),
      goes(bob, .disconnected, at: 12), ends(at: 30),
    ] { log.take(event) }
    #expect(lines.all.map { $0["cause"] } == ["lost", "never-connected", "all-left"])
    #expect(lines.all.map { $0["participant"] } == ["2", "1", nil])
    #expect(lines.all.map { $0["seconds"] } == ["12", "30", "7"])
    #expect(lines.all.last?["failures"] == "2")
  }

  @Test func aRemovedGuestIsNoFailure() {
    var log = log()
    let guest = UserID("guest~ana")!
    for event in [joins(guest, 2, at: 0, connected: true), goes(guest, .removed, at: 12), ends(at: 30)] {
      log.take(event)
    }
    #expect(lines.all.map { $0["event"] } == ["ended"])
  }

  @Test func changesThatWentOutTogetherCountEach() {
    var log = log()
    let events = [
      joins(alice, 1, at: 0, connected: true), joins(bob, 2, at: 0, connected: true), goes(bob, .disconnected, at: 0),
    ]
    let changes = events.compactMap { if case .member(let change) = $0.body { change } else { nil } }
    log.take(event(1, .members(MemberChanges(members: changes))))
    log.take(ends(at: 30))
    #expect(lines.all.map { $0["cause"] } == ["lost", "all-left"])
    #expect(lines.all.last?["participants"] == "2")
  }

  @Test func aMomentWithoutMediaIsNoFailure() {
    var log = log()
    for event in [joins(alice, 1, at: 0, connected: false), goes(alice, .left, at: 4), ends(at: 4)] { log.take(event) }
    #expect(lines.all.map { $0["event"] } == ["ended"])
  }

  @Test func joinsAreCountedByWhatBecameOfTheirMedia() {
    var log = log()
    for event in [
      joins(alice, 1, at: 0, connected: false), joins(alice, 1, at: 1, connected: true),
      joins(alice, 1, at: 2, connected: false), joins(alice, 1, at: 3, connected: true),
      joins(bob, 2, at: 1, connected: false), goes(bob, .left, at: 3),
      joins(bob, 3, at: 4, connected: false), joins(bob, 4, at: 9, connected: false), ends(at: 30),
    ] { log.take(event) }
    #expect(log.counts.joins == [.connected: 1, .leftEarly: 1, .neverConnected: 2])
    #expect(log.counts.ends == [.allLeft: 1])
  }

  @Test func aCallFromBeforeARestartKeepsItsCounts() {
    var log = log()
    let members = [member(alice, 1, connected: false), member(bob, 3, connected: false)]
    log.restore(CallTally(call: call, members: members, participants: 3, failures: 2), now: Timestamp(milliseconds: 0))
    #expect(log.take(joins(alice, 4, at: 1, connected: true)) == 0)
    #expect(log.take(goes(bob, .disconnected, at: 15)) == 1, "it never came back")
    log.take(ends(at: 30))
    #expect(lines.all.map { $0["cause"] } == ["lost", "all-left"])
    #expect(lines.all.last?["participants"] == "4" && lines.all.last?["failures"] == "3")
    #expect(log.counts.joins == [.connected: 1], "joins before the restart are not counted again")
  }

  @Test func aKeyThatNeverCameIsAFailure() {
    var log = log()
    log.take(joins(alice, 1, at: 0, connected: true))
    log.take(1, wasWithoutKey: .untrusted, in: call)
    log.take(goes(alice, .left, at: 20))
    #expect(lines.all.count == 1)
    #expect(lines.all.first?["event"] == "key" && lines.all.first?["cause"] == "untrusted")
  }

  @Test func theStarterIsKnownFromTheCallsFirstState() throws {
    var log = log()
    let policy = try CallRules(Policy(), defaultCodecs: ["VP8"]).shown
    let state = CallState(
      id: call, state: .ringing, media: .audio, initiator: alice, startedAt: Timestamp(milliseconds: 0), epoch: 1,
      policy: policy, members: [member(alice, 1, connected: false)], metadata: nil)
    log.take(event(0, .state(state)))
    log.take(ends(at: 60))
    #expect(lines.all.map { $0["cause"] } == ["never-connected", "all-left"])
  }

  @Test(arguments: [
    (Authorizer.Answer.Source.backEnd, "refused"), (.failure, "failed"), (.overload, "overloaded"),
  ])
  func aBackEndThatDoesNotAllowARingIsNamed(source: Authorizer.Answer.Source, cause: String) {
    let logger = log().logger
    CallLog.log(.init(allowed: [bob], source: .backEnd), of: 1, for: call, to: logger)
    #expect(lines.all.isEmpty)
    CallLog.log(.init(allowed: [], source: source), of: 1, for: call, to: logger)
    #expect(lines.all.first?["event"] == "authorize" && lines.all.first?["cause"] == cause)
  }

  @Test func noLineNamesAPerson() {
    var log = log()
    for event in [
      joins(alice, 1, at: 0, connected: false), goes(alice, .failed, at: 20), joins(bob, 2, at: 20, connected: true),
      ends(at: 30),
    ] { log.take(event) }
    CallLog.log(.init(allowed: [], source: .backEnd), of: 1, for: call, to: log.logger)
    let text = "\(lines.all)"
    #expect(lines.all.count == 3 && !text.contains("alice") && !text.contains("bob") && !text.contains("Secret"))
  }
}

/// Each written line becomes an entry of the journal, with the priority as its prefix.
@Test func aLineForTheJournalIsOneAndHasItsPriority() {
  let line = JournalLogHandler.line(.warning, "conclave", "two\n<0>lines", ["call": "c1", "at": "9"])
  #expect(line == #"<4>warning conclave: at=9 call=c1 two\n<0>lines"#)
  #expect(JournalLogHandler.line(.critical, "c", "m", [:]).hasPrefix("<2>"))
  #expect(!JournalLogHandler.isJournal(2, stream: nil) && !JournalLogHandler.isJournal(2, stream: "1:1"))
}

@Test func aJSONLineHoldsTheMetadataAsMembers() throws {
  let line = JSONLogHandler.line(
    at: Date(timeIntervalSince1970: 1_790_000_000.25), .notice, "a \"call\"\n", ["call": "c1", "level": "forged"])
  let object = try #require(try JSONSerialization.jsonObject(with: Data(line)) as? [String: String])
  #expect(
    object == ["time": "2026-09-21T14:13:20.250Z", "level": "notice", "message": "a \"call\"\n", "call": "c1"])
}
