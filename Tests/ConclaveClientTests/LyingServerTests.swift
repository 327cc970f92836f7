import Contract
import Crypto
import MediaModel
import Octets
import Testing

@testable import ConclaveClient

/// How the agreement reacts to a server that lies about secrets, epochs and devices.
struct LyingServerTests {
  // MARK: secrets

  @Test func aSecretOfZerosIsNeitherSealedNorTaken() throws {
    let zeros = [UInt8](repeating: 0, count: 32)
    let alice = DeviceIdentity(user: "alice", device: "phone")!
    let bob = Device(user: UserID("bob")!, device: DeviceID("phone")!)
    let key = P256.KeyAgreement.PrivateKey()
    let publicKey = Array(key.publicKey.derRepresentation)
    let context = EnvelopeContext(call: KeyWorld.call, epoch: 2, listHash: [1])
    #expect(
      Envelope.sealing(
        SymmetricKey(data: zeros), for: bob, alg: WrapAlgorithm.hpke.rawValue, publicKey: publicKey, in: context,
        from: alice) == nil)
    // Another client makes one.
    var envelope = try #require(
      Envelope.sealing(
        SymmetricKey(size: .bits256), for: bob, alg: WrapAlgorithm.hpke.rawValue, publicKey: publicKey, in: context,
        from: alice))
    #expect(throws: Never.self) { try envelope.opened(with: key) }
    envelope.ciphertext = Base64Bytes(try WrapAlgorithm.hpke.seal(zeros, to: publicKey))
    #expect(throws: KeyRefusal.envelopeNotReadable) { try envelope.opened(with: key) }
  }

  /// A reply to `/keys` and an envelope after the history has broken: an agreement that is over accepts nothing.
  @Test func nothingIsAcceptedWhenTheHistoryIsBroken() throws {
    var world = KeyWorld.pair
    world.announce(["alice", "bob"], mode: .fresh, leader: "alice")
    let envelope = try #require(world.envelopes.first)
    var broken = world.rotation(to: ["alice", "bob"], mode: .fresh, leader: "alice", for: "bob")
    broken.previous.bytes[0] ^= 1
    world.feed(.rotate(broken), to: "bob")
    #expect(world.members["bob"]!.refusals.contains(.brokenHistory))
    world.deliver(envelope, to: "bob")
    world.feed(.handedOut(epoch: 3, taken: true), to: "bob")
    #expect(world.members["bob"]!.agreement.epochs[3]?.secret == nil)
    #expect(!world.members["bob"]!.isSending)
    world.feed(.keyRequest(KeyRequest(epoch: 3, to: world.entryWithKeys("alice"))), to: "bob")
    #expect(world.envelopes.count == 1, "it hands out nothing")
  }

  /// The epoch may end between a request and the moment at which it is posted.
  @Test func nothingIsPostedForAnEpochThatIsOver() throws {
    var world = KeyWorld.pair
    let handOut = Request.inCall(KeyWorld.call, .keys(HandOutKeys(epoch: 2, envelopes: [])))
    let ask = Request.inCall(KeyWorld.call, .requestKey(RequestKey(epoch: 2)))
    let confirm = Request.inCall(
      KeyWorld.call, .confirmKey(ConfirmKey(epoch: 2, tag: Base64Bytes([]), joinKey: nil)))
    let wait = Request.inCall(KeyWorld.call, .waitForKey(WaitForKey(epoch: 2, reason: .trust)))
    for request in [handOut, ask, confirm, wait] { #expect(world.members["alice"]!.agreement.isDue(request)) }
    world.announce(["alice", "bob"], mode: .fresh, leader: "bob")
    for request in [handOut, ask, confirm, wait] { #expect(!world.members["alice"]!.agreement.isDue(request)) }
    #expect(world.members["alice"]!.agreement.isDue(.inCall(KeyWorld.call, .listKeys(ListKeys(since: 2)))))
  }

  // MARK: epochs

  /// z13: nobody joined, and the next secret is derived from this one.
  @Test func aRatchetThatNobodyCameForIsRefused() {
    var world = KeyWorld.pair
    world.announce(["alice", "bob"], mode: .ratchet, leader: "alice")
    for name in ["alice", "bob"] {
      #expect(world.members[name]!.refusals == [.unsafeRatchet])
      #expect(world.members[name]!.agreement.newest == 2)
    }
  }

  /// Each join is a ratchet: the secret ages although the epochs change.
  @Test func ratchetsMakeNoSecretYounger() {
    var world = KeyWorld.pair
    var names = ["alice", "bob"]
    world.rotate(names, mode: .fresh, leader: "alice")
    for minute in 1...19 {
      world.run(.seconds(60), step: .seconds(5))
      names.append("guest\(10 + minute)")
      world.join(names.last!)
      world.rotate(names, mode: .ratchet, leader: "alice")
    }
    #expect(!world.members["bob"]!.refusals.contains(.keyTooOld))
    world.run(.seconds(65), step: .seconds(5))
    #expect(world.members["bob"]!.refusals.contains(.keyTooOld))
    world.rotate(names, mode: .fresh, leader: "alice")
    world.run(.seconds(19 * 60), step: .seconds(5))
    #expect(world.members["bob"]!.refusals.count { $0 == .keyTooOld } == 1)
  }

  /// z7: a ringing device could hear the room, and so could anybody who stored the packets and gets hold of the device
  /// later.
  @Test func nothingIsSealedWhileNobodyElseHasJoined() throws {
    var world = KeyWorld()
    world.start("alice")
    world.run(.seconds(600), step: .seconds(10))
    #expect(world.members["alice"]!.silence == [.alone])
    #expect(throws: FrameCipherError.noKey) { try world.seal("x", from: "alice") }
    // Bob joins by a link: he is not on epoch 1's list, and only devices that rang could hear.
    world.join("bob")
    #expect(world.members["alice"]!.silence == [.alone])
    world.rotate(["alice", "bob"], mode: .ratchet, leader: "alice")
    #expect(world.members["alice"]!.isSending && world.members["alice"]!.silence.isEmpty)
  }

  // MARK: rings

  private static func entry(_ device: DeviceIdentity) -> DeviceEntry {
    DeviceEntry(
      user: device.address.user, device: device.address.device, name: nil, keys: device.registration,
      fingerprint: Base64Bytes(device.fingerprint), registeredAt: Timestamp(milliseconds: 0))
  }

  private static func caller(_ pins: Pins = Pins()) -> KeyAgreement {
    var generator = SplitMix64(seed: 16)
    let alice = DeviceIdentity(user: "alice", device: "phone")!
    let join = JoinCredentials(alice, call: KeyWorld.call, at: KeyWorld.clock, using: &generator)
    return KeyAgreement(identity: alice, join: join, pins: pins, now: Instant(nanoseconds: 1))
  }

  /// z5: the server makes up a device of a known person. It rings, gets no key before epoch 2, and is reported.
  @Test func aNewDeviceOfAKnownPersonGetsNoRingEnvelope() throws {
    var generator = SplitMix64(seed: 17)
    let (phone, ghost) = (DeviceIdentity(user: "bob", device: "phone")!, DeviceIdentity(user: "bob", device: "ghost")!)
    let stranger = DeviceIdentity(user: "carol", device: "phone")!
    var pins = Pins()
    pins.pin(phone.address, phone.fingerprint, isVerified: true)
    _ = pins.remember(phone.publicKeys)
    let listed = [phone, ghost, stranger].map(Self.entry)
    var agreement = Self.caller(pins)
    let (envelopes, effects) = agreement.ring(listed, using: &generator)
    #expect(envelopes.map(\.to) == [phone.address, stranger.address])
    #expect(agreement.ringKeys.first?.list[ghost.address] == nil)
    #expect(effects.contains { if case .warn(let warning) = $0 { warning.problem == .newDevice } else { false } })
    // The server refuses the envelopes once: by then the ghost is pinned, but it still gets none.
    agreement.ringAlone()
    #expect(agreement.ring(listed, using: &generator).envelopes.map(\.to) == [phone.address, stranger.address])
    // Bob's verified phone vouches for it: then it is Bob's.
    let vouch = TrustStatement(
      .vouch, device: ghost.device, fingerprint: ghost.fingerprint, at: KeyWorld.clock, by: phone)
    pins.learn(vouch)
    var trusting = Self.caller(pins)
    #expect(trusting.ring(listed, using: &generator).envelopes.count == 3)
  }

  @Test func aRingHasAtMost255EnvelopesAndOneForEachCalleeFirst() {
    var generator = SplitMix64(seed: 18)
    let tablets = (0..<200).map { DeviceIdentity(user: "bob", device: "tablet\(1_000 + $0)")! }
    let phones = (0..<100).map { DeviceIdentity(user: "user\(1_000 + $0)", device: "phone")! }
    var agreement = Self.caller()
    let envelopes = agreement.ring((tablets + phones).map(Self.entry), using: &generator).envelopes
    #expect(envelopes.map(\.to) == (tablets.prefix(155) + phones).map(\.address))
    #expect(agreement.ringKeys.first?.list.entries.count == 256)
  }

  // MARK: the list

  /// A listed device is never shown as present in a call that it is not in, and every listed device is shown.
  @Test func tilesAreTheList() throws {
    var world = KeyWorld.pair
    func devices() -> [String: ListedDevice] {
      let all = world.members["alice"]!.agreement.devices(world.state.members)
      return Dictionary(uniqueKeysWithValues: all.map { ("\($0.user)/\($0.device)/\($0.participant)", $0) })
    }
    func tell(_ change: (inout MemberState) -> Void) {
      var bob = world.state.members.first { $0.user.text == "bob" }!
      change(&bob)
      world.feed(.members([bob]), to: "alice")
    }
    #expect(devices()["bob/phone/2"]?.standing == .present)
    tell {
      $0.state = .left
      $0.participants = []
    }
    #expect(devices()["bob/phone/2"]?.standing == .departed, "at once")
    tell { $0.participants[0].joinId.bytes[0] ^= 1 }
    #expect(devices()["bob/phone/2"]?.standing == .departed, "another stay of the device")
    tell { _ in }
    #expect(devices()["bob/phone/2"]?.standing == .present)
    // z17: Bob's number under the name of another device. No device that could be Bob's is marked as unable to hear.
    var bob = world.state.members.first { $0.user.text == "bob" }!
    bob.participants[0].device = DeviceID("tablet")!
    let shown = world.members["alice"]!.agreement.devices([bob])
    #expect(shown.map(\.device) == ["phone", "phone"] && !shown.contains { $0.standing == .unlisted })
    world.join("carol")
    #expect(devices()["carol/phone/3"]?.standing == .unlisted)
    world.run(.seconds(2))
    #expect(devices()["bob/phone/2"]?.hasConfirmed == true)
    #expect(devices()["carol/phone/3"]?.hasConfirmed == false)
  }

  /// z6: the thief's phone is revoked for Alice. Bob never verified the device that revoked it, and gives it the key.
  @Test func aRevokedDeviceThatOthersGiveTheKeyStopsTheSending() throws {
    var world = KeyWorld.pair
    world.join("carol")
    world.rotate(["alice", "bob", "carol"], mode: .fresh, leader: "bob")
    let thief = world.members["carol"]!.agreement.own.identity
    let revoke = TrustStatement(
      .revoke, device: thief.device, fingerprint: thief.fingerprint, at: KeyWorld.clock, by: thief)
    _ = world.members["alice"]!.agreement.known.pins.remember(thief.publicKeys)
    world.members["alice"]!.agreement.known.pins.learn(revoke)
    world.feed(.trustChanged, to: "alice")
    #expect(!world.members["alice"]!.isSending)
    world.rotate(["alice", "bob", "carol"], mode: .fresh, leader: "bob")
    world.run(.seconds(5))
    #expect(!world.members["alice"]!.isSending)
    guard case .revoked(let shown)? = world.members["alice"]!.silence.first else {
      Issue.record("\(world.members["alice"]!.silence)")
      return
    }
    #expect(shown.map(\.user) == ["carol"] && shown.allSatisfy(\.hasConfirmed), "it hears, and is said to")
    world.feed(.sendAnyway(shown), to: "alice")
    #expect(world.members["alice"]!.isSending)
    // In another stay the person is asked about it again.
    world.rejoin("carol", as: 7)
    world.rotate(["alice", "bob", "carol"], mode: .fresh, leader: "bob")
    #expect(!world.members["alice"]!.isSending)
  }

  // MARK: messages

  @Test func aPrivateMessageOpensOnce() throws {
    var world = KeyWorld.pair
    func seal(_ text: [UInt8]) throws -> [UInt8] {
      let content = world.members["alice"]!.agreement.privateContent(text, to: [2])
      return try #require(content)
    }
    let content = try seal([1, 2, 3])
    func open(_ content: [UInt8]) -> [UInt8]? {
      world.members["bob"]!.agreement.openPrivate(content, from: 1, epoch: 2)
    }
    #expect(open(content) == [1, 2, 3])
    // The same wrap in another SFrame, by the server and a member.
    #expect(open(content) == nil)
    let second = try seal([1, 2, 3])
    #expect(open(second) == [1, 2, 3])
    let third = try seal([4])
    world.members["bob"]!.agreement.privateMessages.opened[2] = Set(
      (0..<PrivateMessages.maximumOpened).map { [UInt8(truncatingIfNeeded: $0 >> 8), UInt8(truncatingIfNeeded: $0)] })
    #expect(open(third) == nil, "the memory is full")
  }

  @Test func sealedMessagesSayNoMoreOfTheirLengthThanBlocks() throws {
    for (count, padded) in [(0, 64), (1, 64), (63, 64), (64, 128), (127, 128), (128, 192)] {
      let text = [UInt8](repeating: 0x80, count: count)
      #expect(MessagePadding.padded(text).count == padded)
      #expect(MessagePadding.text(of: MessagePadding.padded(text)) == text)
    }
    var world = KeyWorld.pair
    var sizes: Set<Int?> = []
    for text in [[1], [UInt8](repeating: 7, count: 60)] {
      sizes.insert(world.members["alice"]!.agreement.privateContent(text, to: [2])?.count)
    }
    #expect(sizes.count == 1 && !sizes.contains(nil))
  }

  // MARK: order

  /// z14: the server withholds spoken words and delivers them later. 64 frames of sound are 1.3 s.
  @Test func soundThatComesTooLateIsDropped() throws {
    let world = KeyWorld.pair
    let bob = try #require(world.members["bob"]).cipher
    let now = Instant(nanoseconds: 0)
    bob.receiveSound(in: ["1"])
    for (slot, track) in [("1", UInt8(1)), ("2", 2)] {
      let frames = try (0..<70).map { _ in try world.seal("x", from: "alice", track: track) }
      bob.assign([slot: TrackID(participant: 1, index: track)], now: now)
      #expect(throws: Never.self) { try bob.open(frames[69], from: .slot(slot, now: now)) }
      #expect(throws: Never.self) { try bob.open(frames[5], from: .slot(slot, now: now)) }
      let late = Result { try bob.open(frames[4], from: .slot(slot, now: now)) }
      if slot == "1" {
        #expect(throws: FrameCipherError.replayed) { try late.get() }
      } else {
        #expect(throws: Never.self) { try late.get() }
      }
    }
  }

  @Test func soundIsKnownByTheOwnOffer() {
    let sdp = """
      v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:0\r\nm=video 9 UDP/TLS/RTP/SAVPF 96\r\na=mid:1\r
      m=audio 9 UDP/TLS/RTP/SAVPF 111\r\na=mid:s2\r\n
      """
    #expect(OwnTracks.soundSlots(in: sdp) == ["0", "s2"])
    #expect(OwnTracks.soundSlots(in: "").isEmpty)
  }

  // MARK: muting

  /// The server is asked not to forward a muted track, but a lying one would. The cipher outputs nothing of it.
  @Test func nothingOfAMutedTrackIsSealed() throws {
    let world = KeyWorld.pair
    let alice = try #require(world.members["alice"]).cipher
    alice.setMuted(true, track: 1)
    #expect(throws: FrameCipherError.muted) { try world.seal("x", from: "alice") }
    #expect(try world.open(world.seal("y", from: "alice", track: 2), as: "bob").0 == "y")
    alice.setMuted(false, track: 1)
    alice.hold(true)
    for track: UInt8 in [1, 2] {
      #expect(throws: FrameCipherError.muted) { try world.seal("x", from: "alice", track: track) }
    }
    #expect(throws: Never.self) { try world.seal("a message", from: "alice", track: 0) }
    alice.hold(false)
    #expect(try world.open(world.seal("z", from: "alice"), as: "bob").0 == "z")
  }

  @Test func aMuteOutlivesTheStay() {
    var tracks = OwnTracks()
    let offer = [OfferedTrack(mid: "0", source: .microphone), OfferedTrack(mid: "1", source: .camera)]
    func id(_ participant: UInt32, _ index: UInt8) -> TrackID { TrackID(participant: participant, index: index) }
    #expect(tracks.offer(offer, answered: [("0", id(1, 1)), ("1", id(1, 2))]) == [1: false, 2: false])
    tracks.setMuted(true, track: 1)
    #expect(tracks.offer([], answered: [("0", id(1, 1)), ("1", id(1, 2))]) == [1: true, 2: false])
    tracks.beginStay()
    #expect(tracks.offer(offer, answered: [("1", id(9, 1)), ("0", id(9, 2))]) == [1: false, 2: true])
    tracks.setMuted(false, track: 2)
    #expect(tracks.offer([], answered: [("0", id(9, 2))]) == [2: false])
  }

  // MARK: a person's decisions

  private func client(_ identity: DeviceIdentity, pins: [PinnedDevice] = []) throws -> CallClient {
    CallClient(
      server: ServerAddress(host: "127.0.0.1", port: 1, usesTLS: false), identity: identity, pins: pins,
      token: { "token" })
  }

  /// A changed key that a person accepts has not been compared with anybody, so it may not vouch or revoke.
  @Test func aChangedKeyThatIsAcceptedIsKnownAndNotVerified() async throws {
    let old = PinnedDevice(
      user: "bob", device: "phone", fingerprint: [UInt8](repeating: 1, count: 32), isVerified: true)
    let new = [UInt8](repeating: 2, count: 32)
    let client = try client(DeviceIdentity(user: "alice", device: "phone")!, pins: [old])
    let joined = Joined(call: KeyWorld.pair.state, participant: 1, ice: ICE())
    let call = JoinedCall(
      KeyWorld.call, stay: CurrentStay(joined), cipher: FrameCipher(), updates: UnreadQueue<CallUpdate>().stream,
      client: client)
    await call.trust(KeyWarning(.changedKey, user: "bob", device: "phone", fingerprint: new))
    #expect(await client.pinnedDevices.map(\.isVerified) == [false])
    #expect(await client.pinnedDevices.map(\.fingerprint) == [new])
    try await call.verify([
      ListedDevice(
        user: "bob", device: "phone", participant: 2, fingerprint: new, joinId: [], trust: .known, standing: .present,
        letIn: nil, hasConfirmed: true)
    ])
    #expect(await client.pinnedDevices.map(\.isVerified) == [true])
    await call.trust(KeyWarning(.newDevice, user: "bob", device: "phone", fingerprint: new))
    #expect(await client.pinnedDevices.map(\.isVerified) == [true], "what was compared stays compared")
  }

  /// z15: the server lists the fingerprint of this device, or of the phone, beside the old laptop.
  @Test func aRevocationIsOfTheDeviceThatThePersonChose() async throws {
    let own = DeviceIdentity(user: "alice", device: "tablet")!
    let laptop = DeviceIdentity(user: "alice", device: "laptop")!
    var entry = Self.entry(laptop)
    entry.fingerprint = Base64Bytes(own.fingerprint)
    let registered = try #require(RegisteredDevice(entry))
    #expect(registered.fingerprint == laptop.fingerprint, "computed from the keys of that very device")
    entry.keys = own.registration
    #expect(try #require(RegisteredDevice(entry)).fingerprint != own.fingerprint, "the hash has the device's id")
    var swapped = registered
    swapped.fingerprint = own.fingerprint
    let client = try client(own)
    await #expect(throws: SignalingError.invalidIdentifier) { try await client.revoke(swapped) }
    await #expect(throws: SignalingError.invalidIdentifier) { try await client.removeDevice(revoking: swapped) }
  }
}
