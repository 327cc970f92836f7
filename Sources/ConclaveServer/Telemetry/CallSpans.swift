import Contract
import MediaModel

/// Turns the events of calls, as the service topics carry them, into spans: one trace for each call.
///
/// ## Overview
/// The first span, `call`, goes from the start to the end. Below it are `ring` (until a callee answers, declines or misses it), `join` and `rejoin` (until
/// media is up) and `authorize` (a question to the app's back end). A span is returned when it ends.
///
/// Users are told apart by their ids in here. A span contains only the role of its user.
///
/// A call that existed before the server started has no trace.
struct CallSpans {
  /// Calls about which the back end was asked and that are not created yet. Above it the oldest is abandoned.
  static let maximumAwaited = 1_024
  /// Spans that wait for the creation of their call.
  static let maximumEarly = 16

  fileprivate struct Open {
    var context: TraceContext
    var name: String
    var since: Timestamp
    var attributes: [String: Span.Value]
  }

  fileprivate struct Trace {
    let context: TraceContext
    let initiator: UserID
    let media: CallMedia
    let startedAt: Timestamp
    var rings: [UserID: Open] = [:]
    /// The participants that are in the call; nil for one whose media was up.
    var joins: [UserID: [ParticipantNumber: Open?]] = [:]
    var haveBeenIn: Set<UserID> = []
    var participants = 0
    var failedJoins = 0
  }

  fileprivate struct Awaited {
    var context: TraceContext
    var early: [Span] = []
  }

  private var traces: [CallID: Trace] = [:]
  private var awaited: [CallID: Awaited] = [:]
  /// The calls of `awaited`, oldest first; also some that are no longer there.
  private var order: [CallID] = []

  /// Calls with an open trace.
  var count: Int { traces.count }
  var awaitedCount: Int { awaited.count }

  /// The parent of requests about the call; nil without a trace.
  func context(of call: CallID) -> TraceContext? { traces[call]?.context }

  // MARK: events

  /// - Returns: the spans that ended.
  mutating func take(_ event: EventMessage, random: () -> UInt64) -> [Span] {
    guard let call = event.call else { return [] }
    switch event.body {
    case .state(let state): return begin(state, call, at: event.at, random)
    case .member(let change): return take([change], of: call, at: event.at, random)
    case .members(let changes): return take(changes.members, of: call, at: event.at, random)
    case .ended(let ended): return end(call, ended.reason.rawValue, talk: ended.seconds, at: event.at)
    default: return []
    }
  }

  /// The server ends, and the calls continue without it.
  mutating func stop(now: Timestamp) -> [Span] {
    traces.keys.sorted().flatMap { end($0, "server-stopped", talk: nil, at: now) }
  }

  private mutating func begin(
    _ state: CallState, _ call: CallID, at now: Timestamp, _ random: () -> UInt64
  ) -> [Span] {
    guard traces[call] == nil else { return [] }
    let early = awaited.removeValue(forKey: call)
    traces[call] = Trace(
      context: early?.context ?? TraceContext(random: random), initiator: state.initiator, media: state.media,
      startedAt: state.startedAt)
    let changes = state.members.map { MemberChange(member: $0, cause: .joined) }
    return (early?.early ?? []) + take(changes, of: call, at: now, random)
  }

  private mutating func take(
    _ changes: [MemberChange], of call: CallID, at now: Timestamp, _ random: () -> UInt64
  ) -> [Span] {
    var spans: [Span] = []
    for change in changes { traces[call]?.take(change, of: call, at: now, random, &spans) }
    return spans
  }

  private mutating func end(_ call: CallID, _ reason: String, talk: Int?, at now: Timestamp) -> [Span] {
    guard var trace = traces.removeValue(forKey: call) else { return [] }
    var spans: [Span] = []
    for user in trace.rings.keys.sorted() { trace.endRing(of: user, "cancelled", at: now, &spans) }
    for user in trace.joins.keys.sorted() { trace.leave(user, except: [], cause: .left, at: now, &spans) }
    var attributes: [String: Span.Value] = [
      "conclave.call.id": .text(call.text), "conclave.call.media": .text(trace.media.rawValue),
      "conclave.call.end_reason": .text(reason), "conclave.call.participants": .number(trace.participants),
      "conclave.call.failed_joins": .number(trace.failedJoins),
    ]
    attributes["conclave.call.talk_seconds"] = talk.map(Span.Value.number)
    spans.append(
      Span(
        name: "call", context: trace.context, from: trace.startedAt, to: max(now, trace.startedAt),
        attributes: attributes))
    return spans
  }

  // MARK: questions to the app's back end

  /// The back end is asked about a call, which may not exist yet.
  /// - Returns: the question's own place in the call's trace.
  mutating func ask(about call: CallID, random: () -> UInt64) -> TraceContext {
    let root = traces[call]?.context ?? awaited[call]?.context ?? wait(for: call, random)
    return root.child(random: random)
  }

  /// - Parameter outcome: the result of the question, in one word.
  /// - Returns: the question's span; none while the call does not exist.
  mutating func answered(
    _ question: TraceContext, about call: CallID, asked: Int, allowed: Int, outcome: String, hasFailed: Bool,
    from: Timestamp, to: Timestamp
  ) -> [Span] {
    guard let root = traces[call]?.context ?? awaited[call]?.context else { return [] }
    let span = Span(
      name: "authorize", context: question, parent: root.span, kind: .client, from: from, to: max(from, to),
      attributes: [
        "conclave.call.id": .text(call.text), "conclave.authorize.outcome": .text(outcome),
        "conclave.authorize.asked": .number(asked), "conclave.authorize.allowed": .number(allowed),
      ], hasFailed: hasFailed)
    guard traces[call] == nil else { return [span] }
    if awaited[call]?.early.count ?? 0 < Self.maximumEarly { awaited[call]?.early.append(span) }
    return []
  }

  private mutating func wait(for call: CallID, _ random: () -> UInt64) -> TraceContext {
    let context = TraceContext(random: random)
    awaited[call] = Awaited(context: context)
    order.append(call)
    if awaited.count > Self.maximumAwaited || order.count > 2 * Self.maximumAwaited {
      let surplus = awaited.count - Self.maximumAwaited
      order.removeAll { awaited[$0] == nil }
      for call in order.prefix(max(0, surplus)) { awaited[call] = nil }
      order.removeFirst(max(0, surplus))
    }
    return context
  }
}

extension CallSpans.Trace {
  /// A shorter stay without media may not have had time to connect.
  private static var patience: Duration { CallLog.patience }

  fileprivate mutating func take(
    _ change: MemberChange, of call: CallID, at now: Timestamp, _ random: () -> UInt64, _ spans: inout [Span]
  ) {
    let member = change.member
    if member.state == .ringing {
      if rings[member.user] == nil { rings[member.user] = open("ring", member, call, now, random) }
    } else if rings[member.user] != nil {
      let isAnswered = member.state != .declined && member.state != .missed && member.state != .cancelled
      endRing(of: member.user, isAnswered ? "answered" : member.state.rawValue, at: now, &spans)
    }
    let present = member.state == .joined ? member.participants : []
    for participant in present {
      come(participant, member, call, now, random)
      if participant.connected, let join = joins[member.user]?[participant.participant] ?? nil {
        joins[member.user]?[participant.participant] = .some(nil)
        spans.append(finished(join, "conclave.join.outcome", "connected", at: now))
      }
    }
    leave(member.user, except: present.map(\.participant), cause: change.cause, at: now, &spans)
  }

  private mutating func come(
    _ participant: ParticipantState, _ member: MemberState, _ call: CallID, _ now: Timestamp, _ random: () -> UInt64
  ) {
    guard joins[member.user]?[participant.participant] == nil else { return }
    let name = haveBeenIn.insert(member.user).inserted ? "join" : "rejoin"
    var join = open(name, member, call, now, random)
    join.attributes["conclave.participant"] = .number(Int(participant.participant))
    joins[member.user, default: [:]][participant.participant] = join
    participants += 1
  }

  /// Ends the joins of those of the user's participants that are no longer there.
  fileprivate mutating func leave(
    _ user: UserID, except present: [ParticipantNumber], cause: MemberCause, at now: Timestamp, _ spans: inout [Span]
  ) {
    guard let known = joins[user] else { return }
    for number in known.keys.sorted() where !present.contains(number) {
      guard let join = joins[user]?.removeValue(forKey: number) ?? nil else { continue }
      let hasFailed = cause == .failed || join.since + Self.patience <= now
      if hasFailed { failedJoins += 1 }
      spans.append(finished(join, "conclave.join.outcome", "never-connected", at: now, hasFailed: hasFailed))
    }
    if joins[user]?.isEmpty == true { joins[user] = nil }
  }

  fileprivate mutating func endRing(of user: UserID, _ outcome: String, at now: Timestamp, _ spans: inout [Span]) {
    guard let ring = rings.removeValue(forKey: user) else { return }
    spans.append(finished(ring, "conclave.ring.outcome", outcome, at: now))
  }

  private func open(
    _ name: String, _ member: MemberState, _ call: CallID, _ now: Timestamp, _ random: () -> UInt64
  ) -> CallSpans.Open {
    let role =
      if member.user.isGuest { "guest" } else if member.user == initiator { "initiator" } else if member.link == true {
        "link"
      } else { "callee" }
    return CallSpans.Open(
      context: context.child(random: random), name: name, since: now,
      attributes: ["conclave.call.id": .text(call.text), "conclave.member.role": .text(role)])
  }

  private func finished(
    _ open: CallSpans.Open, _ attribute: String, _ outcome: String, at now: Timestamp, hasFailed: Bool = false
  ) -> Span {
    var attributes = open.attributes
    attributes[attribute] = .text(outcome)
    return Span(
      name: open.name, context: open.context, parent: context.span, from: open.since, to: max(now, open.since),
      attributes: attributes, hasFailed: hasFailed)
  }
}
