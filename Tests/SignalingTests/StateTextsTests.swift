import Contract
import JSON
import Logging
import MediaModel
import NIOCore
import Testing

@testable import Calls
@testable import Signaling

struct StateTextsTests {
  private func state(of members: Int, id: String = "c1") -> CallState {
    CallState(
      id: CallID(id)!, state: .active, media: .audio, initiator: UserID("u0")!, startedAt: Timestamp(milliseconds: 1),
      epoch: 3, policy: Policy(),
      members: (0..<members).map {
        MemberState(user: UserID("u\($0)")!, name: "Name \($0)", state: .joined, participants: [])
      }, metadata: nil)
  }

  private func bytes(_ outgoing: Outgoing?) throws -> [UInt8] {
    switch outgoing {
    case .event(_, _, _, let body): return Array(body.readableBytesView)
    case .reply(_, .ok(let value)): return try JSON.encode(value)
    default: throw CancellationError()
    }
  }

  /// Everybody comes back after a restart: on each connection the state, then a rejoin with the state in its reply and as an event.
  @Test func aRestartOfALargeCallEncodesEachChangeOfAMemberOnce() throws {
    let texts = StateTexts()
    var encoder = EventEncoder(log: LimitedLog(Logger(label: "test", factory: { _ in LogLines() })), texts: texts)
    var state = state(of: 1000)
    for i in 0..<100 {
      let session = SessionID(rawValue: UInt64(i + 1))
      func expectEvent() throws {
        let message = EventMessage(at: Timestamp(milliseconds: Int64(i)), call: state.id, body: .state(state))
        let event = EventDelivery(seq: 1, redelivered: false, messageID: UInt64(1000 + i), message: message)
        #expect(try bytes(encoder.outgoing(.event(session, event))) == JSON.encode(message))
      }
      try expectEvent()
      state.members[i].state = .left
      let joined = Joined(call: state, participant: 7, ice: ICE())
      #expect(try bytes(encoder.outgoing(.reply(session, id: "1", .ok(joined)))) == JSON.encode(joined))
      #expect(try bytes(encoder.outgoing(.reply(session, id: "2", .ok(state)))) == JSON.encode(state))
    }
    #expect(texts.encodings == 1100)
  }

  @Test func onlySomeLargeCallsAreRemembered() throws {
    let texts = StateTexts()
    for round in 0..<2 {
      for i in 0..<StateTexts.maximumCalls + 1 {
        let state = state(of: StateTexts.fewestMembers, id: "c\(i)")
        #expect(try texts.encode(state, of: state.id, members: state.members.count) == JSON.encode(state), "\(round)")
      }
    }
    #expect(texts.encodings == StateTexts.maximumCalls * StateTexts.fewestMembers)
    let small = state(of: StateTexts.fewestMembers - 1, id: "small")
    #expect(try texts.encode(small, of: small.id, members: small.members.count) == JSON.encode(small))
    #expect(texts.encodings == StateTexts.maximumCalls * StateTexts.fewestMembers, "a small call is not remembered")
  }
}
