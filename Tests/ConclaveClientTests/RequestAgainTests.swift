import Contract
import NIOCore
import NIOPosix
import STOMP
import Synchronization
import Testing

@testable import ConclaveClient

@Suite(.timeLimit(.minutes(5)))
struct RequestAgainTests {
  /// Protocol section 4, rule 14: a repetition counts as the first request.
  @Test func aRequestInFlightIsAnsweredOnTheNextConnection() async throws {
    let asked = Mutex(0)
    let server = try await FakeServer { destination, _ in
      guard destination == "/app/calls/list" else { return ("ok", #"{"fingerprint":"AAAA"}"#) }
      let isFirst = asked.withLock { count in
        count += 1
        return count == 1
      }
      return isFirst ? nil : ("ok", #"{"calls":[]}"#)
    }
    let client = CallClient(
      server: ServerAddress(host: "127.0.0.1", port: server.port, usesTLS: false),
      identity: try #require(DeviceIdentity(user: "alice", device: "phone")), token: { "good" })
    try await client.connect()
    let list = Task { try await client.requestAgain(.listCalls, reply: CallList.self) }
    for await received in server.frames where received.frame.headers["destination"] == "/app/calls/list" { break }
    try await server.drop(1)
    #expect(try await list.value.calls.isEmpty)
    #expect(asked.withLock { $0 } == 2)
    await client.close()
  }

  /// A device that joins a large call uses up its units, but still needs the keys of all others.
  @Test(arguments: ["rate.limited", "server.busy"])
  func aRequestThatTheServerHasNoRoomForIsMadeAgain(code: String) async throws {
    let asked = Mutex<[String: Int]>([:])
    let server = try await FakeServer { destination, _ in
      let count = asked.withLock { asked in
        asked[destination, default: 0] += 1
        return asked[destination] ?? 0
      }
      switch destination {
      case "/app/calls/list" where count == 3: return ("ok", #"{"calls":[]}"#)
      case "/app/calls/list", "/app/history/list": return ("error", #"{"error":{"code":"\#(code)","message":"later"}}"#)
      case "/app/devices/list": return ("error", #"{"error":{"code":"auth.forbidden","message":"no"}}"#)
      default: return ("ok", #"{"fingerprint":"AAAA"}"#)
      }
    }
    let client = CallClient(
      server: ServerAddress(host: "127.0.0.1", port: server.port, usesTLS: false),
      identity: try #require(DeviceIdentity(user: "alice", device: "phone")),
      group: .singletonMultiThreadedEventLoopGroup,
      pause: .milliseconds(1), token: { "good" })
    try await client.connect()
    #expect(try await client.requestAgain(.listCalls, reply: CallList.self).calls.isEmpty)
    await #expect(throws: SignalingError.refused(code: code, message: "later")) {
      try await client.requestAgain(.history(.list(ListHistory(before: nil, limit: nil))), reply: HistoryList.self)
    }
    await #expect(throws: SignalingError.refused(code: "auth.forbidden", message: "no")) {
      try await client.requestAgain(.people(.listDevices(ListDevices(users: []))), reply: Devices.self)
    }
    let counts = asked.withLock { $0 }
    #expect(counts["/app/calls/list"] == 3 && counts["/app/history/list"] == 3)
    #expect(counts["/app/devices/list"] == 1, "another refusal is final")
    await client.close()
  }
}
