import Contract
import Foundation
import MediaModel
import Synchronization
import Testing

@testable import ConclaveClient

/// A call that crosses another of the same people becomes that one (protocol section 4, "Calls that cross").
@Suite(.timeLimit(.minutes(5)))
struct CrossingTests {
  private static let crossed = "6f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6e"
  private static let other = "7f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6e"

  /// A server for which Alice's first `starts` starts cross a call of `members`, each given as `user:state:device`.
  private final class Crossing: Sendable {
    private struct State {
      var starts = 0
      var paths: [String] = []
      var refusals: [String: String]
    }

    private let state: Mutex<State>
    private let starts: Int
    private let members: [String]

    /// - Parameter refusals: the codes with which the first request of each path is refused.
    init(starts: Int = 1, members: [String], refusals: [String: String] = [:]) {
      self.starts = starts
      self.members = members
      state = Mutex(State(refusals: refusals))
    }

    /// The requests about calls, in order.
    var paths: [String] { state.withLock { $0.paths } }

    func reply(_ destination: String, _ body: String) -> (status: String, body: String)? {
      guard destination.hasPrefix("/app/calls/") else {
        return ("ok", destination.hasSuffix("/list") ? #"{"devices":[],"revokes":[]}"# : #"{"fingerprint":"AAAA"}"#)
      }
      let path = String(destination.dropFirst("/app/calls/".count))
      let refusal = state.withLock { state -> String? in
        state.paths.append(path)
        if path == "start" {
          state.starts += 1
          return state.starts <= starts ? "call.crossed" : nil
        }
        return state.refusals.removeValue(forKey: path)
      }
      if let refusal {
        return ("error", #"{"error":{"code":"\#(refusal)","message":"no","call":"\#(CrossingTests.crossed)"}}"#)
      }
      guard let request = try? JSONDecoder().decode(Asked.self, from: Data(body.utf8)) else { return ("error", "{}") }
      let id = request.id ?? String(path.prefix(36))
      guard !path.hasSuffix("/state") else { return ("ok", call(id, members)) }
      let number = path == "start" ? 1 : 3
      let joined = call(id, ["bob:joined:laptop", "alice:joined:phone"], own: number, request.joinId)
      return ("ok", #"{"call":\#(joined),"participant":\#(number),"ice":{"servers":[]}}"#)
    }

    private struct Asked: Decodable {
      var id: String?
      var joinId: String?
    }

    private func call(_ id: String, _ members: [String], own: Int = 1, _ joinId: String? = nil) -> String {
      let listed = members.map { member in
        let parts = member.split(separator: ":").map(String.init)
        let isOwn = parts[0] == "alice"
        let participant =
          #"{"participant":\#(isOwn ? own : 2),"device":"\#(parts.last ?? "")","#
          + #""joinId":"\#(isOwn ? joinId ?? Self.joinId : Self.joinId)","connected":true,"held":false,"tracks":[]}"#
        return
          #"{"user":"\#(parts[0])","state":"\#(parts[1])","participants":[\#(parts.count > 2 ? participant : "")]}"#
      }
      return #"{"id":"\#(id)","state":"active","media":"video","initiator":"bob","startedAt":1,"epoch":1,"policy":{},"#
        + #""members":[\#(listed.joined(separator: ","))]}"#
    }

    private static let joinId = "AAECAwQFBgcICQoLDA0ODw=="
  }

  private func client(of crossing: Crossing) async throws -> (client: CallClient, server: FakeServer) {
    let server = try await FakeServer { crossing.reply($0, $1) }
    let client = CallClient(
      server: ServerAddress(host: "127.0.0.1", port: server.port, usesTLS: false),
      identity: try #require(DeviceIdentity(user: "alice", device: "phone")), token: { "good" })
    try await client.connect()
    return (client, server)
  }

  @Test(arguments: [
    ("alice:ringing", "accept"), ("alice:joined:tablet", "transfer"), ("alice:disconnected:tablet", "rejoin"),
    ("alice:left", "rejoin"),
  ])
  func theCrossedCallIsComeInto(place: String, request: String) async throws {
    let crossing = Crossing(members: ["bob:joined:laptop", place])
    let (client, _) = try await client(of: crossing)
    let call = try await client.start(callees: ["bob"], media: .audio)
    #expect(call.id == Self.crossed)
    #expect(crossing.paths == ["start", "\(Self.crossed)/state", "\(Self.crossed)/\(request)"])
    await client.close()
  }

  @Test(arguments: [
    ["bob:joined:laptop", "alice:ringing", "carol:ringing"], ["bob:joined:laptop", "alice:ringing", "carol:left"],
    ["alice:ringing"], ["bob:joined:laptop"],
  ])
  func theServerDoesNotChooseWhoHears(members: [String]) async throws {
    let crossing = Crossing(members: members)
    let (client, _) = try await client(of: crossing)
    await #expect(throws: SignalingError.crossed(call: Self.crossed)) {
      _ = try await client.start(callees: ["bob"], media: .audio)
    }
    #expect(crossing.paths == ["start", "\(Self.crossed)/state"])
    await client.close()
  }

  @Test(arguments: ["call.ended", "call.not-found", "call.not-ringing", "call.not-joined"])
  func aCrossedCallThatIsOverMakesWayForANewOne(code: String) async throws {
    let accept = "\(Self.crossed)/accept"
    let crossing = Crossing(members: ["bob:joined:laptop", "alice:ringing"], refusals: [accept: code])
    let (client, _) = try await client(of: crossing)
    let call = try await client.start(callees: ["bob"], media: .audio)
    #expect(call.id != Self.crossed)
    #expect(crossing.paths == ["start", "\(Self.crossed)/state", accept, "start"])
    await client.close()
  }

  @Test func crossingsWithoutEndAreAnError() async throws {
    let state = "\(Self.crossed)/state"
    let crossing = Crossing(
      starts: 9, members: ["bob:joined:laptop", "alice:ringing"], refusals: [state: "call.ended"])
    let (client, _) = try await client(of: crossing)
    // The second time the call can be entered.
    #expect(try await client.start(callees: ["bob"], media: .audio).id == Self.crossed)
    await #expect(throws: SignalingError.crossed(call: Self.crossed)) {
      _ = try await client.start(callees: ["bob"], media: .audio)
    }
    #expect(crossing.paths.count(where: { $0 == "start" }) == 3, "it is in that call")
    await client.close()
  }

  /// The server may claim anything about the call's people.
  @Test func aRingOfSomebodyWhoIsNotCalledIsNotAnswered() async throws {
    let crossing = Crossing(members: ["bob:joined:laptop", "alice:ringing"])
    let (client, server) = try await client(of: crossing)
    var events = client.events.makeAsyncIterator()
    try await server.event(
      "call.ring", seq: 1,
      body:
        #"{"at":1,"call":"\#(Self.crossed)","from":"mallory","media":"audio","members":[],"waiting":false,"expiresAt":30001}"#,
      on: 1)
    while let event = await events.next() { if case .ring = event { break } }
    await #expect(throws: SignalingError.crossed(call: Self.crossed)) {
      _ = try await client.start(callees: ["bob"], media: .audio)
    }
    #expect(crossing.paths == ["start", "\(Self.crossed)/state"])
    await client.close()
  }

  @Test func aRingForACallThatThisDeviceIsInInvitesNobody() async throws {
    let crossing = Crossing(starts: 0, members: [])
    let (client, server) = try await client(of: crossing)
    var events = client.events.makeAsyncIterator()
    func ring(_ caller: String, _ seq: UInt64) async throws {
      try await server.event(
        "call.ring", seq: seq,
        body:
          #"{"at":1,"call":"\#(Self.crossed)","from":"\#(caller)","media":"audio","members":[],"waiting":false,"expiresAt":30001}"#,
        on: 1)
      while let event = await events.next() { if case .ring = event { break } }
    }
    let id = CallID(unchecked: Self.crossed)
    func inviters() async -> Set<UserID> {
      if case .invited(let users) = await client.entrance(to: id) { users } else { [] }
    }
    try await ring("bob", 1)
    _ = try await client.accept(Self.crossed)
    try await ring("mallory", 2)
    #expect(await inviters() == [UserID("bob")!])
    await client.close()
  }

  @Test func anAnswerToAReplacedRingGoesToTheNewOne() async throws {
    let crossing = Crossing(members: [], refusals: ["\(Self.crossed)/accept": "call.ended"])
    let (client, server) = try await client(of: crossing)
    var events = client.events.makeAsyncIterator()
    for (seq, call, members) in [
      (1 as UInt64, Self.crossed, ["bob", "alice"]),
      (2, "8f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6e", ["bob", "alice", "carol"]),
      (3, Self.other, ["bob", "alice"]),
    ] {
      let listed = members.map { #"{"user":"\#($0)","state":"ringing","participants":[]}"# }.joined(separator: ",")
      try await server.event(
        "call.ring", seq: seq,
        body:
          #"{"at":1,"call":"\#(call)","from":"bob","media":"audio","members":[\#(listed)],"waiting":false,"expiresAt":30001}"#,
        on: 1)
    }
    var rung = 0
    while rung < 3, let event = await events.next() { if case .ring = event { rung += 1 } }
    #expect(try await client.accept(Self.crossed).id == Self.other)
    #expect(crossing.paths == ["\(Self.crossed)/accept", "\(Self.other)/accept"])
    await client.close()
  }
}
