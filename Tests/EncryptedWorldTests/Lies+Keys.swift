import CallMessages
import Contract
import Crypto
import Foundation
import MediaModel
import Testing

@testable import Calls
@testable import CallMachine
@testable import ConclaveClient
import struct ConclaveClient.Epoch

/// Rows about envelopes, join keys, switches and confirmations.
extension Lies {
  static let keys: [Int: @Sendable (UInt64) throws -> Aftermath] = [
    25: oldRefresh, 26: withheldRefresh, 27: elsewhere, 28: unsigned, 29: secondSecret, 30: twoSecrets,
    31: longLivedKey,
    32: withheldEnvelopes, 33: withheldSwitch, 34: falseSwitches, 35: neverRotates, 41: falseSums,
    42: droppedConfirmations, 43: poisoned, 44: replayedRing, 45: foreignRing, 46: otherCall, 67: otherNumber,
    70: strangersOnDelivery, 73: oldState,
  ]

  /// A fresh epoch is announced only to Bob; this is the envelope that Alice would send him.
  private static func announced(
    _ scene: Scene, list: [ListEntry]? = nil
  ) throws -> (epoch: Epoch, envelope: (SymmetricKey, EnvelopeContext, JoinKey?) throws -> Envelope) {
    try scene.announce(scene.announcement(list, for: scene.bob), to: scene.bob)
    let keys = try #require(scene.bob.stay).keys
    let epoch = try #require(keys.epochs[keys.newest])
    // Rows 25 and 26 test generations; here the key of the list is accepted.
    if list == nil, keys.join.published < 2 { scene.bob.stay?.keys.epochs[keys.newest]?.minimumGeneration = 0 }
    return (
      epoch,
      { secret, context, key in
        let key = key ?? keys.join.joinKey
        return try #require(
          Envelope.sealing(
            secret, for: scene.bob.address, alg: key.alg, publicKey: key.publicKey.bytes, in: context,
            from: scene.alice.identity))
      }
    )
  }

  private static func context(_ scene: Scene, _ epoch: Epoch) -> EnvelopeContext {
    EnvelopeContext(call: scene.call, epoch: epoch.number, listHash: epoch.listHash)
  }

  private static func secret() -> SymmetricKey { SymmetricKey(size: .bits256) }

  private static func oldRefresh(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    var join = try #require(scene.bob.stay).keys.join
    let first = join.refresh(scene.bob.identity, at: scene.world.timestamp)
    var other = try #require(scene.bob.stay).keys.join
    let same = other.refresh(scene.bob.identity, at: scene.world.timestamp)
    var given: [Envelope] = []
    scene.world.alter = { request, _ in
      if case .calls(.inCall(_, .keys(let keys))) = request { given += keys.envelopes }
      return request
    }
    func ask(_ refresh: JoinKey?) throws -> Int {
      let before = given.count
      var entry = try #require(scene.entries(of: scene.alice).first { $0.address == scene.bob.address })
      entry.keys = scene.bob.identity.registration
      entry.refresh = refresh
      let newest = try #require(scene.alice.stay).keys.newest
      try scene.tell(scene.alice, .keyRequest(KeyRequest(epoch: newest, to: entry)))
      scene.world.run(500)
      return given.count - before
    }
    #expect(try ask(first) == 1)
    #expect(try ask(nil) == 0)
    #expect(try ask(same) == 0)
    #expect(try ask(first) == 1)
    return Aftermath(scene, warned: [scene.alice])
  }

  private static func withheldRefresh(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    // Bob has published a newer key before the epoch is announced.
    var keys = try #require(scene.bob.stay).keys
    _ = keys.own.join.refresh(scene.bob.identity, at: scene.world.timestamp)
    keys.own.join.publish()
    scene.bob.stay?.keys = keys
    let (epoch, envelope) = try announced(scene)
    try scene.tell(scene.bob, .envelope(envelope(secret(), context(scene, epoch), nil), delivery: 1))
    #expect(scene.bob.refusals == [.envelopeForOldKey])
    #expect(scene.bob.stay?.keys.epochs[epoch.number]?.secret == nil)
    return Aftermath(scene, warned: [scene.bob])
  }

  private static func elsewhere(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let (epoch, envelope) = try announced(scene)
    let right = context(scene, epoch)
    var wrong: [Envelope] = []
    for change in [
      { $0.call = CallID(unchecked: "6d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d5") }, { $0.epoch += 1 },
      { $0.listHash[0] ^= 1 },
    ] as [(inout EnvelopeContext) -> Void] {
      var context = right
      change(&context)
      var forged = try envelope(secret(), context, nil)
      forged.epoch = epoch.number
      wrong.append(forged)
    }
    var toCarol = try envelope(secret(), right, nil)
    toCarol.to = scene.carol.address
    wrong.append(toCarol)
    for forged in wrong { try scene.tell(scene.bob, .envelope(forged, delivery: 1)) }
    #expect(scene.bob.stay?.keys.epochs[epoch.number]?.secret == nil)
    return Aftermath(scene, warned: [])
  }

  private static func unsigned(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let (epoch, envelope) = try announced(scene)
    var unsigned = try envelope(secret(), context(scene, epoch), nil)
    unsigned.signature = nil
    try scene.tell(scene.bob, .envelope(unsigned, delivery: 1))
    let ghost = Ghost(scene.world, call: scene.call)
    let key = try #require(scene.bob.stay).keys.join.joinKey
    let stranger = try #require(
      Envelope.sealing(
        secret(), for: scene.bob.address, alg: key.alg, publicKey: key.publicKey.bytes, in: context(scene, epoch),
        from: ghost.identity))
    try scene.tell(scene.bob, .envelope(stranger, delivery: 2))
    var masked = stranger
    masked.from = scene.alice.address
    try scene.tell(scene.bob, .envelope(masked, delivery: 3))
    #expect(scene.bob.stay?.keys.epochs[epoch.number]?.secret == nil)
    return Aftermath(scene, warned: [])
  }

  private static func secondSecret(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let (epoch, envelope) = try announced(scene)
    let first = secret()
    for secret in [first, secret()] {
      try scene.tell(scene.bob, .envelope(envelope(secret, context(scene, epoch), nil), delivery: 1))
    }
    #expect(scene.bob.stay?.keys.epochs[epoch.number]?.secret == first)
    return Aftermath(scene, warned: [])
  }

  /// Alice, the leader, gives Bob and Carol different secrets.
  private static func twoSecrets(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let dave = try join(scene, "dave")
    scene.world.run(3_000)
    let list = try #require(scene.world.calls.control.calls[scene.call]).epochs.newest
    scene.world.alter = { request, device in
      guard case .calls(.inCall(let id, .keys(var handedOut))) = request, device == scene.alice.address,
        let index = handedOut.envelopes.firstIndex(where: { $0.to == scene.bob.address }),
        let keys = scene.alice.stay?.keys, let epoch = keys.epochs[handedOut.epoch],
        let keyedDevice = scene.world.calls.control.calls[id]?.epochs.keyedDevices[scene.bob.address],
        case let key = keyedDevice.refresh ?? keyedDevice.joinKey,
        let other = Envelope.sealing(
          secret(), for: scene.bob.address, alg: key.alg, publicKey: key.publicKey.bytes,
          in: EnvelopeContext(call: id, epoch: epoch.number, listHash: epoch.listHash), from: scene.alice.identity)
      else { return request }
      handedOut.envelopes[index] = other
      return .inCall(id, .keys(handedOut))
    }
    dave.leave()
    scene.world.run(25_000)
    #expect(scene.world.calls.control.calls[scene.call]?.epochs.newest.number ?? 0 > list.number)
    #expect(scene.carol.stay?.heard[scene.bob.address] != nil)
    guard case .notConfirmed(let who) = scene.carol.stay?.confirmation else {
      Issue.record("Carol was not told")
      return Aftermath(scene, warned: [])
    }
    #expect(who.map(\.user) == ["bob"])
    return Aftermath(scene, warned: [scene.carol])
  }

  private static func join(_ scene: Scene, _ user: String) throws -> SimDevice {
    let device = scene.world.add(user)
    scene.world.run(500)
    scene.alice.invite([user], to: scene.call)
    scene.world.run(500)
    device.accept(scene.call)
    return device
  }

  private static func longLivedKey(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let (epoch, _) = try announced(scene)
    let wrap = scene.bob.identity.publicKeys.wrap
    let envelope = try #require(
      Envelope.sealing(
        secret(), for: scene.bob.address, alg: wrap.alg, publicKey: wrap.publicKey.bytes, in: context(scene, epoch),
        from: scene.alice.identity))
    try scene.tell(scene.bob, .envelope(envelope, delivery: 1))
    #expect(scene.bob.refusals == [.envelopeForOldKey])
    #expect(scene.bob.stay?.keys.epochs[epoch.number]?.secret == nil)
    return Aftermath(scene, warned: [scene.bob])
  }

  private static func withheldEnvelopes(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    var asked = 0
    scene.world.lie = { message, device in
      if case .envelope = message.body, device == scene.bob.address { return nil }
      return message
    }
    scene.world.alter = { request, device in
      if case .calls(.inCall(_, .requestKey)) = request, device == scene.bob.address { asked += 1 }
      return request
    }
    scene.carol.leave()
    scene.world.run(12_000)
    #expect(asked == 3)
    #expect(scene.bob.stay?.cipher.sendingEpoch == nil)
    #expect(scene.bob.refusals == [.keyWithheld])
    return Aftermath(scene, warned: [scene.bob])
  }

  private static func withheldSwitch(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let before = try #require(scene.bob.stay?.cipher.sendingEpoch)
    scene.world.lie = { message, _ in if case .switchKeys = message.body { nil } else { message } }
    scene.carol.leave()
    let time = scene.world.run(
      until: { [scene.alice, scene.bob].allSatisfy { ($0.stay?.cipher.sendingEpoch ?? 0) > before } }, limit: 10_000)
    // 100 ms until the announcement, the envelope's delay, and 3 s.
    #expect(time ?? .max <= 4_500)
    // A state that says otherwise makes nobody rejoin.
    let state = try #require(scene.bob.stay).session.state
    var old = state
    old.epoch = before
    try scene.tell(scene.bob, .state(old))
    #expect(scene.bob.stay?.cipher.sendingEpoch ?? 0 > before)
    #expect(scene.bob.refusals.isEmpty)
    return Aftermath(scene, warned: [])
  }

  private static func oldState(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let bob = try #require(scene.bob.stay)
    // Bob is not in it, so he would rejoin.
    var old = bob.session.state
    old.members.removeAll { $0.user == scene.bob.address.user }
    scene.carol.leave()
    scene.world.run(3_000)
    let known = bob.session.state
    #expect(try #require(known.rev) > #require(old.rev))
    scene.bob.apply(.state(old), to: bob)
    scene.world.run(3_000)
    #expect(scene.bob.stay === bob && bob.session.state == known)
    return Aftermath(scene, warned: [])
  }

  private static func falseSwitches(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let epoch = try #require(scene.bob.stay?.cipher.sendingEpoch)
    for number in [epoch, epoch - 1, 1, 0, epoch + 1, .max] {
      try scene.tell(scene.bob, .switchKeys(epoch: number))
      scene.world.run(300)
    }
    #expect(scene.bob.stay?.cipher.sendingEpoch == epoch)
    #expect(scene.bob.stay?.keys.current == epoch)
    #expect(scene.bob.refusals.isEmpty)
    return Aftermath(scene, warned: [])
  }

  private static func neverRotates(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    scene.world.isSilent = true
    scene.world.lie = { message, _ in if case .rotate = message.body { nil } else { message } }
    scene.world.run(19 * 60_000)
    #expect(!scene.bob.refusals.contains(.keyTooOld))
    scene.world.run(2 * 60_000)
    #expect(scene.bob.refusals.filter { $0 == .keyTooOld }.count == 1)
    return Aftermath(scene, warned: [scene.bob])
  }

  // MARK: confirmations

  private static func falseSums(_ seed: UInt64) throws -> Aftermath {
    let lies: [(inout ConfirmationBucket) -> Void] = [
      { $0.tag.bytes[3] ^= 1 }, { $0.who.bytes[7] = 1 }, { $0.who.bytes = [] }, { $0.tag.bytes = [1] },
      { $0.index = 1 }, { $0.index = -1 }, { $0.who.bytes[0] = 0 },
    ]
    for lie in lies {
      let scene = try Scene(seed: seed)
      scene.world.run(3_000)
      #expect(scene.bob.stay?.confirmation == .confirmed)
      var asked = 0
      scene.world.alter = { request, device in
        if case .calls(.inCall(_, .listConfirmations)) = request, device == scene.bob.address { asked += 1 }
        return request
      }
      let keys = try #require(scene.bob.stay).keys
      let epoch = try #require(keys.current.flatMap { keys.epochs[$0] })
      var bucket = try sum(epoch, scene.call)
      lie(&bucket)
      try scene.tell(scene.bob, .confirmed(KeysConfirmed(epoch: epoch.number, buckets: [bucket])))
      scene.world.run(1_000)
      // A bucket that the list does not have is refused; for any other, the single tags are requested once and show nothing wrong.
      #expect(asked == ((0..<1).contains(bucket.index) ? 1 : 0))
      #expect(scene.bob.refusals == [.confirmationNotTrue])
    }
    // Tags of another epoch.
    let scene = try Scene(seed: seed)
    let keys = try #require(scene.bob.stay).keys
    let old = keys.newest
    scene.carol.leave()
    scene.world.run(6_000)
    try scene.tell(
      scene.bob,
      .confirmed(KeysConfirmed(epoch: old, buckets: [sum(#require(keys.epochs[old]), scene.call)])))
    #expect(scene.bob.refusals.isEmpty)
    return Aftermath(isWarned: true)
  }

  /// The sum of all tags of an epoch, as computed by an honest server.
  private static func sum(_ epoch: Epoch, _ call: CallID) throws -> ConfirmationBucket {
    let key = try #require(epoch.confirmationKey(call))
    var who: UInt64 = 0
    var sum = [UInt8](repeating: 0, count: 16)
    for (bit, entry) in epoch.list.entries.enumerated() {
      who |= 1 << UInt64(63 - bit)
      let identity = SenderIdentity(fingerprint: entry.fingerprint.bytes, joinId: entry.joinId?.bytes ?? [])
      for (i, byte) in Confirmation.tag(key, entry.participant, identity).enumerated() { sum[i] ^= byte }
    }
    let bytes = (0..<8).map { UInt8(truncatingIfNeeded: who >> UInt64(56 - 8 * $0)) }
    return ConfirmationBucket(index: 0, who: Base64Bytes(bytes), tag: Base64Bytes(sum))
  }

  private static func droppedConfirmations(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    scene.world.lie = { message, _ in if case .confirmed = message.body { nil } else { message } }
    scene.carol.leave()
    scene.world.run(20_000)
    for device in [scene.alice, scene.bob] {
      guard case .notConfirmed = device.stay?.confirmation else {
        Issue.record("a device that nobody confirmed to says \(String(describing: device.stay?.confirmation))")
        continue
      }
      // Media continues.
      #expect(device.stay?.silence.isEmpty == true && device.stay?.cipher.sendingEpoch != nil)
    }
    return Aftermath(scene, warned: [])
  }

  private static func poisoned(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    scene.world.alter = { request, device in
      guard case .calls(.inCall(let call, .confirmKey(var body))) = request, device == scene.carol.address else {
        return request
      }
      body.tag.bytes[0] ^= 1
      return .inCall(call, .confirmKey(body))
    }
    _ = try join(scene, "dave")
    scene.world.run(15_000)
    for device in [scene.alice, scene.bob] {
      #expect(device.warnings.contains { $0.problem == .otherKey && $0.user == "carol" })
      guard case .notConfirmed(let who) = device.stay?.confirmation else {
        Issue.record("the poisoned bucket was not noticed")
        continue
      }
      #expect(who.map(\.user) == ["carol"])
      #expect(device.stay?.silence.isEmpty == true)
    }
    return Aftermath(scene, warned: [scene.alice])
  }

  // MARK: rings

  private static func replayedRing(_ seed: UInt64) throws -> Aftermath {
    let world = World(seed: seed)
    let (alice, bob) = (world.add("alice"), world.add("bob"))
    world.run(1_000)
    alice.start(["bob"])
    world.run(1_000)
    let (call, ring) = try #require(bob.rings.first)
    var other = JoinCredentials(bob.identity, call: call, at: bob.clock, using: &world.random)
    func accept(_ join: JoinCredentials, after minutes: Int) -> KeyAgreement {
      var keys = KeyAgreement(identity: bob.identity, join: join, directory: bob.directory, now: world.instant)
      keys.own.participant = 2
      _ = keys.accept(ring, clock: bob.clock + .seconds(60 * minutes), now: world.instant)
      return keys
    }
    #expect(accept(other, after: 0).current == 1)
    #expect(accept(other, after: 24 * 60).current == nil)
    other = JoinCredentials(
      bob.identity, call: CallID(unchecked: world.uuid()), at: bob.clock, using: &world.random)
    #expect(accept(other, after: 0).current == nil)
    // The same ring again: it rings, and its envelope is no longer used.
    bob.accept(call)
    #expect(world.run(until: { bob.stay != nil }, limit: 1_000) != nil)
    #expect(bob.stay?.keys.current == 1)
    bob.restartKeepingRing(call, ring)
    bob.accept(call)
    world.run(100)
    #expect(bob.stay?.keys.current != 1)
    try world.audit.check()
    return Aftermath()
  }

  private static func foreignRing(_ seed: UInt64) throws -> Aftermath {
    let world = World(seed: seed)
    let (alice, bob) = (world.add("alice"), world.add("bob"))
    world.add("carol")
    world.run(1_000)
    world.lie = { message, _ in
      guard case .ring(var ring) = message.body else { return message }
      ring.from = UserID("carol")!
      var message = message
      message.body = .ring(ring)
      return message
    }
    alice.start(["bob"])
    world.run(1_000)
    bob.accept(try #require(bob.rings.keys.first))
    // The ring's envelope belongs to epoch 1. The next epoch is agreed without it.
    #expect(world.run(until: { bob.stay != nil }, limit: 1_000) != nil)
    #expect(bob.stay?.keys.current == nil)
    world.run(300)
    #expect(bob.stay?.keys.current != 1)
    #expect(bob.refusals == [.ringNotTrusted])
    try world.audit.check()
    return Aftermath(isWarned: !bob.refusals.isEmpty)
  }

  private static func otherCall(_ seed: UInt64) throws -> Aftermath {
    try start(seed) { $0.call.id = CallID(unchecked: "6d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d5") }
  }

  private static func otherNumber(_ seed: UInt64) throws -> Aftermath { try start(seed) { $0.participant = 2 } }

  private static func start(_ seed: UInt64, _ lie: @escaping (inout Joined) -> Void) throws -> Aftermath {
    let world = World(seed: seed)
    let alice = world.add("alice")
    world.add("bob")
    world.run(1_000)
    world.lieInReply = { reply, device in
      guard case .ok(.joined(var joined)) = reply, device == alice.address else { return reply }
      lie(&joined)
      return .ok(.joined(joined))
    }
    alice.start(["bob"])
    world.run(2_000)
    #expect(alice.stay == nil)
    return Aftermath(isWarned: alice.aborted == [.notUnderstood])
  }

  private static func strangersOnDelivery(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let ghost = Ghost(scene.world, call: scene.call)
    var given: [Device] = []
    scene.world.alter = { request, _ in
      if case .calls(.inCall(_, .keys(let keys))) = request { given += keys.envelopes.map(\.to) }
      return request
    }
    let newest = try #require(scene.alice.stay).keys.newest
    var masked = try #require(scene.entries(of: scene.alice).first { $0.address == scene.bob.address })
    masked.joinKey = ghost.entry.joinKey
    for entry in [ghost.delivered, masked] {
      try scene.tell(scene.alice, .keyRequest(KeyRequest(epoch: newest, to: entry)))
    }
    scene.world.run(1_000)
    #expect(given.isEmpty)
    return Aftermath(scene, warned: [])
  }
}
