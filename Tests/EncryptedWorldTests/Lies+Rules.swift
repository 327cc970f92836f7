import CallMessages
import Contract
import Crypto
import Foundation
import MediaModel
import Seeded
import Simulation
import Testing

@testable import ConclaveClient

/// Rows about the client's own rules, and about trust.
extension Lies {
  static let rules: [Int: @Sendable (UInt64) throws -> Aftermath] = [
    36: staysInFirstEpoch, 37: flappingGhost, 38: ghost, 39: departed, 40: unlisted, 48: otherName, 49: hangingLookUp,
    50: changedKey, 51: dialog, 52: sameName, 53: worthlessVouches, 54: stolenVoucher, 55: pairing, 66: afterTheEnd,
    71: guestsMark, 72: guestWithoutLink,
  ]

  private static func staysInFirstEpoch(_ seed: UInt64) throws -> Aftermath {
    let world = World(seed: seed)
    let (alice, bob) = (world.add("alice"), world.add("bob"))
    world.run(1_000)
    world.lie = { message, _ in if case .rotate = message.body { nil } else { message } }
    alice.start(["bob"])
    world.run(1_000)
    bob.accept(try #require(bob.rings.keys.first))
    world.run(9_000)
    #expect(alice.stay?.cipher.sendingEpoch == 1 && bob.stay?.cipher.sendingEpoch == 1)
    world.run(2_500)
    for device in [alice, bob] {
      #expect(device.stay?.cipher.sendingEpoch == nil)
      #expect(device.stay?.silence == [.securing])
    }
    try world.audit.check()
    return Aftermath()
  }

  /// A ghost on Alice's and Bob's lists that the server sometimes calls a member.
  private static func haunted(_ seed: UInt64) throws -> Scene {
    let scene = try Scene(seed: seed)
    scene.haunt()
    scene.world.run(3_000)
    #expect(try scene.entries(of: scene.bob).contains { $0.device.text == "ghost" })
    return scene
  }

  private static func claim(_ scene: Scene, _ isThere: Bool) throws {
    let ghost = try #require(scene.ghost)
    for device in [scene.alice, scene.bob] {
      var member = try #require(
        device.stay?.session.state.members.first { $0.user == ghost.entry.user })
      member.participants.removeAll { $0.device == ghost.entry.device }
      if isThere {
        member.participants.append(
          ParticipantState(
            participant: ghost.entry.participant, device: ghost.entry.device, joinId: ghost.entry.joinId!,
            connected: true, held: false, tracks: []))
      }
      device.receive(
        EventMessage(
          at: scene.world.timestamp, call: scene.call,
          body: .member(MemberChange(member: member, cause: isThere ? .joined : .left))), 1_000_000)
    }
  }

  private static func ghost(_ seed: UInt64) throws -> Aftermath {
    let scene = try haunted(seed)
    #expect(scene.bob.warnings.contains { $0.problem == .notInCall && $0.device == "ghost" })
    #expect(scene.bob.stay?.cipher.sendingEpoch != nil)
    scene.world.run(6_000)
    for device in [scene.alice, scene.bob] {
      #expect(device.stay?.cipher.sendingEpoch == nil)
      guard case .strangers(let who)? = device.stay?.silence.first else {
        Issue.record("\(String(describing: device.stay?.silence))")
        continue
      }
      #expect(who.map(\.device) == ["ghost"])
    }
    // The person looks at it and continues.
    try scene.sendAnyway(scene.bob)
    #expect(scene.bob.stay?.cipher.sendingEpoch != nil)
    return Aftermath(scene, warned: [scene.bob])
  }

  private static func flappingGhost(_ seed: UInt64) throws -> Aftermath {
    let scene = try haunted(seed)
    var shown = 0
    for _ in 0..<6 {
      try claim(scene, true)
      scene.world.run(1_000)
      try claim(scene, false)
      let before = scene.bob.warnings.count { $0.problem == .notInCall }
      scene.world.run(100)
      shown += scene.bob.warnings.count { $0.problem == .notInCall } - before
      scene.world.run(4_000)
    }
    #expect(scene.bob.stay?.silence.contains(.held) == true)
    try claim(scene, true)
    scene.world.run(1_000)
    #expect(scene.bob.stay?.silence == [.held])
    #expect(scene.bob.stay?.cipher.sendingEpoch == nil)
    try scene.sendAnyway(scene.bob)
    #expect(scene.bob.stay?.cipher.sendingEpoch != nil)
    return Aftermath(scene, warned: [scene.bob])
  }

  private static func departed(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    scene.world.lie = { message, _ in if case .rotate = message.body { nil } else { message } }
    scene.carol.leave()
    scene.world.run(14_000)
    #expect(scene.bob.warnings.contains { $0.problem == .mayStillHear && $0.user == "carol" })
    #expect(scene.bob.stay?.cipher.sendingEpoch != nil)
    scene.world.run(2_500)
    #expect(scene.bob.stay?.cipher.sendingEpoch == nil)
    guard case .departed? = scene.bob.stay?.silence.first else {
      Issue.record("\(String(describing: scene.bob.stay?.silence))")
      return Aftermath(scene, warned: [])
    }
    return Aftermath(scene, warned: [scene.bob])
  }

  private static func unlisted(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let dave = scene.world.add("dave")
    scene.world.run(500)
    scene.world.lie = { message, _ in if case .rotate = message.body { nil } else { message } }
    scene.alice.invite(["dave"], to: scene.call)
    scene.world.run(500)
    dave.accept(scene.call)
    scene.world.run(10_000)
    #expect(dave.stay?.heard.isEmpty == true)
    #expect(scene.bob.stay?.cipher.sendingEpoch != nil)
    return Aftermath(scene, warned: [])
  }

  private static func otherName(_ seed: UInt64) throws -> Aftermath {
    // `SignalingConnectionTests.aServerThatTakesTheDeviceForAnothersIsLeft` runs it over a socket.
    let headers: [(String?, String?)] = [("mallory", "phone"), ("alice", "tablet"), (nil, "phone"), ("alice", nil)]
    for (user, device) in headers {
      #expect(!SignalingConnection.names(user, device, "alice", "phone"))
    }
    #expect(SignalingConnection.names("alice", "phone", "alice", "phone"))
    return Aftermath()
  }

  /// Bob trusts verified devices only and has verified all of the call.
  private static func strict(_ seed: UInt64) throws -> Scene {
    try Scene(seed: seed) { devices in
      devices[1].trust = .verifiedOnly
      for other in devices where other !== devices[1] {
        devices[1].pins.pin(other.address, other.identity.fingerprint, isVerified: true)
      }
    }
  }

  private static func hangingLookUp(_ seed: UInt64) throws -> Aftermath {
    let scene = try strict(seed)
    #expect(scene.bob.stay?.cipher.sendingEpoch != nil)
    let ghost = Ghost(scene.world, call: scene.call)
    let list = try ghost.haunt(scene.entries(of: scene.bob))
    for (epoch, fails) in [(UInt32(0), true), (1, false)] {
      let rotation = try scene.announcement(list, for: scene.bob)
      _ = epoch
      try scene.announce(rotation, to: scene.bob)
      let keys = try #require(scene.bob.stay).keys
      let newest = try #require(keys.epochs[keys.newest])
      let envelope = try #require(
        Envelope.sealing(
          SymmetricKey(size: .bits256), for: scene.bob.address, alg: keys.join.joinKey.alg,
          publicKey: keys.join.joinKey.publicKey.bytes,
          in: EnvelopeContext(call: scene.call, epoch: newest.number, listHash: newest.listHash),
          from: scene.alice.identity))
      try scene.tell(scene.bob, .envelope(envelope, delivery: 1))
      try scene.tell(scene.bob, .switchKeys(epoch: newest.number))
      // An error for the look-up, or no answer at all: the ghost stays unverified, and Bob stays silent.
      if fails { try scene.tell(scene.bob, .directory(nil)) }
      try scene.tell(scene.bob, .switchKeys(epoch: newest.number))
      #expect(scene.bob.stay?.cipher.sendingEpoch == nil)
      let causes = scene.bob.stay?.silence ?? []
      #expect(causes.contains { if case .unverified = $0 { true } else { false } })
    }
    return Aftermath(scene, warned: [])
  }

  private static func guestsMark(_ seed: UInt64) throws -> Aftermath {
    _ = try listed("zed", as: "guest~zed", seed)
    return try listed("guest~zed", as: "zed", seed)
  }

  /// A device of `user` is on everybody's list under another id.
  private static func listed(_ user: String, as shown: String, _ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let ghost = Ghost(scene.world, call: scene.call, user: user, listedAs: shown)
    var given: [Device] = []
    scene.haunt(with: ghost)
    let taken = scene.world.alter
    scene.world.alter = { request, device in
      if case .calls(.inCall(_, .keys(let keys))) = request { given += keys.envelopes.map(\.to) }
      return taken?(request, device) ?? request
    }
    scene.world.run(5_000)
    #expect(try scene.entries(of: scene.alice).contains { $0.user.text == shown })
    #expect(!given.isEmpty && !given.contains { $0.user.text == shown })
    for device in [scene.alice, scene.bob] {
      #expect(device.warnings.contains { $0.problem == .unknownKeys && $0.user == shown })
    }
    return Aftermath(scene, warned: [scene.alice, scene.bob])
  }

  private static func guestWithoutLink(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    var state = try #require(scene.alice.stay).session.state
    for index in state.members.indices { state.members[index].link = true }
    let guest = MemberState(user: UserID("guest~1")!, name: "Bob", state: .joined, participants: [])
    state.members.append(guest)
    let marked = CallSnapshot(state, speakers: []).members.filter(\.isGuest).map(\.user)
    #expect(marked == ["guest~1"])
    return Aftermath(scene, warned: [])
  }

  private static func changedKey(_ seed: UInt64) throws -> Aftermath {
    var given: [Device] = []
    let scene = try Scene(seed: seed)
    let old = try #require(scene.bob.pins[scene.alice.address])
    scene.bob.pins.pin(scene.alice.address, [UInt8](repeating: 9, count: 32))
    scene.world.alter = { request, device in
      if case .calls(.inCall(_, .keys(let keys))) = request, device == scene.bob.address {
        given += keys.envelopes.map(\.to)
      }
      return request
    }
    scene.carol.leave()
    scene.world.run(8_000)
    // Alice leads, but has another key than Bob knows: her envelope waits, and Bob is told with the fingerprint.
    #expect(scene.bob.stay?.cipher.sendingEpoch == nil)
    #expect(scene.bob.stay?.keys.received.untrusted.isEmpty == false)
    let warning = try #require(scene.bob.warnings.first { $0.problem == .changedKey })
    #expect(warning.fingerprint == old.fingerprint)
    #expect(!given.contains(scene.alice.address))
    scene.bob.trust(warning)
    scene.world.run(500)
    #expect(scene.bob.stay?.cipher.sendingEpoch != nil, "it opens as soon as the person trusts that key")
    return Aftermath(scene, warned: [scene.bob])
  }

  /// The click confirms the devices that were shown when the dialog opened.
  private static func dialog(_ seed: UInt64) throws -> Aftermath {
    let scene = try strict(seed)
    let shown = try scene.entries(of: scene.bob)
    scene.haunt()
    scene.world.run(4_000)
    let ghost = try #require(scene.ghost)
    for entry in shown where entry.address != scene.bob.address {
      scene.bob.trust(KeyWarning(.unverified, entry))
    }
    #expect(scene.bob.pins.level(of: ghost.identity.address, ghost.identity.fingerprint) < .vouched)
    #expect(scene.bob.stay?.cipher.sendingEpoch == nil)
    // A key that changed meanwhile is not the one that was shown.
    var pins = scene.bob.pins
    pins.pin(ghost.identity.address, [UInt8](repeating: 5, count: 32), isVerified: true)
    #expect(pins.level(of: ghost.identity.address, ghost.identity.fingerprint) == .new)
    return Aftermath(scene, warned: [])
  }

  /// Two people with the same name are distinguished by the user id, which each shown device has.
  private static func sameName(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let other = scene.world.add("b0b")
    scene.world.run(500)
    scene.alice.invite(["b0b"], to: scene.call)
    scene.world.run(500)
    other.accept(scene.call)
    scene.world.run(4_000)
    let member = MemberState(
      user: UserID("b0b")!, name: "Bob", state: .joined, participants: [])
    var state = try #require(scene.alice.stay).session.state
    state.members.removeAll { $0.user.text == "b0b" || $0.user.text == "bob" }
    state.members += [member, MemberState(user: UserID("bob")!, name: "Bob", state: .joined, participants: [])]
    let snapshot = CallSnapshot(state, speakers: [])
    #expect(Set(snapshot.members.map(\.user)).isSuperset(of: ["bob", "b0b"]))
    return Aftermath(isWarned: snapshot.usersToTellApart == ["b0b", "bob"])
  }

  // MARK: vouching

  private struct Family {
    let phone = DeviceIdentity(user: "bob", device: "phone")!
    let laptop = DeviceIdentity(user: "bob", device: "laptop")!
    let tablet = DeviceIdentity(user: "bob", device: "tablet")!
    var pins = Pins()

    init() {
      for device in [phone, laptop, tablet] {
        pins.pin(device.address, device.fingerprint, isVerified: device.device == "phone")
        _ = pins.remember(device.publicKeys)
      }
    }

    func says(_ signer: DeviceIdentity, _ kind: TrustStatement.Kind, of device: DeviceIdentity) -> TrustStatement {
      TrustStatement(
        kind, device: device.device, fingerprint: device.fingerprint, at: Timestamp(milliseconds: 1), by: signer)
    }

    func level(_ device: DeviceIdentity) -> TrustLevel { pins.level(of: device.address, device.fingerprint) }
  }

  private static func worthlessVouches(_ seed: UInt64) throws -> Aftermath {
    var family = Family()
    let mallory = DeviceIdentity(user: "mallory", device: "phone")!
    let stranger = DeviceIdentity(user: "bob", device: "stranger")!
    // Vouches by another user's device, by an unknown device, by one that is only vouched for, and with altered content.
    var foreign = family.says(mallory, .vouch, of: family.laptop)
    foreign.user = "bob"
    family.pins.learn(foreign)
    family.pins.learn(family.says(stranger, .vouch, of: family.laptop))
    var altered = family.says(family.phone, .vouch, of: family.tablet)
    altered.fingerprint = family.laptop.fingerprint
    family.pins.learn(altered)
    #expect(family.level(family.laptop) == .known)
    family.pins.learn(family.says(family.phone, .vouch, of: family.laptop))
    #expect(family.level(family.laptop) == .vouched)
    family.pins.learn(family.says(family.laptop, .vouch, of: family.tablet))
    #expect(family.level(family.tablet) == .known)
    // The voucher loses its level, and so do the devices for which it vouched, permanently.
    let revoke = family.says(family.phone, .revoke, of: family.phone)
    family.pins.learn(revoke)
    #expect(family.level(family.laptop) == .known)
    #expect(family.pins.isRevoked(family.phone.address.user, family.phone.fingerprint))
    // The server hides it, but the app's stored copy counts.
    var later = Family()
    later.pins.learn(later.says(later.phone, .vouch, of: later.laptop))
    let kept = Pins(
      later.pins.pinned,
      statements: [
        later.says(later.phone, .vouch, of: later.laptop), later.says(later.phone, .revoke, of: later.laptop),
      ])
    #expect(kept.level(of: later.laptop.address, later.laptop.fingerprint) == .known)
    #expect(kept.isRevoked(later.laptop.address.user, later.laptop.fingerprint))
    return Aftermath()
  }

  private static func stolenVoucher(_ seed: UInt64) throws -> Aftermath {
    var family = Family()
    family.pins.learn(family.says(family.phone, .vouch, of: family.laptop))
    let statement = family.says(family.laptop, .revoke, of: family.phone)
    family.pins.learn(statement)
    #expect(family.level(family.phone) == .verified)
    #expect(family.level(family.laptop) == .vouched)
    return Aftermath(isWarned: family.pins.disputes(of: family.phone.address.user) == [statement])
  }

  /// A server between two devices of a user swaps keys, nonces, or the order.
  private static func pairing(_ seed: UInt64) throws -> Aftermath {
    var random = SeededGenerator(seed: seed)
    let existing = DeviceIdentity(user: "alice", device: "phone")!
    let new = DeviceIdentity(user: "alice", device: "laptop")!
    let ghost = DeviceIdentity(user: "alice", device: "ghost")!
    let now = Instant(nanoseconds: 1)
    typealias Change = (inout PairingSession.Message) -> Void
    /// Whether the phone trusts the laptop, when the person types what the laptop shows.
    func pair(registered: [UInt8]? = nil, _ change: Change) -> (trusted: [UInt8]?, digits: String?) {
      var (young, begun) = PairingSession.beginning(new, with: existing.address.device, now: now, using: &random)
      var old = PairingSession.waiting(existing, for: new.address.device, now: now, using: &random)
      var digits: String?
      var actions = begun
      var isYoung = true
      while let action = actions.first {
        actions.removeFirst()
        switch action {
        case .send(var message):
          change(&message)
          actions +=
            isYoung
            ? old.handle(message, from: new.address.device, now: now)
            : young.handle(message, from: existing.address.device, now: now)
          isYoung.toggle()
        case .show(let shown): digits = shown
        case .ask:
          actions = old.type(digits ?? "", registered: registered ?? new.fingerprint, now: now)
          isYoung = false
        case .trust(let fingerprint): return (fingerprint, digits)
        case .confirmed, .end: return (nil, digits)
        }
      }
      return (nil, digits)
    }
    #expect(pair { _ in }.trusted == new.fingerprint)
    #expect(pair { if $0.step == .open { $0.nonce?.bytes[0] ^= 1 } }.trusted == nil)
    #expect(pair { if $0.step == .open { $0.fingerprint = Base64Bytes(ghost.fingerprint) } }.trusted == nil)
    #expect(pair { if $0.step == .reveal { $0.fingerprint = Base64Bytes(ghost.fingerprint) } }.trusted == nil)
    #expect(pair { if $0.step == .reveal { $0.nonce?.bytes[0] ^= 1 } }.trusted == nil)
    #expect(pair { if $0.step == .commit { $0.commit?.bytes[0] ^= 1 } }.trusted == nil)
    #expect(pair { if $0.step == .commit { $0.step = .reveal } }.trusted == nil)
    #expect(pair { if $0.step == .open { $0.step = .done } }.trusted == nil)
    #expect(pair { if $0.step == .reveal { $0.session.bytes[0] ^= 1 } }.trusted == nil)
    #expect(pair(registered: ghost.fingerprint) { _ in }.trusted == nil)
    return Aftermath()
  }

  private static func afterTheEnd(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let stay = try #require(scene.bob.stay)
    let frame = try #require(scene.alice.stay?.makeFrame(scene.world.audit))
    scene.bob.leave()
    stay.cipher.wipe()
    scene.world.run(3_000)
    #expect(throws: FrameCipherError.self) { try stay.cipher.openWhereItBelongs(frame.bytes) }
    #expect(throws: FrameCipherError.noKey) { try stay.cipher.seal([1], track: 1) }
    let before = scene.bob.warnings.count
    scene.bob.receive(
      EventMessage(at: scene.world.timestamp, call: scene.call, body: .switchKeys(SwitchKeys(epoch: 99))), 1_000_000)
    #expect(scene.bob.stay == nil && scene.bob.warnings.count == before)
    return Aftermath(scene, warned: [])
  }
}
