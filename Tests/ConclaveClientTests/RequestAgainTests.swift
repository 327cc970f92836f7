import Contract
import NIOPosix
import Synchronization
import Testing

@testable import ConclaveClient

@Suite(.timeLimit(.minutes(1)))
struct RequestAgainTests {
  /// Protocol section 4, rule 14: a repetition is taken for the first.
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
}
