import Contract
import Foundation
import JSON
import MediaModel
import Testing

@testable import ConclaveServer

/// A call's events become the spans of one trace.
struct CallSpansTests {
  private static let start = Timestamp(milliseconds: 1_790_000_000_000)
  private let alice = UserID("alice")!
  private let bob = UserID("bob")!
  private let carol = UserID("carol")!
  private let guest = UserID("guest~7")!
  private let call = CallID(unchecked: "3f0c8a4e-0000-4000-8000-000000000001")

  /// Events go in, spans come out; random numbers are 1, 2, 3 and so on.
  private final class Stage {
    var spans = CallSpans()
    var last: UInt64 = 0
    var finished: [Span] = []

    func random() -> UInt64 {
      last += 1
      return last
    }

    func take(_ event: EventMessage) { finished += spans.take(event, random: random) }

    subscript(name: String) -> [Span] { finished.filter { $0.name == name } }
  }

  private func at(_ seconds: Double) -> Timestamp { Self.start + .milliseconds(Int(seconds * 1_000)) }

  private func member(
    _ user: UserID, _ state: MemberPhase, _ numbers: [ParticipantNumber] = [], connected: [ParticipantNumber] = [],
    link: Bool? = nil
  ) -> MemberState {
    MemberState(
      user: user, name: "Secret Name", state: state,
      participants: numbers.map {
        ParticipantState(
          participant: $0, device: DeviceID("secret-device")!, joinId: Base64Bytes([1]),
          connected: connected.contains($0), held: false, tracks: [])
      }, link: link)
  }

  private func begin(_ members: [MemberState], at seconds: Double = 0) -> EventMessage {
    let state = CallState(
      id: call, state: .ringing, media: .video, initiator: alice, startedAt: Self.start, epoch: 1,
      policy: Policy(), members: members, metadata: nil)
    return EventMessage(at: at(seconds), call: call, body: .state(state))
  }

  private func change(_ seconds: Double, _ cause: MemberCause, _ member: MemberState) -> EventMessage {
    EventMessage(at: at(seconds), call: call, body: .member(MemberChange(member: member, cause: cause)))
  }

  private func end(_ seconds: Double, _ reason: EndReason = .endedByInitiator, talk: Int = 3) -> EventMessage {
    EventMessage(at: at(seconds), call: call, body: .ended(Ended(reason: reason, by: alice, seconds: talk)))
  }

  private func text(_ span: Span, _ name: String) -> String? {
    if case .text(let text)? = span.attributes[name] { text } else { nil }
  }

  @Test func aWholeCallIsOneTrace() throws {
    let stage = Stage()
    stage.take(begin([member(alice, .joined, [1]), member(bob, .ringing), member(carol, .ringing)]))
    stage.take(change(0.25, .connected, member(alice, .joined, [1], connected: [1])))
    stage.take(change(2, .accepted, member(bob, .joined, [2])))
    stage.take(change(2.5, .connected, member(bob, .joined, [2], connected: [2])))
    stage.take(change(3, .declined, member(carol, .declined)))
    #expect(stage["call"].isEmpty && stage.finished.count == 4)
    stage.take(end(5))
    let root = try #require(stage["call"].first)
    #expect(root.parent == nil && root.from == Self.start && root.to == at(5) && !root.hasFailed)
    #expect(
      root.attributes == [
        "conclave.call.id": .text(call.text), "conclave.call.media": .text("video"),
        "conclave.call.end_reason": .text("ended-by-initiator"), "conclave.call.talk_seconds": .number(3),
        "conclave.call.participants": .number(2), "conclave.call.failed_joins": .number(0),
      ])
    let children = stage.finished.dropLast()
    #expect(children.allSatisfy { $0.parent == root.context.span && $0.context.trace == root.context.trace })
    #expect(Set(stage.finished.map(\.context.span)).count == 5)
    #expect(stage["ring"].map { [$0.from, $0.to] } == [[at(0), at(2)], [at(0), at(3)]])
    #expect(stage["ring"].map { text($0, "conclave.ring.outcome") } == ["answered", "declined"])
    #expect(stage["ring"].allSatisfy { text($0, "conclave.member.role") == "callee" })
    #expect(stage["join"].map { [$0.from, $0.to] } == [[at(0), at(0.25)], [at(2), at(2.5)]])
    #expect(stage["join"].map { text($0, "conclave.member.role") } == ["initiator", "callee"])
    #expect(stage["join"].map { $0.attributes["conclave.participant"] } == [.number(1), .number(2)])
    #expect(stage["join"].allSatisfy { text($0, "conclave.join.outcome") == "connected" && !$0.hasFailed })
    #expect(stage.spans.count == 0)
  }

  @Test func aMissAndACancelledRingAreNamed() {
    let stage = Stage()
    stage.take(begin([member(alice, .joined, [1]), member(bob, .ringing), member(carol, .ringing)]))
    stage.take(change(30, .missed, member(bob, .missed)))
    stage.take(change(31, .invited, member(bob, .ringing)))
    stage.take(end(33, .allLeft))
    #expect(stage["ring"].map { text($0, "conclave.ring.outcome") } == ["missed", "cancelled", "cancelled"])
    #expect(stage["ring"].map { $0.from } == [at(0), at(31), at(0)])
  }

  @Test func aJoinWithoutMediaFailsUnlessItWasShort() {
    let stage = Stage()
    stage.take(begin([member(alice, .joined, [1])]))
    stage.take(change(1, .joined, member(bob, .joined, [2], link: true)))
    stage.take(change(4, .left, member(bob, .left)))
    stage.take(change(5, .joined, member(guest, .joined, [3], link: true)))
    stage.take(change(20, .left, member(guest, .left)))
    stage.take(change(21, .joined, member(carol, .joined, [4])))
    stage.take(change(22, .failed, member(carol, .left)))
    stage.take(end(40))
    #expect(stage["join"].map(\.hasFailed) == [false, true, true, true])
    #expect(stage["join"].map { text($0, "conclave.member.role") } == ["link", "guest", "callee", "initiator"])
    #expect(stage["join"].allSatisfy { text($0, "conclave.join.outcome") == "never-connected" })
    #expect(stage["call"].first?.attributes["conclave.call.failed_joins"] == .number(3))
  }

  @Test func aRejoinAndATransferAreSpansOfTheirOwn() {
    let stage = Stage()
    stage.take(begin([member(alice, .joined, [1])]))
    stage.take(change(1, .connected, member(alice, .joined, [1], connected: [1])))
    stage.take(change(10, .rejoined, member(alice, .joined, [2])))
    stage.take(change(11, .connected, member(alice, .joined, [2], connected: [2])))
    stage.take(change(20, .joined, member(alice, .joined, [2, 3], connected: [2])))
    stage.take(change(22, .transferred, member(alice, .joined, [3], connected: [3])))
    // Disconnected and back. A change without news ends nothing.
    stage.take(change(23, .held, member(alice, .joined, [3], connected: [3])))
    stage.take(change(30, .disconnected, member(alice, .disconnected, [3])))
    stage.take(change(40, .rejoined, member(alice, .joined, [4])))
    stage.take(change(41, .connected, member(alice, .joined, [4], connected: [4])))
    #expect(stage["join"].count == 1)
    #expect(stage["rejoin"].map { [$0.from, $0.to] } == [[at(10), at(11)], [at(20), at(22)], [at(40), at(41)]])
    #expect(stage.finished.allSatisfy { !$0.hasFailed })
  }

  @Test func changesThatComeTogetherAreTakenInOrder() {
    let stage = Stage()
    stage.take(begin([member(alice, .joined, [1]), member(bob, .ringing)]))
    let changes = [
      MemberChange(member: member(bob, .joined, [2]), cause: .accepted),
      MemberChange(member: member(bob, .joined, [2], connected: [2]), cause: .connected),
    ]
    stage.take(EventMessage(at: at(2), call: call, body: .members(MemberChanges(members: changes))))
    #expect(stage.finished.map(\.name) == ["ring", "join"])
  }

  @Test func aQuestionBeforeTheCallBelongsToItsTrace() throws {
    let stage = Stage()
    let question = stage.spans.ask(about: call, random: stage.random)
    let again = stage.spans.ask(about: call, random: stage.random)
    #expect(question.trace == again.trace && question.span != again.span)
    func answer(_ context: TraceContext, _ outcome: String) -> [Span] {
      stage.spans.answered(
        context, about: call, asked: 3, allowed: 1, outcome: outcome, hasFailed: outcome != "answered", from: at(-1),
        to: at(0))
    }
    #expect(answer(question, "answered").isEmpty, "there may be no call")
    stage.take(begin([member(alice, .joined, [1])]))
    let span = try #require(stage["authorize"].first)
    #expect(span.context == question && span.kind == .client && span.from == at(-1) && span.to == at(0))
    #expect(span.parent == stage.spans.context(of: call)?.span && !span.hasFailed)
    #expect(span.attributes["conclave.authorize.asked"] == .number(3))
    #expect(answer(again, "failed").first?.hasFailed == true, "the call is there")
    stage.take(end(1))
    #expect(answer(again, "answered").isEmpty)
  }

  @Test func questionsAboutCallsThatNeverCameAreGivenUp() {
    let stage = Stage()
    for number in 0..<4_000 {
      let call = CallID(unchecked: "c\(number)")
      let question = stage.spans.ask(about: call, random: stage.random)
      for _ in 0..<40 {
        _ = stage.spans.answered(
          question, about: call, asked: 1, allowed: 0, outcome: "answered", hasFailed: false, from: at(0), to: at(0))
      }
      if number % 3 == 0 {
        let state = CallState(
          id: call, state: .ringing, media: .video, initiator: alice, startedAt: Self.start, epoch: 1,
          policy: Policy(), members: [], metadata: nil)
        stage.take(EventMessage(at: at(0), call: call, body: .state(state)))
        stage.take(EventMessage(at: at(0), call: call, body: .ended(Ended(reason: .allLeft, by: nil, seconds: 0))))
      }
    }
    // The last of the 4,000 was made.
    #expect(stage.spans.awaitedCount == CallSpans.maximumAwaited - 1)
    #expect(stage["authorize"].count == stage["call"].count * CallSpans.maximumEarly)
  }

  @Test func callsFromBeforeTheStartHaveNoTraceAndTheEndOfTheServerEndsAll() {
    let stage = Stage()
    stage.take(change(1, .accepted, member(bob, .joined, [2])))
    stage.take(end(2))
    #expect(stage.finished.isEmpty && stage.spans.context(of: call) == nil)
    stage.take(begin([member(alice, .joined, [1]), member(bob, .ringing)]))
    let rest = stage.spans.stop(now: at(9))
    #expect(rest.map(\.name) == ["ring", "join", "call"] && rest.map(\.to) == [at(9), at(9), at(9)])
    #expect(rest.last.flatMap { text($0, "conclave.call.end_reason") } == "server-stopped")
    #expect(stage.spans.count == 0)
  }

  @Test func aClockThatWasSetBackMakesNoNegativeSpan() {
    let stage = Stage()
    stage.take(begin([member(alice, .joined, [1]), member(bob, .ringing)], at: 10))
    stage.take(end(-5))
    #expect(stage.finished.count == 3 && stage.finished.allSatisfy { $0.from <= $0.to })
  }

  @Test func nothingOfAPersonIsInTheBody() throws {
    let stage = Stage()
    stage.take(begin([member(alice, .joined, [1]), member(bob, .ringing), member(guest, .joined, [3], link: true)]))
    stage.take(change(1, .accepted, member(bob, .joined, [2], connected: [2])))
    stage.take(end(9))
    let body = String(decoding: try JSONCoding.encode(SpanBatch(stage.finished)), as: UTF8.self)
    for secret in ["alice", "bob", "guest~", "Secret", "secret"] { #expect(!body.contains(secret), "\(secret)") }
  }

  @Test func theBodyIsOTLPAsJSON() throws {
    let context = TraceContext(random: { 10 })
    #expect(context.traceparent == "00-000000000000000a000000000000000a-000000000000000a-01")
    let span = Span(
      name: "join", context: context.child(random: { 11 }), parent: 10, from: Self.start, to: at(1.5),
      attributes: ["b": .number(7), "a": .text("x")], hasFailed: true)
    let body = try JSONCoding.encode(SpanBatch([span]))
    let json = try #require(try JSONSerialization.jsonObject(with: Data(body)) as? [String: Any])
    let resource = try #require((json["resourceSpans"] as? [[String: Any]])?.first)
    let attributes = try #require((resource["resource"] as? [String: Any])?["attributes"] as? [[String: Any]])
    #expect(attributes.map { $0["key"] as? String } == ["service.name", "service.version"])
    let scope = try #require((resource["scopeSpans"] as? [[String: Any]])?.first)
    let shown = try #require((scope["spans"] as? [[String: Any]])?.first)
    #expect(shown["traceId"] as? String == "000000000000000a000000000000000a")
    #expect(shown["spanId"] as? String == "000000000000000b" && shown["parentSpanId"] as? String == "000000000000000a")
    #expect(shown["kind"] as? Int == 1 && shown["name"] as? String == "join")
    #expect(shown["startTimeUnixNano"] as? String == "1790000000000000000")
    #expect(shown["endTimeUnixNano"] as? String == "1790000001500000000")
    #expect((shown["status"] as? [String: Any])?["code"] as? Int == 2)
    let values = try #require(shown["attributes"] as? [[String: Any]])
    #expect(values.map { $0["key"] as? String } == ["a", "b"])
    #expect((values[0]["value"] as? [String: Any])?["stringValue"] as? String == "x")
    #expect((values[1]["value"] as? [String: Any])?["intValue"] as? String == "7")
  }

  @Test func anIDIsNeverZero() {
    let context = TraceContext(random: { 0 })
    #expect(context.trace != 0 && context.span != 0 && context.child(random: { 0 }).span != 0)
  }
}
