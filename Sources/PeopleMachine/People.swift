package import CallMessages
import Contract
package import MediaModel

/// The state machine of people: users with their devices, the devices' connections and mailboxes, presence, topics, and questions to the app's back end.
///
/// It handles what clients send, passes on what concerns calls, and delivers the news of calls. Its state is keyed by user. Watches of roles, topics and
/// the services' connections span all users.
package struct People {
  package var configuration: CallConfiguration
  let digest: ([UInt8]) -> [UInt8]
  var directory: Directory
  var services = Services()
  var presence = PresenceTable()
  var topics = Topics()
  var questions: Questions
  var links = LastingLinks()
  var alerts = Alerts()
  /// A user's calls, in the order in which they began, as reported by the calls.
  var memberships: [UserID: [Membership]] = [:]
  /// Devices and users that lose their places, with the calls that have not confirmed it yet.
  var leaving: [Leaver: Set<CallID>] = [:]
  /// Devices without a subscription whose mailbox, or record, must be cleared at some time.
  var away: Set<Device> = []
  var nextSweep: Timestamp?
  package var journal = Journal()
  /// The number of requests that were passed on to calls.
  var turns: UInt64 = 0
  var now = Timestamp(milliseconds: 0)
  package var out = MachineOutput<ToCalls>()
  private var lastMessage = Message.unshared

  package init(configuration: CallConfiguration, incarnation: Incarnation, digest: @escaping ([UInt8]) -> [UInt8]) {
    self.configuration = configuration
    self.digest = digest
    questions = Questions(of: incarnation)
    directory = Directory()
  }

  /// Handles a command of a client, of the app's back end, or of the operator.
  package mutating func handle(_ command: NodeCommand, now time: Timestamp) {
    now = max(now, time)
    switch command {
    case .connect(let session, let identity): connect(session, identity)
    case .disconnect(let session): disconnect(session)
    case .subscribe(let session, .events, let mode): subscribe(session, mode)
    case .unsubscribe(let session, .events): unsubscribe(session)
    case .subscribe(let session, let channel, _): subscribe(session, to: channel)
    case .unsubscribe(let session, let channel): topics.remove(session, from: channel)
    case .acknowledge(let session, let seqs, let accepted): acknowledge(session, seqs, accepted: accepted)
    case .request(let session, let id, let request): respond(to: session, id, request)
    case .offer(let session, let id, let call, let offer, let tracks):
      if let identity = identity(of: session) {
        send(.offer(session, id: id, identity, call, ReadOffer(offer), tracks))
      }
    case .answer(let question, let allowed): answer(question, allowed: allowed)
    case .recording(let news): take(news)
    case .pushGone(let user, let endpoint): dropPush(endpoint, of: user)
    case .waitsAtLink(let link): noteWaiting(at: link)
    case .forget(let user): dismiss(.user(user))
    case .disconnectUser(let user): disconnect(user)
    case .endLinks(let user, let name): endLinks(of: user, named: name)
    case .media, .recordingFailed, .drain, .end, .failures, .timeout: break
    }
  }

  package mutating func handle(_ message: ToPeople, now time: Timestamp) {
    now = max(now, time)
    switch message {
    case .reply(let session, let id, let reply): self.reply(reply, to: session, id)
    case .checked(let request): ask(before: request)
    case .report(let session, let id, let report, let call, let stored):
      take(report, of: call, session, id, stored: stored)
    case .history(let session, let id, let query):
      if identity(of: session) != nil { out.effects.append(.history(session, id: id, query)) }
    case .speaks(let device, let call, let turn): holdOthers(of: device, speaking: Speaking(call: call, turn: turn))
    case .greeting(let session, let call, let state, let ring): greet(session, call, state, ring)
    case .topic(let session, let call, let answer): admit(session, to: call, answer)
    case .removed(let leaver, let call): confirmRemoval(of: leaver, from: call)
    case .news(let news, let call, let rev): take(news, of: call, rev: rev)
    }
  }

  package mutating func handleTimeout(now time: Timestamp) {
    now = max(now, time)
    giveUpQuestions()
    endExpiredLinks()
    pushAlerts()
    if let sweep = nextSweep, sweep <= now { clearMailboxes() }
  }

  package var nextDeadline: Timestamp? {
    [nextSweep, questions.next, links.nextEnd, alerts.next].compactMap { $0 }.min()
  }

  mutating func send(_ message: ToCalls) { out.messages.append(message) }

  /// A connection that is gone needs no reply.
  mutating func reply(_ reply: Reply, to session: SessionID, _ id: String) {
    if identity(of: session) != nil { out.effects.append(.client(.reply(session, id: id, reply))) }
  }

  mutating func makeMessage(_ body: EventBody, of call: CallID?, rev: UInt64? = nil) -> Message {
    lastMessage += 1
    return Message(id: lastMessage, event: EventMessage(at: now, call: call, rev: rev, body: body))
  }
}
