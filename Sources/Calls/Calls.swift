import Contract
package import MediaModel

/// The state machine of all calls: `handle(command, now) -> [Effect]`, in virtual time, without a clock, a socket or a secret of its own.
///
/// A command becomes a transition of one `Call`, whose `Outputs` are then carried out here: events go to mailboxes and connections, timers to `Timers`.
/// Invariants: a call's timers, peers and envelopes go with it; events reach a device in the order of their effects; nothing a client sends can trap.
package struct Calls {
  let configuration: Configuration
  let digest: ([UInt8]) -> [UInt8]
  let random: () -> UInt64
  var directory = Directory()
  var calls: [CallID: Call] = [:]
  /// The calls that a user is a member of, in the order in which they came.
  var memberships: [UserID: [CallID]] = [:]
  var peers: [PeerID: (call: CallID, user: UserID)] = [:]
  /// The calls that run, by what started them (rule 14).
  var starts: [JoinToken: CallID] = [:]
  var ended: EndedCalls
  var timers = Timers()
  var services = Services()
  var presence = Presence()
  var topics = Topics()
  var questions = Questions()
  /// The server is about to stop.
  var isDraining = false
  /// Devices without a subscription whose mailbox, or record, has to be cleared some day.
  var away: Set<Device> = []
  var nextSweep: Timestamp?
  var effects: [Effect] = []
  var journal = Journal()
  /// Envelopes and rings that were just written to a subscription with `auto`: they count as acknowledged.
  var written: [(device: Device, event: EventMessage)] = []
  var now = Timestamp(milliseconds: 0)
  private var lastPeer: UInt64 = 0
  private var lastMessage = Message.unshared

  /// - Parameters:
  ///   - digest: SHA-256.
  ///   - random: 64 unpredictable bits a call.
  package init(
    configuration: Configuration, digest: @escaping ([UInt8]) -> [UInt8], random: @escaping () -> UInt64
  ) {
    self.configuration = configuration
    self.digest = digest
    self.random = random
    ended = EndedCalls(capacity: configuration.maximumEndedCalls)
  }

  /// Takes one command and returns what has to be done, in order. A `now` that goes back counts as the last one.
  package mutating func handle(_ command: Command, now time: Timestamp) -> [Effect] {
    now = max(now, time)
    runTimers()
    switch command {
    case .connect(let session, let identity): connect(session, identity)
    case .disconnect(let session): disconnect(session)
    case .subscribe(let session, .events, let mode): subscribe(session, mode)
    case .unsubscribe(let session, .events): unsubscribe(session)
    case .subscribe(let session, let channel, _): subscribe(session, to: channel)
    case .unsubscribe(let session, let channel): topics.remove(session, from: channel)
    case .acknowledge(let session, let seq, let accepted): acknowledge(session, seq, accepted: accepted)
    case .request(let session, let id, let request): respond(to: session, id, request)
    case .offer(let session, let id, let call, let offer, let tracks):
      take(offer, tracks, of: call, session: session, id: id)
    case .media(let event): take(event)
    case .answer(let question, let allowed): answer(question, allowed: allowed)
    case .forget(let user): forget(user)
    case .drain: isDraining = true
    case .timeout: break
    }
    // Timers that the command set to be due already, as 15 s that are over, fire now.
    runTimers()
    tellPresence()
    let changes = takeChanges()
    defer { effects = [] }
    return changes.isEmpty ? effects : changes.map(Effect.store) + effects
  }

  /// When `.timeout` has to be handled next; nil while nothing runs.
  package var nextDeadline: Timestamp? {
    [timers.next, nextSweep, questions.next].compactMap { $0 }.min()
  }

  private mutating func runTimers() {
    while let key = timers.popDue(at: now) {
      var out = Outputs()
      calls[key.call]?.handleTimeout(key.timer, now: now, out: &out)
      carryOut(out, of: key.call)
    }
    giveUpQuestions()
    if let sweep = nextSweep, sweep <= now { clearMailboxes() }
  }

  mutating func makePeer() -> PeerID {
    lastPeer += 1
    return PeerID(rawValue: lastPeer)
  }

  mutating func makeMessage(_ body: EventBody, of call: CallID?) -> Message {
    lastMessage += 1
    return Message(id: lastMessage, event: EventMessage(at: now, call: call, body: body))
  }

  /// A random UUID (RFC 9562 section 5.4).
  func makeCallID() -> CallID {
    let high = random() & ~0xf000 | 0x4000
    let low = random() & ~(0b11 << 62) | 0b10 << 62
    let digits = [high, low].map { word in
      let text = String(word, radix: 16)
      return String(repeating: "0", count: 16 - text.count) + text
    }.joined()
    var text = ""
    for (place, digit) in digits.enumerated() {
      if [8, 12, 16, 20].contains(place) { text += "-" }
      text.append(digit)
    }
    return CallID(unchecked: text)
  }

  /// The server's own for clients that send none.
  func makeJoinId() -> Base64Bytes {
    Base64Bytes([random(), random()].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } })
  }
}

extension Calls {
  /// No call runs.
  package var isIdle: Bool { calls.isEmpty }

  /// Calls that run, and the devices that are joined in them.
  package var counts: (calls: Int, participants: Int) {
    (calls.count, calls.values.reduce(0) { $0 + $1.joinedCount })
  }
}
