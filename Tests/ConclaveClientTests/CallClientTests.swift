import ConclaveServer
import Foundation
import Logging
import MediaModel
import Testing

@testable import ConclaveClient

/// Clients in calls on a server in this process, over real connections.
@Suite(.timeLimit(.minutes(1)))
struct CallClientTests {
  @Test func threeDevicesAgreeOnAKeyAndACode() async throws {
    let house = try await House()
    let (alice, bob, carol) = try await (house.client("alice"), house.client("bob"), house.client("carol"))
    let call = try await alice.client.start(callees: ["bob", "carol"], media: .audio)
    let others = try await [bob.client.accept(bob.ring()), carol.client.accept(carol.ring())]
    try await expectAgreement([call] + others)
    for receiver in others {
      #expect(try open(seal("hello", by: call), by: receiver) == "hello")
      #expect(try open(seal("hi", by: receiver), by: call) == "hi")
    }
    let snapshot = try #require(await call.snapshot)
    #expect(snapshot.phase == .active)
    #expect(Set(snapshot.members.map(\.state)) == ["joined"])
    await house.close()
  }

  @Test func whoLeftCannotReadOn() async throws {
    let house = try await House()
    let (alice, bob, carol) = try await (house.client("alice"), house.client("bob"), house.client("carol"))
    let call = try await alice.client.start(callees: ["bob", "carol"], media: .audio)
    let bobs = try await bob.client.accept(bob.ring())
    let carols = try await carol.client.accept(carol.ring())
    try await expectAgreement([call, bobs, carols])
    let code = await call.code
    try await bobs.leave()
    try await eventually { await call.code != code }
    try await expectAgreement([call, carols])
    let frame = try seal("without bob", by: call)
    #expect(try open(frame, by: carols) == "without bob")
    #expect(throws: FrameCipherError.unknownKey) { try open(frame, by: bobs) }
    await house.close()
  }

  @Test func aDeclineEndsACallOfTwo() async throws {
    let house = try await House()
    let (alice, bob) = try await (house.client("alice"), house.client("bob"))
    let call = try await alice.client.start(callees: ["bob"], media: .audio)
    try await bob.client.decline(bob.ring())
    var reason: String?
    for await update in call.updates { if case .ended(let why) = update { reason = why } }
    #expect(reason == "declined")
    #expect(await call.snapshot == nil)
    await house.close()
  }

  @Test func mediaIsOfferedMutedAndSeenByTheOther() async throws {
    let house = try await House()
    let (alice, bob) = try await (house.client("alice"), house.client("bob"))
    let call = try await alice.client.start(callees: ["bob"], media: .audio)
    let bobs = try await bob.client.accept(bob.ring())
    let answer = try await call.offer(Self.offer, tracks: [OfferedTrack(mid: "0", source: .microphone)])
    #expect(answer.tracks == ["0": "1.1"])
    #expect(answer.sdp.contains("a=setup:passive"))
    try await call.setMuted(true, track: "1.1")
    try await eventually {
      let tracks = await bobs.snapshot?.members.flatMap(\.participants).flatMap(\.tracks) ?? []
      return tracks == [CallSnapshot.Track(id: "1.1", source: .microphone, isMuted: true)]
    }
    await #expect(throws: SignalingError.self) { try await bobs.setMuted(true, track: "1.1") }
    await #expect(throws: SignalingError.self) { _ = try await call.offer("v=0", tracks: []) }
    await house.close()
  }

  @Test func aRestartedDeviceRejoinsAsANewParticipant() async throws {
    let house = try await House()
    let (alice, bob) = try await (house.client("alice"), house.client("bob"))
    let call = try await alice.client.start(callees: ["bob"], media: .audio)
    let bobs = try await bob.client.accept(bob.ring())
    try await expectAgreement([call, bobs])
    // A new process of the same device, with its stored keys: it takes the old connection's place.
    let again = try await house.client("bob", identity: bob.identity)
    let rejoined = try await again.client.rejoin(call.id)
    #expect(rejoined.participant > bobs.participant)
    try await eventually {
      guard let code = await call.code else { return false }
      return await rejoined.code == code
    }
    try await eventually { rejoined.cipher.sendingEpoch == call.cipher.sendingEpoch }
    #expect(try open(seal("again", by: call), by: rejoined) == "again")
    await house.close()
  }

  @Test func aBadTokenEndsTheClient() async throws {
    let house = try await House()
    let client = CallClient(
      server: house.address, identity: try #require(DeviceIdentity(user: "eve", device: "d")), token: { "no token" })
    await #expect(throws: SignalingError.disconnected) { try await client.connect() }
    await house.close()
  }

  @Test func connectingWithoutAServerCanBeCancelled() async throws {
    let client = CallClient(
      server: ServerAddress(host: "127.0.0.1", port: 1, usesTLS: false),
      identity: try #require(DeviceIdentity(user: "eve", device: "d")), token: { "token" })
    let connecting = Task { try await client.connect() }
    connecting.cancel()
    await #expect(throws: SignalingError.disconnected) { try await connecting.value }
    await client.close()
  }

  /// The same code and the same epoch to send under, at everyone.
  private func expectAgreement(_ calls: [Call]) async throws {
    try await eventually {
      var codes: Set<String?> = []
      for call in calls { codes.insert(await call.code) }
      let epochs = Set(calls.map(\.cipher.sendingEpoch))
      guard codes.count == 1, codes.first != .some(nil), epochs.count == 1, let epoch = epochs.first ?? nil else {
        return false
      }
      // Everyone has joined before this epoch, so all are on its list.
      for call in calls where await call.snapshot?.members.flatMap(\.participants).count ?? 0 < calls.count {
        return false
      }
      for sender in calls {
        for receiver in calls where (try? open(seal("?", by: sender), by: receiver)) == nil { return false }
      }
      return epoch >= 2
    }
  }

  private func eventually(_ condition: () async throws -> Bool) async throws {
    // Bounded by the suite's time limit.
    while try await !condition() { try await Task.sleep(for: .milliseconds(10)) }
  }

  private func seal(_ text: String, by call: Call) throws -> [UInt8] {
    var output = [UInt8](repeating: 0, count: text.utf8.count + FrameCipher.maximumOverhead)
    let count = try output.withUnsafeMutableBytes { output in
      try Array(text.utf8).withUnsafeBytes {
        try call.cipher.encrypt($0, track: 1, metadata: UnsafeRawBufferPointer(start: nil, count: 0), into: output)
      }
    }
    return Array(output.prefix(count))
  }

  private func open(_ frame: [UInt8], by call: Call) throws -> String {
    var output = [UInt8](repeating: 0, count: frame.count)
    let opened = try output.withUnsafeMutableBytes { output in
      try frame.withUnsafeBytes {
        try call.cipher.decrypt($0, metadata: UnsafeRawBufferPointer(start: nil, count: 0), into: output)
      }
    }
    return String(decoding: output.prefix(opened.byteCount), as: UTF8.self)
  }

  private static let offer = [
    "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0", "a=ice-ufrag:abcd",
    "a=ice-pwd:abcdefghijklmnopqrstuvwx",
    "a=fingerprint:sha-256 " + [String](repeating: "AB", count: 32).joined(separator: ":"), "a=setup:actpass",
    "m=audio 9 UDP/TLS/RTP/SAVPF 111", "c=IN IP4 0.0.0.0", "a=mid:0", "a=sendonly", "a=rtcp-mux",
    "a=rtpmap:111 opus/48000/2", "",
  ].joined(separator: "\r\n")
}

/// A server on free ports, and clients of it.
private struct House {
  struct Resident {
    let client: CallClient
    let identity: DeviceIdentity
    private let rings: AsyncStream<String>

    init(_ client: CallClient, identity: DeviceIdentity) {
      self.client = client
      self.identity = identity
      let (rings, sink) = AsyncStream<String>.makeStream()
      self.rings = rings
      Task { for await event in client.events { if case .ring(let ring) = event { sink.yield(ring.id) } } }
    }

    /// The next call that rings.
    func ring() async throws -> String {
      for await ring in rings { return ring }
      throw SignalingError.disconnected
    }
  }

  let server: Running
  let address: ServerAddress
  private let tokens: TokenAuthority
  private let state: String

  init() async throws {
    state = NSTemporaryDirectory() + "conclave-client-tests-\(UUID().uuidString)"
    var configuration = Configuration()
    configuration.state = state
    configuration.listen.address = "127.0.0.1"
    configuration.listen.stomp = 0
    configuration.listen.stompTLS = 0
    configuration.listen.http = 0
    configuration.media.port = 0
    configuration.media.workers = 1
    server = try await Running(configuration, logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    address = ServerAddress(host: "127.0.0.1", port: server.stompPort, usesTLS: false)
    tokens = await TokenAuthority(secret: try StateFolder(state).secret(file: nil).secret)
  }

  func client(_ user: String, identity: DeviceIdentity? = nil) async throws -> Resident {
    let identity = try identity ?? #require(DeviceIdentity(user: user, device: "phone"))
    let token = try await tokens.mint(
      user: #require(UserID(user)), device: DeviceID("phone"), name: nil,
      expiresAt: Timestamp(milliseconds: Int64(Date().timeIntervalSince1970 * 1000) + 600_000))
    let client = CallClient(server: address, identity: identity, token: { token })
    let resident = Resident(client, identity: identity)
    try await client.connect()
    return resident
  }

  func close() async {
    await server.stop()
    try? FileManager.default.removeItem(atPath: state)
  }
}
