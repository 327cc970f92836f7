import STOMP
import Testing

@testable import ConclaveClient

@Suite(.timeLimit(.minutes(5)))
struct StateOrderTests {
  private static let call = "00000000-0000-4000-8000-000000000001"

  /// The reply and an event sent after it arrive in one read: Bob, who is in the state, has left since, and Carol has
  /// joined in an event that was lost.
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

  /// A state counts unless it is older than the newest known one.
  @Test func anOldStateIsIgnored() async throws {
    let server = try await FakeServer { destination, _ in
      destination.hasSuffix("/rejoin")
        ? ("ok", #"{"call":\#(Self.state(with: ["bob"])),"participant":5,"ice":{"servers":[]}}"#)
        : ("ok", #"{"fingerprint":"AAAA"}"#)
    }
    let client = CallClient(
      server: ServerAddress(host: "127.0.0.1", port: server.port, usesTLS: false),
      identity: try #require(DeviceIdentity(user: "alice", device: "phone")), token: { "good" })
    try await client.connect()
    let call = try await client.rejoin(Self.call)
    var frames = server.frames.makeAsyncIterator()
    var seq: UInt64 = 0
    func tell(_ name: String, _ body: String) async throws {
      seq += 1
      try await server.event(name, seq: seq, body: body, on: 1)
      while let received = await frames.next(), received.frame.headers["id"] != "a\(seq)" {}
    }
    func phaseOfBob() async throws -> String? {
      try #require(await call.snapshot).members.first { $0.user == "bob" }?.state
    }
    let left =
      #"{"at":1,"call":"\#(Self.call)","rev":8,"user":"bob","state":"left","participants":[],"cause":"left"}"#
    try await tell("call.state", Self.state(with: ["bob"], rev: "7"))
    try await tell("call.member", left)
    #expect(try await phaseOfBob() == "left")
    for old in ["7", "0", "-1", "8.5", #""9""#, "18446744073709551616"] {
      try await tell("call.state", Self.state(with: ["bob"], rev: old))
      #expect(try await phaseOfBob() == "left", "\(old)")
    }
    try await tell("call.state", Self.state(with: ["bob"], rev: "8"))
    #expect(try await phaseOfBob() == "joined")
    await client.close()
  }

  /// The call in which Alice's phone is participant 5. It is large, so that parsing it takes a while.
  private static func state(with users: [String], rev: String? = nil) -> String {
    let people = (users + (0..<500).map { "user\($0)" }).enumerated().map { member($1, $0 + 6) }
    return
      #"{"at":1,"call":"\#(call)","id":"\#(call)",\#(rev.map { "\"rev\":\($0)," } ?? "")"state":"active","media":"audio","initiator":"bob","startedAt":1,"epoch":4,"#
      + #""policy":{},"members":["# + ([member("alice", 5)] + people).joined(separator: ",") + "]}"
  }

  private static func member(_ user: String, _ participant: Int) -> String {
    #"{"user":"\#(user)","state":"joined","participants":[{"participant":\#(participant),"device":"phone","#
      + #""joinId":"AAAAAAAAAAAAAAAAAAAAAA==","connected":true,"held":false,"tracks":[]}]}"#
  }
}
