import Contract
import Crypto
import MediaModel
import Octets
import Testing

@testable import ConclaveClient

/// The key that comes with a ring: what a callee does with it, and with forged or old ones.
struct RingKeyTests {
  private struct Caller {
    let alice = DeviceIdentity(user: "alice", device: "phone")!
    let bob = DeviceIdentity(user: "bob", device: "laptop")!
    let carol = DeviceIdentity(user: "carol", device: "phone")!
    var agreement: KeyAgreement
    var envelopes: [Envelope]
    var ring: Ring
    var effects: [KeyEffect]
    /// The entry in `devices/list`.
    var directory: [DeviceEntry]

    init(_ change: (inout [DeviceEntry]) -> Void = { _ in }) {
      var generator = SplitMix64(seed: 7)
      directory = Self.entries([alice, bob, carol])
      change(&directory)
      let join = JoinCredentials(alice, call: KeyWorld.call, at: KeyWorld.clock, using: &generator)
      agreement = KeyAgreement(identity: alice, join: join, now: RingKeyTests.now)
      (envelopes, _) = agreement.ring(directory, using: &generator)
      let bobs = bob.address
      ring = Ring(
        from: alice.address.user, media: .audio, members: [], waiting: false, expiresAt: KeyWorld.clock, metadata: nil,
        envelope: envelopes.first { $0.to == bobs }, list: agreement.ringKeys.first?.list.entries,
        admissions: [.letting(bobs.user, into: KeyWorld.call, by: alice)])
      effects = []
      effects = agreement.start(joined(1, [(alice, 1, join.joinId)]), now: RingKeyTests.now, using: &generator) ?? []
    }

    private static func entries(_ devices: [DeviceIdentity]) -> [DeviceEntry] {
      devices.map {
        DeviceEntry(
          user: $0.address.user, device: $0.address.device, name: nil, keys: $0.registration,
          fingerprint: Base64Bytes($0.fingerprint), registeredAt: Timestamp(milliseconds: 0))
      }
    }

    func joined(_ participant: UInt32, _ devices: [(DeviceIdentity, UInt32, Base64Bytes)]) -> Joined {
      Joined(
        call: CallState(
          id: KeyWorld.call, state: .active, media: .audio, initiator: alice.address.user, startedAt: KeyWorld.clock,
          epoch: 1, policy: Policy(),
          members: devices.map { device, number, joinId in
            MemberState(
              user: device.address.user, name: nil, state: .joined,
              participants: [
                ParticipantState(
                  participant: number, device: device.address.device, joinId: joinId, connected: true, held: false,
                  tracks: [])
              ])
          }, metadata: nil), participant: participant, ice: ICE())
    }
  }

  private static let now = Instant(nanoseconds: 1_000_000_000)

  /// Bob answers; returns his agreement and its requests.
  private func accept(
    _ caller: Caller, _ ring: Ring, as participant: UInt32 = 2, clock: Timestamp = KeyWorld.clock, pins: Pins = Pins(),
    knows: Bool = true
  ) -> (agreement: KeyAgreement, effects: [KeyEffect]) {
    var generator = SplitMix64(seed: 8)
    var directory = KnownKeys()
    if knows { directory.learn(caller.directory) }
    let join = JoinCredentials(caller.bob, call: KeyWorld.call, at: clock, using: &generator)
    var bob = KeyAgreement(identity: caller.bob, join: join, pins: pins, directory: directory, now: Self.now)
    var effects = bob.enter(
      caller.joined(
        participant, [(caller.alice, 1, caller.agreement.join.joinId), (caller.bob, participant, join.joinId)]),
      now: Self.now)
    effects += bob.accept(ring, clock: clock, now: Self.now)
    return (bob, effects)
  }

  private func refusals(_ effects: [KeyEffect]) -> [KeyRefusal] {
    effects.compactMap { if case .refused(let refusal) = $0 { refusal } else { nil } }
  }

  @Test func theAcceptingAndTheCallingDeviceHearEachOther() throws {
    var caller = Caller()
    let (bob, effects) = accept(caller, caller.ring)
    #expect(refusals(effects).isEmpty)
    let (alices, bobs) = (FrameCipher(), FrameCipher())
    func take(_ effects: [KeyEffect], _ cipher: FrameCipher) {
      for effect in effects {
        switch effect {
        case .install(let keys): cipher.install(keys)
        case .send(let key): cipher.send(key)
        default: break
        }
      }
    }
    take(effects, bobs)
    take(caller.effects, alices)
    #expect(throws: FrameCipherError.noKey, "nothing is sealed while it rings") { try alices.seal([1], track: 1) }
    // Its 10 s begin when it starts to send.
    #expect(caller.agreement.switching.securing.due == nil)
    var generator = SplitMix64(seed: 9)
    let state = caller.joined(1, [(caller.alice, 1, caller.agreement.join.joinId), (caller.bob, 2, bob.join.joinId)])
      .call
    take(caller.agreement.handle(.state(state), now: Self.now, using: &generator), alices)
    #expect(try bobs.openWhereItBelongs(alices.seal([1], track: 1)).1.participant == 1)
    #expect(try alices.openWhereItBelongs(bobs.seal([2], track: 1)).1.participant == 2)
    #expect(bob.code == caller.agreement.code)
    #expect(caller.agreement.switching.securing.due == Self.now.advanced(by: .seconds(10)))
  }

  /// Nothing can be sealed to Carol's wrap key, or to one of an unknown kind: Bob is still rung with a key.
  @Test(arguments: [WrapAlgorithm.hpke.rawValue, WrapAlgorithm.rsa.rawValue, WrapAlgorithm.ecies.rawValue, "ROT13"])
  func aDeviceWithABadWrapKeyIsLeftOut(_ algorithm: String) throws {
    let caller = Caller { devices in
      devices[2].keys[0] = DeviceKey(
        use: .wrap, alg: algorithm, publicKey: Base64Bytes([UInt8](repeating: 7, count: 91)))
    }
    #expect(caller.envelopes.map(\.to) == [caller.bob.address])
    #expect(caller.ring.list?.map(\.user.text) == ["alice", "bob"])
    let (bob, effects) = accept(caller, caller.ring)
    #expect(refusals(effects).isEmpty)
    #expect(bob.current == 1 && bob.code == caller.agreement.code)
  }

  @Test func aForgedRingBringsNoKey() throws {
    let caller = Caller()
    func refused(_ change: (inout Ring) -> Void) -> Bool {
      var ring = caller.ring
      change(&ring)
      let (bob, effects) = accept(caller, ring)
      return bob.current == nil && !refusals(effects).isEmpty
    }
    #expect(refused { $0.envelope?.signature = nil })
    #expect(refused { $0.envelope?.ciphertext.bytes[70] ^= 1 })
    #expect(refused { $0.envelope?.key.bytes[0] ^= 1 })
    #expect(refused { $0.from = UserID("carol")! })
    #expect(refused { $0.envelope?.from = caller.carol.address })
    // Another list than the one that was signed, another join of the caller, two joins, or a list without this device.
    #expect(refused { $0.list?.removeLast() })
    #expect(refused { $0.list?[0].joinId?.bytes[0] ^= 1 })
    #expect(refused { $0.list?[0].joinKey?.at.milliseconds += 1 })
    #expect(refused { $0.list?.remove(at: 1) })
    #expect(refused { $0.list?[1].joinId = Base64Bytes([UInt8](repeating: 0, count: 16)) })
    #expect(
      refused {
        $0.list?[2].participant = 2
        $0.list?[2].joinId = Base64Bytes([UInt8](repeating: 3, count: 16))
        let key = $0.list?[0].joinKey
        $0.list?[2].joinKey = key
      })
  }

  /// A recorded ring is useless a quarter of an hour later; a slightly wrong clock does no harm.
  @Test func anOldRingBringsNoKey() {
    let caller = Caller()
    for (minutes, isUsed) in [(-11, false), (-9, true), (9, true), (11, false)] {
      let clock = KeyWorld.clock + .seconds(60 * minutes)
      let (bob, effects) = accept(caller, caller.ring, clock: clock)
      #expect((bob.current == 1) == isUsed)
      #expect(refusals(effects).isEmpty)
    }
  }

  @Test func aReplyWithTheCallersNumberBringsNoKey() {
    let caller = Caller()
    let (bob, effects) = accept(caller, caller.ring, as: 1)
    #expect(bob.current == nil && refusals(effects) == [.ringNotTrusted])
  }

  @Test func aCallerWithAChangedOrUnknownKeyIsNotBelieved() throws {
    let caller = Caller()
    var pins = Pins()
    pins.pin(caller.alice.address, [UInt8](repeating: 1, count: 32))
    let (bob, effects) = accept(caller, caller.ring, pins: pins)
    #expect(bob.current == nil)
    #expect(effects.contains { if case .warn(let warning) = $0 { warning.problem == .changedKey } else { false } })
    #expect(accept(caller, caller.ring, knows: false).agreement.current == nil)
  }

  @Test func anotherCallOrNumberThanAskedForStartsNothing() throws {
    var generator = SplitMix64(seed: 10)
    let caller = Caller()
    for (id, number) in [("6d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d5", UInt32(1)), (KeyWorld.call.text, 2)] {
      var agreement = KeyAgreement(
        identity: caller.alice,
        join: JoinCredentials(caller.alice, call: KeyWorld.call, at: KeyWorld.clock, using: &generator), now: Self.now)
      var joined = caller.joined(number, [])
      joined.call.id = try #require(CallID(id))
      let effects = agreement.start(joined, now: Self.now, using: &generator)
      #expect(effects?.count == nil)
    }
  }

  @Test func untrustedDevicesGetNoRingEnvelope() throws {
    var generator = SplitMix64(seed: 11)
    let caller = Caller()
    var pins = Pins()
    pins.pin(caller.bob.address, [UInt8](repeating: 1, count: 32))
    pins.pin(caller.carol.address, caller.carol.fingerprint, isVerified: true)
    for trust in [KeyTrust.firstUse, .verifiedOnly] {
      var agreement = KeyAgreement(
        identity: caller.alice,
        join: JoinCredentials(caller.alice, call: KeyWorld.call, at: KeyWorld.clock, using: &generator), pins: pins,
        trust: trust, now: Self.now)
      let envelopes = agreement.ring(caller.directory, using: &generator).envelopes
      #expect(envelopes.map(\.to) == [caller.carol.address])
    }
  }

  /// A ring's envelope is used once; a thousand are remembered.
  @Test func aRingIsUsedOnce() {
    var rings = UsedRings([UsedRing(call: "a", at: 0)])
    let call = CallID(unchecked: "b")
    #expect(rings.contains(CallID(unchecked: "a")) && !rings.contains(call))
    rings.insert(call, at: Timestamp(milliseconds: UsedRings.time + 1))
    #expect(rings.contains(call) && !rings.contains(CallID(unchecked: "a")))
    for number in 0..<UsedRings.limit {
      rings.insert(CallID(unchecked: "c\(number)"), at: Timestamp(milliseconds: UsedRings.time + 2))
    }
    #expect(!rings.contains(call) && rings.contains(CallID(unchecked: "c0")))
  }
}
