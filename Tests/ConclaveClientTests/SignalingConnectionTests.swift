import Contract
import MediaModel
import NIOCore
import NIOPosix
import STOMP
import Synchronization
import Testing

@testable import ConclaveClient

/// The connection to a server on a real socket, which behaves as each test needs.
@Suite(.timeLimit(.minutes(5)))
struct SignalingConnectionTests {
  private static let silence = #"{"at":1,"call":"c","participants":[2]}"#

  private func connection(to server: FakeServer, token: String = "good") -> SignalingConnection {
    SignalingConnection(
      address: ServerAddress(host: "127.0.0.1", port: server.port, usesTLS: false), user: "alice", device: "phone",
      group: .singletonMultiThreadedEventLoopGroup, token: { token })
  }

  private func connected(to server: FakeServer) async -> SignalingConnection {
    let connection = connection(to: server)
    await connection.open()
    for await status in connection.statuses where status == .connected { break }
    return connection
  }

  @Test func connectsWithTokenDeviceAndSubscriptions() async throws {
    let server = try await FakeServer()
    let connection = await connected(to: server)
    var frames: [Frame] = []
    for await received in server.frames {
      frames.append(received.frame)
      if frames.count == 3 { break }
    }
    #expect(frames[0].headers["passcode"] == "good")
    #expect(frames[0].headers["device"] == "phone")
    #expect(frames[1].headers["destination"] == "/user/queue/replies")
    #expect(frames[2].headers["destination"] == "/user/queue/events")
    #expect(frames[2].headers["ack"] == "client-individual")
    await connection.close()
  }

  @Test func repliesFindTheirRequests() async throws {
    let server = try await FakeServer { destination, _ in
      destination.hasSuffix("end")
        ? ("error", #"{"error":{"code":"call.not-initiator","message":"only the initiator"}}"#)
        : ("ok", #"{"calls":[]}"#)
    }
    let connection = await connected(to: server)
    async let list = connection.request(.listCalls, reply: CallList.self)
    #expect(try await list.calls.isEmpty)
    await #expect(throws: SignalingError.refused(code: "call.not-initiator", message: "only the initiator")) {
      _ = try await connection.request(.call(CallID("c")!, .end), reply: NoBody.self)
    }
    await #expect(throws: SignalingError.notUnderstood) {
      _ = try await connection.request(.listCalls, reply: Joined.self)
    }
    await connection.close()
  }

  /// After the highest number no number is missing, and a lower one is a normal event.
  @Test func aNumberAtTheEndOfTheRangeDoesNoHarm() async throws {
    let server = try await FakeServer()
    let connection = await connected(to: server)
    var events = connection.deliveries.makeAsyncIterator()
    for (seq, followsGap) in [
      (UInt64.max - 1, false), (.max, false), (0, false), (.max, true), (.max, false), (1, false),
    ] {
      try await server.event("speakers", seq: seq, body: Self.silence, on: 1)
      let delivery = try #require(await events.next())
      #expect(delivery.seq == seq && delivery.followsGap == followsGap)
    }
    await connection.close()
  }

  @Test func eventsAreAcknowledgedOneByOneAndUnknownOnesToo() async throws {
    let server = try await FakeServer()
    let connection = await connected(to: server)
    try await server.event("from.the.future", seq: 1, body: "{}", on: 1)
    try await server.event("speakers", seq: 2, body: Self.silence, on: 1)
    var events = connection.deliveries.makeAsyncIterator()
    let delivery = try #require(await events.next())
    #expect(delivery.seq == 2)
    #expect(delivery.message.body == .speakers(Speakers(participants: [2])))
    connection.acknowledge(delivery, accepted: false)
    var answers: [Frame] = []
    for await received in server.frames where received.frame.command == .ack || received.frame.command == .nack {
      answers.append(received.frame)
      if answers.count == 2 { break }
    }
    #expect(answers.map(\.command) == [.ack, .nack])
    #expect(answers.map { $0.headers["id"] } == ["a1", "a2"])
    await connection.close()
  }

  @Test func comesBackAfterALostConnectionAndNoticesAGap() async throws {
    let server = try await FakeServer()
    let connection = await connected(to: server)
    try await server.event("speakers", seq: 1, body: Self.silence, on: 1)
    var events = connection.deliveries.makeAsyncIterator()
    let first = try #require(await events.next())
    #expect(!first.followsGap)
    try await server.drop(1)
    for await status in connection.statuses where status == .connected { break }
    // An event that was handled before is skipped when it is redelivered.
    try await server.event("speakers", seq: 1, body: Self.silence, redelivered: true, on: 2)
    try await server.event("speakers", seq: 5, body: Self.silence, on: 2)
    let second = try #require(await events.next())
    #expect(second.seq == 5)
    #expect(second.followsGap)
    await connection.close()
  }

  @Test func aRequestFailsWhenItsConnectionBreaks() async throws {
    let server = try await FakeServer { _, _ in nil }
    let connection = await connected(to: server)
    let waiting = Task { try await connection.request(.listCalls, reply: CallList.self) }
    for await received in server.frames where received.frame.command == .send { break }
    try await server.drop(1)
    await #expect(throws: SignalingError.disconnected) { _ = try await waiting.value }
    await connection.close()
  }

  @Test(arguments: ["replaced by a newer connection", "this device was removed"])
  func aReplacedOrRemovedDeviceStaysAway(_ message: String) async throws {
    let server = try await FakeServer()
    let connection = await connected(to: server)
    try await server.fail(message, on: 1)
    var last: SignalingConnection.Status?
    for await status in connection.statuses { last = status }
    #expect(last == .ended(message))
  }

  @Test func anExpiredTokenIsFollowedByAFreshOne() async throws {
    let server = try await FakeServer()
    let tokens = Mutex(0)
    let connection = SignalingConnection(
      address: ServerAddress(host: "127.0.0.1", port: server.port, usesTLS: false), user: "alice", device: "phone",
      group: .singletonMultiThreadedEventLoopGroup
    ) {
      tokens.withLock {
        $0 += 1
        return "token \($0)"
      }
    }
    await connection.open()
    for await status in connection.statuses where status == .connected { break }
    try await server.fail("token expired", on: 1)
    for await status in connection.statuses where status == .connected { break }
    var passcodes: [String] = []
    for await received in server.frames where received.frame.command == .connect {
      passcodes.append(received.frame.headers["passcode"] ?? "")
      if passcodes.count == 2 { break }
    }
    #expect(passcodes == ["token 1", "token 2"])
    await connection.close()
  }

  @Test func aRequestWithoutAConnectionFails() async throws {
    let server = try await FakeServer()
    let connection = connection(to: server)
    await #expect(throws: SignalingError.disconnected) {
      _ = try await connection.request(.listCalls, reply: CallList.self)
    }
  }

  /// The server does not decide who this device is: under another name its rings and devices would be somebody else's.
  @Test func aServerThatTakesTheDeviceForAnothersIsLeft() async throws {
    let server = try await FakeServer(user: "mallory")
    let connection = connection(to: server)
    await connection.open()
    var last: SignalingConnection.Status?
    for await status in connection.statuses { last = status }
    #expect(last == .ended("the server took this device for another one"))
  }
}

extension SignalingConnection {
  /// The events among the arriving messages.
  fileprivate nonisolated var deliveries: AsyncCompactMapSequence<ArrivalQueue, ReceivedEvent> {
    arrivals.compactMap { if case .event(let delivery) = $0 { delivery } else { nil } }
  }
}
