import CallMachine
package import CallMessages
package import MediaModel
import PeopleMachine

/// All people and calls of one server: `handle(command, now) -> [Effect]`, in virtual time, without a clock, a socket or a secret.
///
/// It holds two state machines. `People` owns the state keyed by user: devices, connections, mailboxes, presence, topics. `CallControl` owns the state keyed by
/// call. Neither reads the other's state: a `Node` passes the messages of each to the other, as values, until none are left. Invariants: a call's timers, peers and
/// envelopes end with it; events reach a device in the order of their effects; nothing a client sends can trap.
package struct Node {
  var people: People
  var control: CallControl
  var mail = Mail()

  /// The messages in transit between the two.
  struct Mail {
    var toPeople: [ToPeople] = []
    var toCalls: [ToCalls] = []
    var effects: [Effect] = []
  }

  /// The first run, with nothing stored.
  /// - Parameter random: returns 64 unpredictable bits per call.
  package init(configuration: CallConfiguration, hashing: Hashing, random: @escaping () -> UInt64) {
    let incarnation = Stored().incarnation
    people = People(configuration: configuration, incarnation: incarnation, digest: hashing.digest)
    control = CallControl(configuration: configuration, incarnation: incarnation, hashing: hashing, random: random)
  }

  /// After a restart: everybody is away, and the time of the outage counts (rule 11).
  /// - Parameters:
  ///   - stored: the state stored by the last run of the server. Timers that have expired since fire with the first
  ///     command.
  package init(
    configuration: CallConfiguration, hashing: Hashing, random: @escaping () -> UInt64,
    restoring stored: Stored, now: Timestamp
  ) {
    people = People(configuration: configuration, digest: hashing.digest, restoring: stored, now: now)
    control = CallControl(
      configuration: configuration, hashing: hashing, random: random, restoring: stored, now: now)
    // The restart itself changes nothing stored, except clocks.
    let journal = control.journal
    collect()
    exchange(now: now)
    control.journal = journal
    people.journal = People.Journal()
    mail.effects = []
  }

  /// Handles one command and returns what has to be done, in order. If `now` goes back, the last value is used.
  package mutating func handle(_ command: NodeCommand, now: Timestamp) -> [Effect] {
    runTimers(now: now)
    switch command {
    case .media(let event): control.take(event, now: now)
    case .drain: control.drain()
    case .recordingFailed(let call, let recording, let reason):
      control.stopRecording(recording, of: call, reason, now: now)
    case .failures(let call, let count): control.countFailures(count, in: call, now: now)
    case .end(let call): control.end(call, now: now)
    default: people.handle(command, now: now)
    }
    collect()
    exchange(now: now)
    // Timers that the command set in the past, such as 15 s that are already over, fire now.
    runTimers(now: now)
    people.tellPresence()
    collect()
    let changes = control.takeChanges() + people.takeChanges()
    let effects = mail.effects
    mail.effects = []
    return changes.isEmpty ? effects : changes.map(Effect.store) + effects
  }

  /// When `.timeout` has to be handled next; nil if nothing runs.
  package var nextDeadline: Timestamp? { [control.nextDeadline, people.nextDeadline].compactMap { $0 }.min() }

  /// Changes limits and rules. Running calls keep those with which they began.
  package mutating func configure(_ change: (inout CallConfiguration) -> Void) {
    change(&people.configuration)
    change(&control.configuration)
  }

  /// The recordings of running calls.
  package var recordings: [RecordingID: CallID] { control.recordings }

  /// For the metrics.
  package var alertCounts: AlertCounts { people.alertCounts }

  /// No call runs.
  package var isIdle: Bool { control.isIdle }

  /// The whole state, for a disk that missed some changes.
  package var everything: [StoreChange] { [.reset] + control.everything + people.everything }

  /// The user who is charged for the consequences of the command; nil for the server, a service, the media plane and the operator. Must be asked before the command
  /// is handled, because a session that disconnects has no user afterwards.
  package func payer(of command: NodeCommand) -> UserID? {
    switch command {
    case .connect(_, let identity): identity.isService ? nil : identity.device.user
    case .disconnect(let session), .subscribe(let session, _, _), .unsubscribe(let session, _),
      .acknowledge(let session, _, _), .request(let session, _, _), .offer(let session, _, _, _, _):
      people.user(on: session)
    case .answer(let question, _):
      people.asker(of: question)
    case .recording(let news): news.payer
    case .media, .recordingFailed, .pushGone, .waitsAtLink, .forget, .end, .disconnectUser, .endLinks, .failures,
      .drain, .timeout:
      nil
    }
  }

  private mutating func runTimers(now: Timestamp) {
    while control.handleTimeout(now: now) {
      collect()
      exchange(now: now)
    }
    people.handleTimeout(now: now)
    collect()
    exchange(now: now)
  }

  // MARK: messages

  /// Delivers all messages, those to people first. So an envelope that counts as acknowledged once it is written is acknowledged after the other events
  /// of its transition are written.
  private mutating func exchange(now: Timestamp) {
    var next = 0
    while true {
      if !mail.toPeople.isEmpty {
        let messages = mail.toPeople
        mail.toPeople = []
        for message in messages { people.handle(message, now: now) }
      } else if next < mail.toCalls.count {
        control.handle(mail.toCalls[next], now: now)
        next += 1
      } else {
        mail.toCalls.removeAll(keepingCapacity: true)
        return
      }
      collect()
    }
  }

  private mutating func collect() {
    control.out.move(to: &mail.toPeople, &mail.effects)
    people.out.move(to: &mail.toCalls, &mail.effects)
  }
}
