import STOMP
import Synchronization
import Testing

@testable import ConclaveClient

@Suite(.timeLimit(.minutes(5)))
struct RejoinTests {
  private static let call = "00000000-0000-4000-8000-000000000001"

  /// Protocol section 4, rule 16: only a current state says that this device is absent. A state from before the rejoin
  /// lacks the new participant, and obeying it would begin another rejoin, and so on forever.
  @Test func aStateFromBeforeTheRejoinDoesNotBeginAnother() async throws {
    let rejoins = Mutex(0)
    let server = try await FakeServer { destination, _ in
      guard destination.hasSuffix("/rejoin") else { return ("ok", #"{"fingerprint":"AAAA"}"#) }
      let number = rejoins.withLock { count in
        count += 1
        return count
      }
      // The first reply is lost with its connection.
      return number == 1 ? nil : ("ok", #"{"call":\#(Self.state(of: 5)),"participant":5,"ice":{"servers":[]}}"#)
    }
    let client = CallClient(
      server: ServerAddress(host: "127.0.0.1", port: server.port, usesTLS: false),
      identity: try #require(DeviceIdentity(user: "alice", device: "phone")), token: { "good" })
    try await client.connect()
    let rejoining = Task { try await client.rejoin(Self.call) }
    for await received in server.frames where received.frame.headers["destination"]?.hasSuffix("/rejoin") == true {
      break
    }
    try await server.event("call.state", seq: 1, body: Self.state(of: 3), on: 1)
    try await server.drop(1)
    #expect(try await rejoining.value.participant == 5)
    try await server.event("call.state", seq: 2, body: Self.state(of: 5), on: 2)
    for await received in server.frames where received.frame.headers["id"] == "a2" { break }
    #expect(rejoins.withLock { $0 } == 2)
    await client.close()
  }

  /// A device gets the call's state once for each connection. Events for the former participant still inform it about
  /// the others.
  @Test func aCallGoesOnFromTheStateOfItsConnection() async throws {
    let bodies = Mutex<[String]>([])
    let server = try await FakeServer { destination, body in
      guard destination.hasSuffix("/rejoin") else { return ("ok", #"{"fingerprint":"AAAA"}"#) }
      let count = bodies.withLock { bodies in
        bodies.append(body)
        return bodies.count
      }
      return count == 1
        ? ("ok", #"{"call":\#(Self.state(of: 3)),"participant":3,"ice":{"servers":[]}}"#)
        : ("ok", #"{"participant":5,"ice":{"servers":[]}}"#)
    }
    let client = CallClient(
      server: ServerAddress(host: "127.0.0.1", port: server.port, usesTLS: false),
      identity: try #require(DeviceIdentity(user: "alice", device: "phone")), token: { "good" })
    try await client.connect()
    let call = try await client.rejoin(Self.call)
    #expect(call.participant == 3)
    try await server.drop(1)
    func sent(_ suffix: String) async {
      for await received in server.frames
      where received.connection == 2 && received.frame.headers["destination"]?.hasSuffix(suffix) == true {
        return
      }
    }
    await sent("devices/register")
    try await server.event("call.state", seq: 1, body: Self.state(of: 3, isConnected: false), on: 2)
    await sent("/rejoin")
    try await server.event("call.member", seq: 2, body: Self.change("carol", "tablet", 4, "joined"), on: 2)
    try await server.event("call.member", seq: 3, body: Self.change("alice", "phone", 5, "rejoined"), on: 2)
    for await received in server.frames where received.frame.headers["id"] == "a3" { break }
    #expect(call.participant == 5)
    let members = try #require(await call.snapshot).members
    #expect(Set(members.flatMap(\.participants).map(\.number)) == [1, 4, 5])
    #expect(bodies.withLock { $0.map { $0.contains(#""state":false"#) } } == [false, true])
    await client.close()
  }

  /// The call with Bob, with Alice's phone as this participant.
  private static func state(of participant: Int, isConnected: Bool = true) -> String {
    #"{"at":1,"call":"\#(call)","id":"\#(call)","state":"active","media":"audio","initiator":"bob","startedAt":1,"epoch":4,"#
      + #""policy":{"invite":"members","whenBusy":"ring","ringSeconds":30,"screens":1},"members":["#
      + "{\(member("bob", "laptop", 1))},{\(member("alice", "phone", participant, isConnected: isConnected))}]}"
  }

  private static func change(_ user: String, _ device: String, _ participant: Int, _ cause: String) -> String {
    #"{"at":1,"call":"\#(call)","cause":"\#(cause)",\#(member(user, device, participant))}"#
  }

  private static func member(
    _ user: String, _ device: String, _ participant: Int, isConnected: Bool = true
  ) -> String {
    #""user":"\#(user)","state":"joined","participants":[{"participant":\#(participant),"device":"\#(device)","#
      + #""joinId":"AAAAAAAAAAAAAAAAAAAAAA==","connected":\#(isConnected),"held":false,"tracks":[]}]"#
  }
}
