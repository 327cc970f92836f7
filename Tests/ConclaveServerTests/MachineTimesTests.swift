import CallMessages
import Contract
import MediaModel
import Testing

@testable import ConclaveServer

/// The machine's clock is set during calls: the times that people are told follow it.
struct MachineTimesTests {
  private let start = Timestamp(milliseconds: 1_790_000_000_000)
  private let hour = Duration.seconds(3_600)
  private let id = CallID(unchecked: "c1")

  private var state: CallState {
    CallState(
      id: id, rev: 1, state: .active, media: .audio, initiator: UserID(unchecked: "ann"), startedAt: start,
      answeredAt: start + .seconds(3), epoch: 1, policy: Policy(), members: [], metadata: nil)
  }

  @Test func repliesHaveTheTimeOfTheMachine() throws {
    let session = SessionID(rawValue: 1)
    let joined = Joined(call: state, participant: 1, ice: ICE())
    guard
      case .reply(_, _, .ok(.joined(let later))) = Delivery.reply(session, id: "1", .ok(.joined(joined))).later(
        by: hour)
    else {
      Issue.record("a reply stays one")
      return
    }
    #expect(later.call.startedAt == start + hour && later.call.answeredAt == start + .seconds(3_603))
    let link = CallLink(link: "x", expiresAt: start)
    guard
      case .reply(_, _, .ok(.link(let other))) = Delivery.reply(session, id: "2", .ok(.link(link))).later(
        by: .seconds(-60))
    else {
      Issue.record("a reply stays one")
      return
    }
    #expect(other.expiresAt == start - .seconds(60))
  }

  /// A client waits from `at` to `expiresAt`, so both must come from the same clock.
  @Test func aRingLastsAsLongAsBefore() throws {
    let ring = Ring(
      from: UserID(unchecked: "ann"), media: .audio, members: [], waiting: false, expiresAt: start + .seconds(30),
      metadata: nil, envelope: nil, list: nil)
    let later = EventMessage(at: start, call: id, body: .ring(ring)).later(by: hour)
    guard case .ring(let told) = later.body else {
      Issue.record("a ring stays one")
      return
    }
    #expect(later.at == start + hour && told.expiresAt - later.at == .seconds(30))
  }

  @Test func aGuestWaitsAsLongAsBefore() throws {
    let knock = GuestKnock(
      user: UserID(unchecked: "guest~ana"), name: nil, expiresAt: start + .seconds(600), admissions: [], signers: nil)
    let later = EventMessage(at: start, call: id, body: .knock(knock)).later(by: hour)
    guard case .knock(let told) = later.body,
      case .knocking(let knocking) = ReplyBody.knocking(Knocking(expiresAt: start)).later(by: hour)
    else {
      Issue.record("a knock stays one")
      return
    }
    #expect(told.expiresAt - later.at == .seconds(600) && knocking.expiresAt == start + hour)
  }

  @Test func theTimesOfLastingLinksAreThoseOfTheMachine() {
    let id = LinkID(unchecked: "YWxpY2UncyBsaW5rICMxIQ")
    let link = LastingLink(link: id, device: DeviceID(unchecked: "phone"), expiresAt: start)
    let opened = OpenedLink(name: nil, expiresAt: start)
    guard case .lastingLink(let made) = ReplyBody.lastingLink(link).later(by: hour),
      case .lastingLinks(let list) = ReplyBody.lastingLinks(LastingLinkList(links: [link], days: 9)).later(by: hour),
      case .openedLink(let told) = ReplyBody.openedLink(opened).later(by: hour),
      case .lastingLink(let asked?) = InquiryAnswer.lastingLink(opened).later(by: hour)
    else {
      Issue.record("each stays what it is")
      return
    }
    #expect(
      [made.expiresAt, list.links[0].expiresAt, told.expiresAt, asked.expiresAt].allSatisfy { $0 == start + hour })
  }

  @Test func aRecordingBeganWithTheMachinesTime() throws {
    let recording = try #require(RecordingID([UInt8](repeating: 1, count: 16)))
    let phone = Device(user: UserID(unchecked: "ann"), device: DeviceID(unchecked: "phone"))
    let statement = RecordingStatement(
      id: recording, kind: .call, call: id, publicKey: Base64Bytes([]), media: [.audio], readers: [], at: start,
      by: phone, sigAlg: "ES256", signature: Base64Bytes([]))
    let body = EventBody.recordingStarted(RecordingStarted(statement: statement, since: start))
    guard case .recordingStarted(let told) = EventMessage(at: start, call: id, body: body).later(by: hour).body else {
      Issue.record("it stays one")
      return
    }
    // The statement is signed.
    #expect(told.since == start + hour && told.statement == statement)
    var recorded = state
    recorded.recording = CallRecordingState(statement: statement, since: start, consents: [], running: nil)
    guard case .state(let later) = ReplyBody.state(recorded).later(by: hour) else {
      Issue.record("a state stays one")
      return
    }
    #expect(later.recording?.since == start + hour && later.recording?.statement == statement)
  }

  @Test func theHistoryHasTheStartThatWasTold() {
    let change = StoreChange.history(.call(id, .audio, startedAt: start))
    guard case .history(.call(_, _, let startedAt)) = change.later(by: hour) else {
      Issue.record("a fact stays one")
      return
    }
    #expect(startedAt == start + hour)
  }
}
