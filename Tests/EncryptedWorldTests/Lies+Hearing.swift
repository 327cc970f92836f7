import CallMessages
import Contract
import Crypto
import MediaModel
import Octets
import SFrame
import Simulation
import Testing

@testable import ConclaveClient
import struct ConclaveClient.Epoch

/// Rows about secrets that everybody knows, about who can hear, and about reordered sound.
extension Lies {
  static let hearing: [Int: @Sendable (UInt64) throws -> Aftermath] = [
    300: endsWhileSealing, 301: zeroSecret, 302: askedAgain, 303: lateAnswer, 304: newDeviceRings, 305: ringsForever,
    306: foreignFingerprint, 307: ratchetsForNobody, 308: wordsInAnotherOrder, 309: privateAgain, 310: mispadded,
    311: brokenHolder, 312: weakKey, 330: newNumbers, 331: neverThere, 333: revokedHears, 334: anotherDevice,
    335: anotherGhost, 337: revokedHears, 360: mutedTrack, 361: lostParticipant,
  ]

  // MARK: secrets

  /// Alice is asked for a key, and leaves before its envelope is posted.
  private static func endsWhileSealing(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    var posted = 0
    scene.world.alter = { request, device in
      if device == scene.alice.address, case .calls(.inCall(_, .keys)) = request { posted += 1 }
      return request
    }
    func ask() throws {
      var entry = try #require(scene.entries(of: scene.alice).first { $0.address == scene.bob.address })
      entry.keys = scene.bob.identity.registration
      let newest = try #require(scene.alice.stay).keys.newest
      try scene.tell(scene.alice, .keyRequest(KeyRequest(epoch: newest, to: entry)))
    }
    try ask()
    scene.world.run(500)
    #expect(posted == 1)
    scene.alice.response = 300
    try ask()
    scene.world.run(100)
    scene.alice.leave()
    scene.world.run(1_000)
    #expect(posted == 1)
    return Aftermath(scene, warned: [])
  }

  /// A device with a broken history is asked for a key that it has.
  private static func brokenHolder(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    var posted = 0
    scene.world.alter = { request, device in
      if device == scene.alice.address, case .calls(.inCall(_, .keys)) = request { posted += 1 }
      return request
    }
    var entry = try #require(scene.entries(of: scene.alice).first { $0.address == scene.bob.address })
    entry.keys = scene.bob.identity.registration
    let newest = try #require(scene.alice.stay).keys.newest
    scene.alice.stay?.hasBegunAnew = true
    try scene.announce(
      scene.announcement(previous: [UInt8](repeating: 1, count: 32), for: scene.alice), to: scene.alice)
    scene.expectBrokenHistory(scene.alice)
    try scene.tell(scene.alice, .keyRequest(KeyRequest(epoch: newest, to: entry)))
    scene.world.run(1_000)
    #expect(posted == 0)
    return Aftermath(scene, warned: [scene.alice])
  }

  /// An RSA key of 1,024 bits as a wrap key.
  private static func weakKey(_ seed: UInt64) throws -> Aftermath {
    let modulus = [UInt8](repeating: 0xc5, count: 128)
    let integers: [UInt8] = [0x02, 0x81, 0x81, 0x00] + modulus + [0x02, 0x03, 0x01, 0x00, 0x01]
    let sequence: [UInt8] = [0x30, 0x81, UInt8(integers.count)] + integers
    let algorithm: [UInt8] = [
      0x30, 0x0d, 0x06, 0x09, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01, 0x01, 0x05, 0x00,
    ]
    let bits: [UInt8] = [0x03, 0x81, UInt8(sequence.count + 1), 0x00] + sequence
    let content = algorithm + bits
    let key: [UInt8] = [0x30, 0x81, UInt8(content.count)] + content
    #expect(throws: (any Error).self) { try WrapAlgorithm.rsa.seal([UInt8](repeating: 1, count: 32), to: key) }
    return Aftermath()
  }

  /// Another client signs an envelope of 32 zero bytes.
  static func zeroSecret(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    try scene.announce(scene.announcement(for: scene.bob), to: scene.bob)
    let keys = try #require(scene.bob.stay).keys
    let epoch = try #require(keys.epochs[keys.newest])
    scene.bob.stay?.keys.epochs[keys.newest]?.minimumGeneration = 0
    let context = EnvelopeContext(call: scene.call, epoch: epoch.number, listHash: epoch.listHash)
    let key = keys.join.joinKey
    var envelope = try #require(
      Envelope.sealing(
        SymmetricKey(size: .bits256), for: scene.bob.address, alg: key.alg, publicKey: key.publicKey.bytes, in: context,
        from: scene.alice.identity))
    let zeros = try WrapAlgorithm.hpke.seal([UInt8](repeating: 0, count: 32), to: key.publicKey.bytes)
    envelope.ciphertext = Base64Bytes(zeros)
    envelope.signature = Base64Bytes(
      scene.alice.identity.sign(envelope.transcript(from: scene.alice.address, in: context)))
    try scene.tell(scene.bob, .envelope(envelope, delivery: 1))
    #expect(scene.bob.stay?.keys.epochs[epoch.number]?.secret == nil)
    #expect(scene.bob.refusals.contains(.envelopeNotReadable))
    return Aftermath(scene, warned: [scene.bob])
  }

  /// Asked to lead again and again, with each answer refused: everybody who gets an envelope gets the same secret.
  static func askedAgain(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    var secrets: [SymmetricKey] = []
    let openers = [scene.bob, scene.carol]
    scene.world.alter = { request, device in
      guard device == scene.alice.address, case .calls(.inCall(_, .keys(let body))) = request else { return request }
      for envelope in body.envelopes {
        let join = openers.first { $0.address == envelope.to }?.stay?.keys.join
        if let opener = join?.opener(envelope.key.bytes), let opened = try? envelope.opened(with: opener.privateKey) {
          secrets.append(opened)
        }
      }
      return request
    }
    var rotation = try scene.announcement(for: scene.alice)
    for _ in 0..<3 {
      rotation.deliver = try scene.entries(of: scene.alice).filter { $0.address != scene.alice.address }.map { entry in
        var entry = entry
        entry.keys = scene.world.device(entry.address)?.identity.registration
        return entry
      }
      try scene.announce(rotation, to: scene.alice)
      // The true server knows no such epoch: it refuses the envelopes.
      scene.world.run(1_000)
    }
    #expect(secrets.count >= 4 && Set(secrets.map { $0.withUnsafeBytes { Array($0) } }).count == 1)
    return Aftermath(scene, warned: [])
  }

  /// The server answers `/keys` after the epoch is over: its secret is not used again.
  private static func lateAnswer(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let stay = try #require(scene.alice.stay)
    var rotation = try scene.announcement(for: scene.alice)
    rotation.deliver = []
    try scene.announce(rotation, to: scene.alice)
    let over = rotation.epoch
    try scene.announce(scene.announcement(for: scene.alice), to: scene.alice)
    try scene.tell(scene.alice, .handedOut(epoch: over, taken: true))
    #expect(stay.keys.epochs[over] == nil && !stay.cipher.epochs.contains(over))
    #expect(!stay.keys.isDue(.inCall(scene.call, .keys(HandOutKeys(epoch: over, envelopes: [])))))
    return Aftermath(scene, warned: [])
  }

  /// Every epoch is called a ratchet, though nobody joined.
  static func ratchetsForNobody(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    try scene.expectRefusal(scene.announcement(mode: .ratchet, for: scene.bob), by: scene.bob, .unsafeRatchet)
    return Aftermath(scene, warned: [scene.bob])
  }

  // MARK: who hears

  /// A ghost that leaves under one number and is listed under the next.
  static func newNumbers(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let first = Ghost(scene.world, call: scene.call, user: "zed", participant: 900)
    var stopped = false
    for number in UInt32(901)...930 where !stopped {
      let ghost = Ghost(
        scene.world, call: scene.call, user: "zed", participant: number, identity: first.identity)
      let list = try ghost.haunt(scene.entries(of: scene.bob).filter { $0.device.text != "ghost" })
      let rotation = try scene.announcement(list, for: scene.bob)
      #expect(try scene.announce(rotation, to: scene.bob).isEmpty)
      try scene.tell(scene.bob, .switchKeys(epoch: rotation.epoch))
      let seat = ParticipantState(
        participant: number, device: ghost.entry.device, joinId: ghost.entry.joinId!, connected: true, held: false,
        tracks: [])
      for seats in [[seat], []] {
        try scene.tell(
          scene.bob,
          .members([
            MemberState(
              user: ghost.entry.user, name: nil, state: seats.isEmpty ? .left : .joined, participants: seats)
          ]))
      }
      let shown = try #require(scene.bob.stay).keys.devices(try #require(scene.bob.stay).session.state.members)
      #expect(shown.contains { $0.device == "ghost" && $0.standing == .departed })
      scene.world.run(2_500)
      stopped = scene.bob.stay?.silence.contains { if case .departed = $0 { true } else { false } } ?? true
    }
    #expect(stopped)
    #expect(scene.bob.warnings.contains { $0.problem == .mayStillHear && $0.device == "ghost" })
    return Aftermath(scene, warned: [scene.bob])
  }

  /// A ghost that is said to have left from the start, and is never named as a participant.
  static func neverThere(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let ghost = Ghost(scene.world, call: scene.call, user: "zed")
    let rotation = try scene.announcement(ghost.haunt(scene.entries(of: scene.bob)), for: scene.bob)
    try scene.tell(
      scene.bob, .members([MemberState(user: ghost.entry.user, name: nil, state: .left, participants: [])]))
    try scene.announce(rotation, to: scene.bob)
    try scene.tell(scene.bob, .switchKeys(epoch: rotation.epoch))
    #expect(scene.bob.warnings.contains { $0.problem == .notInCall && $0.device == "ghost" })
    scene.world.run(11_000)
    #expect(scene.bob.stay?.silence.contains { if case .strangers = $0 { true } else { false } } == true)
    return Aftermath(scene, warned: [scene.bob])
  }

  /// In the state, the listed number belongs to another device.
  static func anotherDevice(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let ghost = Ghost(scene.world, call: scene.call, user: "zed")
    let rotation = try scene.announcement(ghost.haunt(scene.entries(of: scene.bob)), for: scene.bob)
    let seat = ParticipantState(
      participant: ghost.entry.participant, device: DeviceID("phone")!, joinId: ghost.entry.joinId!, connected: true,
      held: false, tracks: [])
    let member = MemberState(user: ghost.entry.user, name: nil, state: .joined, participants: [seat])
    try scene.announce(rotation, to: scene.bob)
    try scene.tell(scene.bob, .members([member]))
    try scene.tell(scene.bob, .switchKeys(epoch: rotation.epoch))
    let shown = try #require(scene.bob.stay).keys.devices([member])
    #expect(shown.contains { $0.device == "ghost" && $0.standing == .stranger })
    #expect(
      !shown.contains { $0.user == "zed" && $0.device == "phone" }, "a device of which it is said that it cannot hear")
    return Aftermath(scene, warned: [scene.bob])
  }

  /// The server drops the participant whenever it is about to stop.
  private static func lostParticipant(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    scene.haunt()
    scene.world.run(1_500)
    for _ in 0..<8 {
      scene.world.run(2_000)
      guard let stay = scene.bob.stay, stay.cipher.sendingEpoch != nil else { break }
      var member = try #require(stay.session.state.members.first { $0.user == scene.bob.address.user })
      member.participants.removeAll { $0.participant == stay.participant }
      scene.bob.receive(
        EventMessage(
          at: scene.world.timestamp, call: scene.call, body: .member(MemberChange(member: member, cause: .connected))),
        1_000_000)
      scene.world.run(1_000)
    }
    // No single stay is long enough for a stop.
    let isStopped = scene.bob.stays.map { stay in
      stay.silences.contains { if case .strangers = $0 { true } else { false } }
    }
    #expect(isStopped.count > 1 && isStopped.first == false && isStopped.last == true, "\(isStopped)")
    return Aftermath(scene, warned: [scene.bob])
  }

  /// *Send anyway* for the shown ghost, after another one has come.
  static func anotherGhost(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let ghosts = [UInt32(900), 901].map { number in
      Ghost(scene.world, call: scene.call, user: number == 900 ? "zed" : "zoe", participant: number)
    }
    func use(_ list: [ListEntry]) throws {
      let rotation = try scene.announcement(list, for: scene.bob)
      #expect(try scene.announce(rotation, to: scene.bob).isEmpty)
      let keys = try #require(scene.bob.stay).keys
      let epoch = try #require(keys.epochs[keys.newest])
      scene.bob.stay?.keys.epochs[keys.newest]?.minimumGeneration = 0
      let key = keys.join.joinKey
      let envelope = try #require(
        Envelope.sealing(
          SymmetricKey(size: .bits256), for: scene.bob.address, alg: key.alg, publicKey: key.publicKey.bytes,
          in: EnvelopeContext(call: scene.call, epoch: epoch.number, listHash: epoch.listHash),
          from: scene.alice.identity))
      try scene.tell(scene.bob, .envelope(envelope, delivery: 1))
      try scene.tell(scene.bob, .switchKeys(epoch: rotation.epoch))
    }
    let honest = try scene.entries(of: scene.bob)
    try use(ghosts[0].haunt(honest))
    scene.world.run(11_000)
    #expect(scene.bob.stay?.cipher.sendingEpoch == nil)
    let shown = try #require(scene.bob.stay).silence
    try use(ghosts[1].haunt(ghosts[0].haunt(honest)))
    guard case .strangers(let named)? = shown.first else {
      Issue.record("\(shown)")
      return Aftermath(scene, warned: [])
    }
    try scene.tell(scene.bob, .sendAnyway(named))
    #expect(scene.bob.stay?.cipher.sendingEpoch != nil)
    scene.world.run(11_000)
    #expect(scene.bob.stay?.cipher.sendingEpoch == nil, "the person was never asked about the second one")
    return Aftermath(scene, warned: [scene.bob])
  }

  /// A device that is revoked for Bob, but gets the key from Alice because she ignores the revocation.
  static func revokedHears(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let thief = scene.carol.identity
    _ = scene.bob.pins.remember(thief.publicKeys)
    scene.bob.pins.learn(
      TrustStatement(
        .revoke, device: thief.device, fingerprint: thief.fingerprint, at: scene.world.timestamp, by: thief))
    try scene.tell(scene.bob, .trustChanged)
    #expect(scene.bob.stay?.cipher.sendingEpoch == nil)
    guard case .revoked(let shown)? = scene.bob.stay?.silence.first else {
      Issue.record("\(String(describing: scene.bob.stay?.silence))")
      return Aftermath(scene, warned: [])
    }
    #expect(shown.map(\.user) == ["carol"] && shown.allSatisfy(\.hasConfirmed))
    try scene.sendAnyway(scene.bob)
    #expect(scene.bob.stay?.cipher.sendingEpoch != nil)
    return Aftermath(scene, warned: [scene.bob])
  }

  /// A made-up device of Bob, whom the caller knows: it rings without a key, and the caller is told.
  static func newDeviceRings(_ seed: UInt64) throws -> Aftermath {
    let world = World(seed: seed)
    let (alice, bob) = (world.add("alice"), world.add("bob"))
    world.run(1_000)
    alice.pins.pin(bob.address, bob.identity.fingerprint, isVerified: true)
    world.add("bob", "ghost")
    world.run(1_000)
    var rung: [Device] = []
    world.alter = { request, _ in
      if case .calls(.start(let start)) = request { rung = (start.envelopes ?? []).map(\.to) }
      return request
    }
    alice.start(["bob"])
    world.run(1_000)
    #expect(rung == [bob.address])
    return Aftermath(isWarned: alice.warnings.contains { $0.problem == .newDevice && $0.device == "ghost" })
  }

  /// The ring is not answered: a device with the ring's key hears nothing of the room.
  static func ringsForever(_ seed: UInt64) throws -> Aftermath {
    let world = World(seed: seed)
    let (alice, _) = (world.add("alice"), world.add("bob"))
    world.run(1_000)
    alice.start(["bob"])
    world.run(20_000)
    #expect(alice.stay?.silence == [.alone] && world.audit.recent.isEmpty)
    return Aftermath()
  }

  /// The server keeps forwarding a track that its person has muted.
  private static func mutedTrack(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let cipher = try #require(scene.alice.stay).cipher
    cipher.setMuted(true, track: 1)
    #expect(throws: FrameCipherError.muted) { try cipher.seal([1], track: 1) }
    cipher.setMuted(false, track: 1)
    cipher.hold(true)
    #expect(throws: FrameCipherError.muted) { try cipher.seal([1], track: 1) }
    return Aftermath(scene, warned: [])
  }

  // MARK: order and repetition

  /// Sound is withheld and delivered later, so that words are reordered.
  static func wordsInAnotherOrder(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed, isSilent: true)
    let (alice, carol) = (try #require(scene.alice.stay), try #require(scene.carol.stay))
    let frames = try (0..<100).map { _ in try alice.cipher.seal([1], track: 1) }
    let track = TrackID(participant: alice.participant, index: 1)
    let now = Instant(nanoseconds: 0)
    carol.cipher.assign(["0": track], now: now)
    carol.cipher.receiveSound(in: ["0"])
    #expect(throws: Never.self) { try carol.cipher.open(frames[99], from: .slot("0", now: now)) }
    #expect(throws: Never.self) { try carol.cipher.open(frames[40], from: .slot("0", now: now)) }
    #expect(throws: FrameCipherError.replayed) { try carol.cipher.open(frames[34], from: .slot("0", now: now)) }
    return Aftermath(scene, warned: [])
  }

  /// A member repeats a private message in another SFrame.
  static func privateAgain(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let (alice, bob) = (try #require(scene.alice.stay), try #require(scene.bob.stay))
    let made = alice.keys.privateContent(Array("yes".utf8), to: [bob.participant])
    let content = try #require(made)
    for isFirst in [true, false] {
      let sealed = try alice.cipher.seal(content, track: 0, metadata: Array("private".utf8))
      let message = CallMessage(from: alice.participant, body: Base64Bytes([1] + sealed))
      let opened = CallClient.open(message, bob.cipher, &bob.keys)
      #expect(opened == (isFirst ? .text(Array("yes".utf8), isPrivate: true) : .dropped))
    }
    return Aftermath(scene, warned: [])
  }

  /// A member seals messages without padding, or with other padding.
  static func mispadded(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let (alice, bob) = (try #require(scene.alice.stay), try #require(scene.bob.stay))
    let good = MessagePadding.padded([1, 2])
    let texts: [[UInt8]] = [[1, 2], good + [UInt8](repeating: 0, count: 64), good.dropLast() + [1], good]
    for text in texts {
      let sealed = try alice.cipher.seal(text, track: 0, metadata: Array("message".utf8))
      let message = CallMessage(from: alice.participant, body: Base64Bytes([0] + sealed))
      let opened = CallClient.open(message, bob.cipher, &bob.keys)
      #expect(opened == (text == good ? .text([1, 2], isPrivate: false) : .dropped))
    }
    return Aftermath(scene, warned: [])
  }

  /// The fingerprint of this device, or of the phone, is listed beside the old laptop.
  static func foreignFingerprint(_ seed: UInt64) throws -> Aftermath {
    let (own, laptop) = (
      DeviceIdentity(user: "alice", device: "tablet")!, DeviceIdentity(user: "alice", device: "laptop")!
    )
    var entry = Ghost.entry(of: laptop)
    entry.fingerprint = Base64Bytes(own.fingerprint)
    #expect(RegisteredDevice(entry)?.fingerprint == laptop.fingerprint)
    entry.keys = own.registration
    #expect(RegisteredDevice(entry)?.fingerprint != own.fingerprint)
    return Aftermath()
  }
}
