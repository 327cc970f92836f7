import ConclaveServer
import Foundation
import Logging
import MediaModel
import Testing

@testable import ConclaveClient

/// Clients in calls, with a server in this process and real connections.
@Suite(.timeLimit(.minutes(5)))
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

  @Test func theStarterSetsThePolicyAndLearnsWhatBecameOfEachRing() async throws {
    let house = try await House()
    let alice = try await house.client("alice")
    let bob = try await house.client("bob")
    var policy = CallPolicy()
    policy.rotateMinutes = 1_440
    policy.invite = .initiator
    let call = try await alice.client.start(callees: ["bob", "nobody"], media: .audio, policy: policy)
    #expect(call.ringResults["bob"] == "ringing" && call.ringResults["nobody"] == "no-keys")
    let bobs = try await bob.client.accept(bob.ring())
    #expect(bobs.ringResults.isEmpty)
    await #expect(throws: SignalingError.self) { try await bobs.invite(["carol"]) }
    policy.rotateMinutes = 1_441
    await #expect(throws: SignalingError.self) {
      try await alice.client.start(callees: ["bob"], media: .audio, policy: policy)
    }
    await house.close()
  }

  /// The state that an app has to keep across restarts.
  @Test func stateThatAnAppKeepsIsCodable() throws {
    let pin = PinnedDevice(
      user: "bob", device: "phone", fingerprint: [1, 2], isVerified: true, signAlgorithm: "ES256", signKey: [3])
    let statement = TrustStatement(
      kind: .revoke, user: "bob", device: "old", fingerprint: [1], signer: "phone", signerFingerprint: [2], at: 3,
      algorithm: "ES256", signature: [4])
    let ring = UsedRing(call: "6f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6e", at: 5)
    func kept<Value: Codable>(_ value: Value) throws -> Value {
      try JSONDecoder().decode(Value.self, from: JSONEncoder().encode(value))
    }
    #expect(try kept(pin) == pin)
    #expect(try kept(statement) == statement)
    #expect(try kept(ring) == ring)
  }

  /// As behind a web proxy, which forwards only HTTP.
  @Test func aCallIsMadeOverWebSockets() async throws {
    let house = try await House()
    let (alice, bob) = try await (house.client("alice", isWeb: true), house.client("bob", isWeb: true))
    let call = try await alice.client.start(callees: ["bob"], media: .audio)
    let bobs = try await bob.client.accept(bob.ring())
    try await expectAgreement([call, bobs])
    try await bobs.leave()
    var reason: String?
    for await update in call.updates { if case .ended(let why) = update { reason = why } }
    #expect(reason == "all-left")
    await house.close()
  }

  @Test func formerMembersCannotReadOn() async throws {
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
    // A new process of the same device, with its stored keys: it replaces the old connection.
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

  private static let offer = [
    "v=0", "o=- 1 1 IN IP4 127.0.0.1", "s=-", "t=0 0", "a=group:BUNDLE 0", "a=ice-ufrag:abcd",
    "a=ice-pwd:abcdefghijklmnopqrstuvwx",
    "a=fingerprint:sha-256 " + [String](repeating: "AB", count: 32).joined(separator: ":"), "a=setup:actpass",
    "m=audio 9 UDP/TLS/RTP/SAVPF 111", "c=IN IP4 0.0.0.0", "a=mid:0", "a=sendonly", "a=rtcp-mux",
    "a=rtpmap:111 opus/48000/2", "",
  ].joined(separator: "\r\n")
}
