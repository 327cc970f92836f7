import CallMessages
import Contract
import JSON
import Listening
import Logging
import MediaModel
import NIOCore
import NIOPosix
import Synchronization
import Testing

@testable import Connections

/// Deliveries reach connections of any front; here the connections record what they get.
@Suite(.timeLimit(.minutes(5))) struct DeliveryTests {
  private enum Step: Sendable {
    case wrote(Outgoing), sent, closed(String), cutOff(SignalingStatistics.Ending)
  }

  private final class KeepingConnection: ClientConnection, Sendable {
    private let kept = Mutex<[Step]>([])

    var steps: [Step] { kept.withLock { $0 } }

    var isSent: Bool { steps.contains { if case .sent = $0 { true } else { false } } }

    func deliver(_ outgoing: Outgoing) { kept.withLock { $0.append(.wrote(outgoing)) } }
    func send() { kept.withLock { $0.append(.sent) } }
    func sendSoon() { kept.withLock { $0.append(.sent) } }
    func close(reason: String) { kept.withLock { $0.append(.closed(reason)) } }
    func cutOff(_ ending: SignalingStatistics.Ending) { kept.withLock { $0.append(.cutOff(ending)) } }
  }

  private let listeners = Listeners(
    ListeningConfiguration(), group: MultiThreadedEventLoopGroup.singleton,
    logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, clock: { Timestamp(milliseconds: 0) })

  /// Runs `body` with clients with the given number of connections, on all event loops.
  private func withClients(
    _ count: Int, _ limits: ClientLimits = ClientLimits(),
    _ body: (ConnectedClients, [(SessionID, KeepingConnection)]) async throws -> Void
  ) async throws {
    let group = MultiThreadedEventLoopGroup.singleton
    let clients = ConnectedClients(limits, of: Incarnation(0), listeners, on: group.next())
    defer { clients.stop(message: "over") }
    var connections: [(SessionID, KeepingConnection)] = []
    for _ in 0..<count {
      let (session, connection, loop) = (clients.sessionIDs.next(), KeepingConnection(), group.next())
      try await loop.submit {
        clients.connections.insert(ConnectionTable.Entry(connection, on: loop), for: session)
      }.get()
      connections.append((session, connection))
    }
    try await body(clients, connections)
  }

  private func until(_ isReached: () -> Bool) async throws {
    while !isReached() {
      try Task.checkCancellation()
      await Task.yield()
    }
  }

  private let message = EventMessage(
    at: Timestamp(milliseconds: 5), call: CallID("c1"), body: .switchKeys(SwitchKeys(epoch: 3)))

  /// A front recognizes by the object's identity what it has already written.
  @Test func anEventForFourHundredConnectionsIsOneObject() async throws {
    try await withClients(400) { clients, connections in
      clients.deliver(
        connections.map { session, _ in
          .event(session, EventDelivery(seq: session.rawValue, redelivered: false, messageID: 9, message: message))
        })
      try await until { connections.allSatisfy(\.1.isSent) }
      var events: Set<ObjectIdentifier> = []
      for (session, connection) in connections {
        guard case .wrote(.event(let event, let seq, false))? = connection.steps.first else {
          Issue.record("an event was expected")
          continue
        }
        events.insert(ObjectIdentifier(event))
        #expect(seq == session.rawValue && connection.steps.count == 2)
        #expect(event.channel == .events && event.name == message.body.name)
        #expect(try Array(event.body.readableBytesView) == JSONCoding.encode(message))
      }
      #expect(events.count == 1)
    }
  }

  @Test func anEventOfATopicIsOneObjectToo() async throws {
    try await withClients(3) { clients, connections in
      let call = try #require(CallID("c1"))
      clients.deliver(connections.map { .publish($0.0, .call(call), messageID: 4, message) })
      clients.deliver([.publish(connections[0].0, .call(call), messageID: 0, message)])
      try await until { connections[0].1.steps.count == 4 && connections[1...].allSatisfy(\.1.isSent) }
      let events = connections.compactMap { connection -> EncodedEvent? in
        guard case .wrote(.publish(let event, newestOnly: false))? = connection.1.steps.first else { return nil }
        return event
      }
      #expect(
        Set(events.map(ObjectIdentifier.init)).count == 1 && events.count == 3 && events[0].channel == .call(call))
      guard case .wrote(.publish(_, newestOnly: true)) = connections[0].1.steps[2] else {
        Issue.record("the answer to a SUBSCRIBE was expected")
        return
      }
    }
  }

  @Test func repliesAndTheEndComeInOrder() async throws {
    try await withClients(1) { clients, connections in
      let (session, connection) = connections[0]
      let failure = RequestError(.requestUnknown, "there is no such request")
      clients.deliver([
        .reply(session, id: "1", .ok(.nothing)), .reply(session, id: "2", .failed(failure)),
        .admission(session, .serviceCalls, refusal: "no"), .close(session, reason: "bye"),
        .close(SessionID(rawValue: 1 << 40), reason: "x"),
      ])
      try await until { connection.isSent }
      let steps = connection.steps
      guard case .wrote(.reply(id: "1", let first)) = steps[0], case .wrote(.reply(id: "2", let second)) = steps[1],
        case .wrote(.admission(refusal: "no")) = steps[2], case .closed("bye") = steps[3]
      else {
        Issue.record("another order was expected: \(steps.count)")
        return
      }
      #expect(first.isOK && first.body == Array("{}".utf8))
      #expect(try !second.isOK && second.body == JSONCoding.encode(ErrorReply(error: failure)))
      #expect(listeners.statistics.drops == [.sessionGone: 1])
    }
  }

  @Test func theSlowestConnectionIsCutOffWhateverItsFront() async throws {
    var limits = ClientLimits()
    limits.userOutbound = 1_000
    try await withClients(2, limits) { clients, connections in
      let user = try #require(UserID("alice"))
      for (index, bytes) in [900, 200].enumerated() {
        let (session, connection) = connections[index]
        let loop = MultiThreadedEventLoopGroup.singleton.next()
        try await loop.submit {
          clients.slowReaders.report(session, of: user, bytes: bytes, ConnectionTable.Entry(connection, on: loop))
        }.get()
      }
      try await until { !connections[0].1.steps.isEmpty }
      guard case .cutOff(.userBacklogFull) = connections[0].1.steps[0] else {
        Issue.record("the slowest was not cut off")
        return
      }
      #expect(connections[1].1.steps.isEmpty && clients.backlogBytes == 200)
    }
  }
}
