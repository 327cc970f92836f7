import Contract
import Foundation
import MediaModel
import Synchronization
import Testing

@testable import ConclaveClient

/// The server accepts a ring's envelopes only if each is for a device of a callee (protocol section 5.7).
@Suite(.timeLimit(.minutes(5)))
struct RefusedRingTests {
  /// A server that lists Bob's devices, of which the tablet is removed after the first look-up, and refuses envelopes
  /// by `refuses`.
  private final class Ringing: Sendable {
    private struct State {
      var lists = 0
      /// The devices for which each `start` had an envelope.
      var starts: [[String]] = []
    }

    private let state = Mutex(State())
    private let devices: [DeviceEntry]
    private let refuses: @Sendable (_ devices: [String]) -> Bool

    init(refuses: @escaping @Sendable (_ devices: [String]) -> Bool) throws {
      devices = try ["phone", "tablet"].map { name in
        let identity = try #require(DeviceIdentity(user: "bob", device: name))
        return DeviceEntry(
          user: identity.address.user, device: identity.address.device, name: nil, keys: identity.registration,
          fingerprint: Base64Bytes(identity.fingerprint), registeredAt: Timestamp(milliseconds: 1))
      }
      self.refuses = refuses
    }

    var starts: [[String]] { state.withLock { $0.starts } }

    func reply(_ destination: String, _ body: String) -> (status: String, body: String)? {
      switch destination {
      case "/app/devices/list": ("ok", list())
      case "/app/calls/start": start(body)
      default: ("ok", #"{"fingerprint":"AAAA"}"#)
      }
    }

    private func list() -> String {
      let lists = state.withLock { state in
        state.lists += 1
        return state.lists
      }
      let listed = Devices(devices: lists == 1 ? devices : Array(devices.prefix(1)))
      return String(decoding: (try? JSONEncoder().encode(listed)) ?? Data(), as: UTF8.self)
    }

    private func start(_ body: String) -> (status: String, body: String) {
      guard let request = try? JSONDecoder().decode(StartCall.self, from: Data(body.utf8)) else {
        return ("error", "{}")
      }
      let envelopes = (request.envelopes ?? []).map(\.to.device.text)
      state.withLock { $0.starts.append(envelopes) }
      guard !refuses(envelopes) else {
        return (
          "error", #"{"error":{"code":"keys.not-allowed","message":"an envelope is for a device that no callee has"}}"#
        )
      }
      let state =
        #"{"id":"\#(request.id?.text ?? "")","state":"ringing","media":"audio","initiator":"alice","startedAt":1,"epoch":1,"#
        + #""policy":{},"members":[{"user":"alice","state":"joined","participants":[{"participant":1,"device":"phone","#
        + #""joinId":"\#(request.joinId?.base64 ?? "")","connected":false,"held":false,"tracks":[]}]}]}"#
      return ("ok", #"{"call":\#(state),"participant":1,"ice":{"servers":[]}}"#)
    }
  }

  private func client(of ringing: Ringing) async throws -> CallClient {
    let server = try await FakeServer { ringing.reply($0, $1) }
    let client = CallClient(
      server: ServerAddress(host: "127.0.0.1", port: server.port, usesTLS: false),
      identity: try #require(DeviceIdentity(user: "alice", device: "phone")), token: { "good" })
    try await client.connect()
    return client
  }

  @Test func devicesThatRemainAreRungWithAKey() async throws {
    let ringing = try Ringing { $0.contains("tablet") }
    let client = try await client(of: ringing)
    let call = try await client.start(callees: ["bob"], media: .audio)
    #expect(ringing.starts == [["phone", "tablet"], ["phone"]])
    #expect(await call.devices.map(\.device) == ["phone", "phone"])
    await client.close()
  }

  @Test func ringsWithoutAKeyAreNotSentWhenTheServerTakesNone() async throws {
    let ringing = try Ringing { !$0.isEmpty }
    let client = try await client(of: ringing)
    await #expect(
      throws: SignalingError.refused(
        code: "keys.not-allowed", message: "an envelope is for a device that no callee has")
    ) { _ = try await client.start(callees: ["bob"], media: .audio) }
    #expect(ringing.starts.count == 3)
    #expect(ringing.starts.allSatisfy { !$0.isEmpty })
    await client.close()
  }
}
