@testable import PeopleMachine
@testable import CallMachine
import Contract
import MediaModel

import CallMessages
@testable import Calls

/// `People` and `CallControl` agree once all messages between them have arrived, however late. Every request is
/// answered once, and each device has been told the true state of its call.
struct LateInvariants {
  let verdict: Verdict
  private(set) var requests: [String: Request] = [:]
  /// The users that the app's back end allowed a request to reach, by the request's id.
  var allowed: [String: Set<UserID>] = [:]
  /// The requests that wait for the back end.
  var waiting: [QuestionID: String] = [:]
  /// Requests without an answer.
  private var open: [String: SessionID] = [:]
  /// Requests whose reply is the first to mention a participant.
  private var fresh: Set<String> = []
  private var participants: [CallID: Set<ParticipantNumber>] = [:]
  private var lastSeq: [Device: UInt64] = [:]
  /// The members of a call as told to a connection since the call let the device in: by its reply, and by every event
  /// that followed.
  private var beliefs: [SessionID: [CallID: [UserID: MemberState]]] = [:]

  init(_ verdict: Verdict) { self.verdict = verdict }

  /// Connections, requests and numbers of a server that died are gone.
  mutating func restart() {
    requests = [:]
    allowed = [:]
    waiting = [:]
    open = [:]
    fresh = []
    beliefs = [:]
  }

  // MARK: each step

  mutating func note(_ command: NodeCommand) {
    switch command {
    case .request(let session, let id, let request):
      requests[id] = request
      open[id] = session
    case .offer(let session, let id, _, _, _): open[id] = session
    // The device is never told of events that expire while it does not read.
    case .unsubscribe(let session, .events): beliefs[session] = nil
    default: break
    }
  }

  /// A call lets a device in, by the request `id`.
  mutating func note(_ joined: Joined, by id: String) {
    if participants[joined.call.id, default: []].insert(joined.participant).inserted { fresh.insert(id) }
  }

  mutating func answered(_ id: String, _ session: SessionID) {
    verdict.require(.requestIsAnswered, open.removeValue(forKey: id) == session, "a request was answered twice")
  }

  /// - Parameters:
  ///   - devices: the device at the other end of each connection.
  ///   - isReading: whether the connection is subscribed to events.
  mutating func check(
    _ effects: [CallMessages.Effect], _ devices: [SessionID: Device], isReading: (SessionID) -> Bool
  ) {
    for effect in effects {
      switch effect {
      case .client(.reply(let session, let id, let reply)):
        answered(id, session)
        guard case .ok(.joined(let joined)) = reply else { break }
        // A repetition gets the first reply, with the state at that time (rule 14). Events that wait for a device may
        // expire.
        if fresh.remove(id) != nil, isReading(session) { believe(joined.call, session) }
      case .history(let session, let id, _): answered(id, session)
      case .recordings(let session, let id, _): answered(id, session)
      case .client(.event(let session, let delivery)):
        if let device = devices[session] { follow(delivery, session, device) }
      default: break
      }
    }
  }

  private mutating func believe(_ state: CallState, _ session: SessionID) {
    beliefs[session, default: [:]][state.id] = Dictionary(
      uniqueKeysWithValues: state.members.map { ($0.user, $0.withoutTracks) })
  }

  private mutating func follow(_ delivery: EventDelivery, _ session: SessionID, _ device: Device) {
    // It has not been acknowledged, and may be older than the state.
    guard !delivery.redelivered else { return }
    verdict.require(
      .inOrder, delivery.seq > lastSeq[device] ?? 0, "seq \(delivery.seq) after \(lastSeq[device] ?? 0)")
    lastSeq[device] = delivery.seq
    guard let call = delivery.message.call else { return }
    for change in delivery.message.body.memberChanges {
      beliefs[session]?[call]?[change.member.user] = change.member.withoutTracks
      // A user that left is told nothing about the call until it comes back.
      let isListening = [.ringing, .joined, .disconnected].contains(change.member.state)
      if change.member.user == device.user, !isListening { beliefs[session]?[call] = nil }
    }
    if case .ended = delivery.message.body { beliefs[session]?[call] = nil }
  }

  // MARK: when nothing is under way

  /// - Parameters:
  ///   - connected: connections that still exist; requests of others need no answer.
  ///   - waiting: requests that the app's back end has not answered.
  ///   - changes: the changes that wait to be told.
  mutating func checkQuiet(
    _ node: Node, connected: Set<SessionID>, waiting: Set<String>, changes: WaitingInvariants
  ) {
    open = open.filter { connected.contains($0.value) }
    let forgotten = open.keys.filter { !waiting.contains($0) }.sorted()
    verdict.require(
      .requestIsAnswered, forgotten.isEmpty, "no answer to \(forgotten.map { String(describing: requests[$0]) })")
    checkMembers(node)
    checkPeople(node)
    checkBeliefs(node, connected, changes)
  }

  /// The people's side knows who is in which call, and the calls know which devices are connected.
  private func checkMembers(_ node: Node) {
    let directory = node.people.directory
    for (id, call) in node.control.calls {
      for member in call.members {
        let part = node.people.part(of: member.user, in: id)
        verdict.require(
          .peopleFollowCalls, part == call.part(of: member.user),
          "\(member.user.text) is \(member.phase), and known as \(String(describing: part))")
        for participant in member.participants where member.isJoined {
          verdict.require(
            .peopleFollowCalls, directory[participant.device] != nil,
            "\(participant.device) is in a call, and is no device")
          verdict.require(
            .callsFollowPeople, participant.isSignaling == directory.isConnected(participant.device),
            "the connection of \(participant.device) is taken for \(participant.signaling)")
        }
      }
    }
    for (user, places) in node.people.memberships {
      verdict.require(
        .peopleFollowCalls, places.allSatisfy { node.control.calls[$0.call]?.member(user) != nil },
        "\(user.text) is known as a member of a call in which it is not")
    }
  }

  private func checkPeople(_ node: Node) {
    verdict.require(.settles, node.people.leaving.isEmpty, "a removal is never confirmed")
    for device in node.people.directory.devices {
      let greeting = node.people.directory[device]?.connection?.greeting
      verdict.require(.settles, greeting == nil, "a device waits forever for \(greeting?.missing.count ?? 0) calls")
    }
  }

  /// A participant that has read all events since its join knows the true state of the members.
  private func checkBeliefs(_ node: Node, _ connected: Set<SessionID>, _ changes: WaitingInvariants) {
    for session in connected {
      guard let calls = beliefs[session], let device = node.people.directory.device(of: session),
        node.people.directory[device]?.connection?.events != nil
      else { continue }
      for (id, members) in calls where !changes.isWaiting(device.user, id) {
        guard let call = node.control.calls[id], (try? call.participant(of: device)) != nil else { continue }
        for member in call.members {
          verdict.require(
            .deviceSeesMembers, members[member.user] == member.state.withoutTracks,
            "\(device) sees \(String(describing: members[member.user])), it is \(member.state)")
        }
      }
    }
  }
}
