import CallMessages
import Contract
import Logging
import MediaModel

/// The outcomes of calls and joins since the start, for the metrics.
struct CallCounts: Sendable, Equatable {
  enum JoinOutcome: String, CaseIterable, Sendable {
    /// Media flowed.
    case connected
    /// There was no media for 5 s or more, or until the participant was removed.
    case neverConnected = "never-connected"
    /// The participant left sooner.
    case leftEarly = "left-early"
  }

  var ends: [EndReason: UInt64] = [:]
  var joins: [JoinOutcome: UInt64] = [:]
}

/// The log's lines about calls: one at the end of each call, and one for each failure in it. A line has the call's id and numbers of participants, and never
/// names a person.
struct CallLog: Sendable {
  /// A participant that left sooner may not have had time to connect, or to get a key.
  static let patience = Duration.seconds(5)

  private struct Stay {
    var participant: ParticipantNumber
    var since: Timestamp
    var wasConnected: Bool
  }

  private struct Record {
    var stays: [UserID: Stay] = [:]
    var participants: Set<ParticipantNumber> = []
    /// The number of participants that joined before the server's start.
    var oldParticipants = 0
    /// Participants that are about to go without the newest key.
    var keyless: [ParticipantNumber: KeyState] = [:]
    var failures = 0
  }

  let logger: Logger
  private(set) var counts = CallCounts()
  private var records: [CallID: Record] = [:]

  init(_ logger: Logger) { self.logger = logger }

  /// A call that continues after the server's start.
  mutating func restore(_ tally: CallTally, now: Timestamp) {
    var record = Record()
    record.oldParticipants = tally.participants
    record.failures = tally.failures
    for member in tally.members where member.state == .joined {
      guard let participant = member.participants.first?.participant else { continue }
      record.stays[member.user] = Stay(participant: participant, since: now, wasConnected: true)
    }
    records[tally.call] = record
  }

  /// Handles an event of the service topics.
  /// - Returns: how many failures it reports, in a running call.
  @discardableResult mutating func take(_ event: EventMessage) -> Int {
    guard let call = event.call else { return 0 }
    let before = records[call]?.failures ?? 0
    note(event, in: call)
    return (records[call]?.failures ?? before) - before
  }

  private mutating func note(_ event: EventMessage, in call: CallID) {
    switch event.body {
    case .state(let state):
      records[call] = Record()
      for member in state.members { note(member, in: call, at: event.at) }
    case .member(let change): take(change, of: call, at: event.at)
    case .members(let changes): for change in changes.members { take(change, of: call, at: event.at) }
    case .ended(let ended): end(call, ended, at: event.at)
    default: break
    }
  }

  /// A participant is about to go without the newest key.
  mutating func take(_ participant: ParticipantNumber, wasWithoutKey state: KeyState, in call: CallID) {
    records[call]?.keyless[participant] = state
  }

  /// The back end was asked which users a `start` or an `invite` of the call may ring.
  static func log(_ answer: Authorizer.Answer, of asked: Int, for call: CallID, to logger: Logger) {
    guard answer.allowed.count < asked else { return }
    let cause =
      switch answer.source {
      case .backEnd: "refused"
      case .failure: "failed"
      case .overload: "overloaded"
      }
    log(.notice, call, "authorize", cause, to: logger, ["asked": "\(asked)", "allowed": "\(answer.allowed.count)"])
  }

  private mutating func take(_ change: MemberChange, of call: CallID, at now: Timestamp) {
    let member = change.member
    if member.state != .joined { return leave(member.user, call, change.cause, at: now) }
    note(member, in: call, at: now)
    // The device that takes over got no media, so the old one stays.
    if change.cause == .failed { fail(call, "transfer", "never-connected", [:]) }
  }

  private mutating func note(_ member: MemberState, in call: CallID, at now: Timestamp) {
    guard member.state == .joined, let participant = member.participants.first else { return }
    // In place, because a copy would copy all stays.
    if records[call]?.stays[member.user]?.participant != participant.participant {
      replaced(member.user, in: call, at: now)
      records[call, default: Record()].stays[member.user] = Stay(
        participant: participant.participant, since: now, wasConnected: false)
      records[call]?.participants.insert(participant.participant)
    }
    guard participant.connected, records[call]?.stays[member.user]?.wasConnected == false else { return }
    records[call]?.stays[member.user]?.wasConnected = true
    counts.joins[.connected, default: 0] &+= 1
  }

  /// The device returns under another number, before it was missed. If the media of the old one never arrived, that is its outcome.
  private mutating func replaced(_ user: UserID, in call: CallID, at now: Timestamp) {
    guard let stay = records[call]?.stays[user], !stay.wasConnected else { return }
    counts.joins[stay.since + Self.patience <= now ? .neverConnected : .leftEarly, default: 0] &+= 1
  }

  private mutating func leave(_ user: UserID, _ call: CallID, _ cause: MemberCause, at now: Timestamp) {
    guard let stay = records[call]?.stays.removeValue(forKey: user) else { return }
    let seconds = max(0, now.milliseconds - stay.since.milliseconds) / 1_000
    let more: Logger.Metadata = ["participant": "\(stay.participant)", "seconds": "\(seconds)"]
    let isLong = stay.since + Self.patience <= now
    if !stay.wasConnected {
      counts.joins[isLong || cause == .failed ? .neverConnected : .leftEarly, default: 0] &+= 1
    }
    if !stay.wasConnected, isLong || cause == .failed {
      fail(call, "media", "never-connected", more)
    } else if cause != .left, cause != .removed {
      fail(call, "media", cause == .failed ? "failed" : "lost", more)
    }
    if let key = records[call]?.keyless.removeValue(forKey: stay.participant), isLong {
      fail(call, "key", key.rawValue, more)
    }
  }

  private mutating func end(_ call: CallID, _ ended: Ended, at now: Timestamp) {
    for user in records[call]?.stays.keys.sorted() ?? [] { leave(user, call, .left, at: now) }
    let record = records.removeValue(forKey: call) ?? Record()
    counts.ends[ended.reason, default: 0] &+= 1
    Self.log(
      .info, call, "ended", ended.reason.rawValue, to: logger,
      [
        "seconds": "\(ended.seconds)", "participants": "\(record.oldParticipants + record.participants.count)",
        "failures": "\(record.failures)",
      ])
  }

  private mutating func fail(_ call: CallID, _ event: String, _ cause: String, _ more: Logger.Metadata) {
    records[call]?.failures += 1
    Self.log(.notice, call, event, cause, to: logger, more)
  }

  private static func log(
    _ level: Logger.Level, _ call: CallID, _ event: String, _ cause: String, to logger: Logger, _ more: Logger.Metadata
  ) {
    let metadata: Logger.Metadata = ["call": "\(call.text)", "event": "\(event)", "cause": "\(cause)"]
    logger.log(level: level, "call", metadata: metadata.merging(more) { first, _ in first })
  }
}
