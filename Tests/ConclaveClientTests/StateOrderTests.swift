import STOMP
import Testing

@testable import ConclaveClient

@Suite(.timeLimit(.minutes(1)))
struct StateOrderTests {
  private static let call = "00000000-0000-4000-8000-000000000001"

  /// The reply and an event that was sent after it come in one read: Bob, who is in the state, has left since, and Carol has come in an event that was lost.
  @Test func aStateThatWasAskedForOverwritesNoNewerEvent() async throws {
    for seq: UInt64 in [1, 2, 3, 4, 5].map({ $0 * 10 }) {
      let server = try await FakeServer(
        reply: { destination, _ in
          if destination.hasSuffix("/rejoin") {
            return ("ok", #"{"call":\#(Self.state(with: ["bob"])),"participant":5,"ice":{"servers":[]}}"#)
          }
          return (
            "ok", destination.hasSuffix("/state") ? Self.state(with: ["bob", "carol"]) : #"{"fingerprint":"AAAA"}"#
          )
        },
        behind: { destination in
          let left = #"{"at":1,"call":"\#(Self.call)","user":"bob","state":"left","participants":[],"cause":"left"}"#
          return destination.hasSuffix("/state") ? FakeServer.event("call.member", seq: seq + 1, body: left) : nil
        })
      let client = CallClient(
        server: ServerAddress(host: "127.0.0.1", port: server.port, usesTLS: false),
        identity: try #require(DeviceIdentity(user: "alice", device: "phone")), token: { "good" })
      try await client.connect()
      let call = try await client.rejoin(Self.call)
      let silence = #"{"at":1,"call":"\#(Self.call)","participants":[]}"#
      try await server.event("call.state", seq: 1, body: Self.state(with: ["bob"]), on: 1)
      // Numbers are missing: the client asks for the state.
      try await server.event("speakers", seq: seq, body: silence, on: 1)
      for await received in server.frames where received.frame.headers["id"] == "a\(seq + 1)" { break }
      let members = try #require(await call.snapshot).members
      #expect(members.first { $0.user == "carol" }?.state == "joined")
      #expect(members.first { $0.user == "bob" }?.state == "left")
      await client.close()
    }
  }

  /// The call in which Alice's phone is participant 5; large, so that reading it takes its time.
  private static func state(with users: [String]) -> String {
    let people = (users + (0..<500).map { "user\($0)" }).enumerated().map { member($1, $0 + 6) }
    return
      #"{"at":1,"call":"\#(call)","id":"\#(call)","state":"active","media":"audio","initiator":"bob","startedAt":1,"epoch":4,"#
      + #""policy":{},"members":["# + ([member("alice", 5)] + people).joined(separator: ",") + "]}"
  }

  private static func member(_ user: String, _ participant: Int) -> String {
    #"{"user":"\#(user)","state":"joined","participants":[{"participant":\#(participant),"device":"phone","#
      + #""joinId":"AAAAAAAAAAAAAAAAAAAAAA==","connected":true,"held":false,"tracks":[]}]}"#
  }
}
