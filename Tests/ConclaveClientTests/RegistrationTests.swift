import Synchronization
import Testing

@testable import ConclaveClient

/// A device whose keys the server lacks gets no envelopes: it must neither look connected nor wait forever.
@Suite(.timeLimit(.minutes(5)))
struct RegistrationTests {
  @Test func aRefusedDeviceIsToldWhy() async throws {
    let server = try await FakeServer { _, _ in
      ("error", #"{"error":{"code":"auth.forbidden","message":"a service is no device"}}"#)
    }
    let client = try client(of: server)
    await #expect(throws: SignalingError.disconnected) { try await client.connect() }
    var events = client.events.makeAsyncIterator()
    #expect(await events.next() == .ended("auth.forbidden: a service is no device"))
    #expect(await events.next() == nil)
  }

  @Test func aDeviceThatIsOneTooFastTriesAgain() async throws {
    let asked = Mutex(0)
    let server = try await FakeServer { _, _ in
      let isFirst = asked.withLock { count in
        count += 1
        return count == 1
      }
      return isFirst
        ? ("error", #"{"error":{"code":"rate.limited","message":"later","retryAfterMs":20}}"#)
        : ("ok", #"{"fingerprint":"AAAA"}"#)
    }
    let client = try client(of: server)
    try await client.connect()
    #expect(asked.withLock { $0 } == 2)
    await client.close()
  }

  private func client(of server: FakeServer) throws -> CallClient {
    CallClient(
      server: ServerAddress(host: "127.0.0.1", port: server.port, usesTLS: false),
      identity: try #require(DeviceIdentity(user: "alice", device: "phone")), token: { "good" })
  }
}
