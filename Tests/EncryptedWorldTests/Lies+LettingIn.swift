import CallMessages
import Contract
import Crypto
import MediaModel
import Testing

@testable import Calls
@testable import CallMachine
@testable import ConclaveClient

/// Rows about who lets whom in.
extension Lies {
  static let lettingIn: [Int: @Sendable (UInt64) throws -> Aftermath] = [
    400: { try uninvited($0) { _, _ in Words() } }, 401: { try uninvited($0, foreignWords) }, 402: withheldWord,
    403: { try uninvited($0, accomplice) }, 404: { try uninvited($0, circle) }, 405: { try uninvited($0, newDevice) },
    406: { try uninvited($0, falseSigners) }, 407: revokedSigner, 408: ringWithoutWord, 409: ownWordWithheld,
    410: { try uninvited($0, otherRoot) }, 411: uninvitedLeader,
    412: { try uninvited($0, as: "guest~eve", foreignLink) }, 413: { try uninvited($0, as: "guest~eve", otherGuest) },
    414: { try uninvited($0, as: "guest~eve", foreignLinkWords) }, 415: otherMaker, 416: lateLink, 417: manyWords,
    418: unansweredLookUp, 421: { try uninvited($0, as: "guest~eve", notAdmitted) },
    422: otherKindOfLink, 423: foreignAdmissions, 424: { try uninvited($0, as: "guest~eve", admittedByStrangers) },
    425: admittedByGuest,
    426: { try uninvited($0, as: "guest~eve") { Words([.letting($1.user, into: $0.call, by: $0.alice.identity)]) } },
    427: falseKnocks, 428: manyKnocks, 429: callOfAnother, 430: wordOfAnotherCall, 431: accompliceAsStarter,
    432: withheldStart,
  ]

  /// Words and signers that a server sends with its lists.
  struct Words {
    var admissions: [Admission] = []
    var signers: [Signer] = []

    init(_ admissions: [Admission] = [], by signers: [DeviceIdentity] = []) {
      self.admissions = admissions
      self.signers = signers.map { Signer(Ghost.entry(of: $0)) }
    }
  }

  /// A ghost is listed as a member of the call, with these words: it gets no key, its tile says that nobody let it in,
  /// and the sending stops.
  private static func uninvited(
    _ seed: UInt64, as user: String = "eve", _ words: (Scene, Ghost) throws -> Words
  ) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let ghost = Ghost(scene.world, call: scene.call, user: user)
    let said = try words(scene, ghost)
    scene.haunt(with: ghost)
    scene.pretend(ghost)
    scene.addWords(said)
    scene.world.run(12_000)
    for device in [scene.alice, scene.bob] {
      let stay = try #require(device.stay)
      #expect(device.warnings.contains { $0.problem == .uninvited && $0.user == user })
      #expect(stay.silences.contains { if case .uninvited(let who) = $0 { who.map(\.user) == [user] } else { false } })
      #expect(stay.cipher.sendingEpoch == nil)
      let tile = stay.keys.devices(stay.session.state.members).first { $0.user == user }
      #expect(tile?.letIn == .nobody)
    }
    #expect(
      ghost.keys.epochs.numbers.allSatisfy { ghost.keys.epochs[$0]?.secret == nil }, "no honest device gives it a key")
    return Aftermath(scene, warned: [scene.alice])
  }

  // MARK: words for a ghost

  private static func foreignWords(_ scene: Scene, _ ghost: Ghost) throws -> Words {
    let (alice, eve) = (scene.alice.identity, ghost.identity.address.user)
    let elsewhere = Admission.letting(eve, into: CallID(unchecked: "6d1f0d6c-0000-4000-8000-000000000000"), by: alice)
    var others = Admission.letting(UserID("frank")!, into: scene.call, by: alice)
    others.user = eve
    var flipped = Admission.letting(eve, into: scene.call, by: alice)
    var signature = flipped.signature.bytes
    signature[7] ^= 1
    flipped.signature = Base64Bytes(signature)
    return Words([elsewhere, others, flipped])
  }

  private static func accomplice(_ scene: Scene, _ ghost: Ghost) throws -> Words {
    let mallory = DeviceIdentity(user: "mallory", device: "phone")!
    return Words(
      [
        .letting(ghost.identity.address.user, into: scene.call, by: mallory),
        .letting(mallory.address.user, into: scene.call, by: mallory),
      ], by: [mallory])
  }

  private static func circle(_ scene: Scene, _ ghost: Ghost) throws -> Words {
    let frank = DeviceIdentity(user: "frank", device: "phone")!
    let chain = (0..<200).map { DeviceIdentity(user: "chain\($0)", device: "phone")! }
    let links = zip(chain, chain.dropFirst()).map { lower, upper in
      Admission.letting(lower.address.user, into: scene.call, by: upper)
    }
    return Words(
      [
        .letting(ghost.identity.address.user, into: scene.call, by: frank),
        .letting(frank.address.user, into: scene.call, by: ghost.identity),
        .letting(ghost.identity.address.user, into: scene.call, by: chain[0]),
      ] + links, by: [frank] + chain)
  }

  private static func newDevice(_ scene: Scene, _ ghost: Ghost) throws -> Words {
    let tablets = ["alice", "bob"].map { DeviceIdentity(user: $0, device: "tablet")! }
    return Words(tablets.map { .letting(ghost.identity.address.user, into: scene.call, by: $0) }, by: tablets)
  }

  private static func falseSigners(_ scene: Scene, _ ghost: Ghost) throws -> Words {
    let (eve, alice) = (ghost.identity.address.user, scene.alice.identity)
    let other = DeviceIdentity(user: "alice", device: "phone")!
    var words = Words([.letting(eve, into: scene.call, by: other)], by: [other])
    // Alice's own fingerprint, with keys that do not match it.
    var word = Admission.letting(eve, into: scene.call, by: other)
    word.fingerprint = Base64Bytes(alice.fingerprint)
    words.admissions.append(word)
    words.signers[0].fingerprint = Base64Bytes(alice.fingerprint)
    words.signers.append(Signer(Ghost.entry(of: other)))
    return words
  }

  private static func otherRoot(_ scene: Scene, _ ghost: Ghost) throws -> Words {
    let mallory = DeviceIdentity(user: "mallory", device: "phone")!
    let users = [scene.alice, scene.bob].map(\.address.user) + [mallory.address.user, ghost.identity.address.user]
    return Words(users.map { .letting($0, into: scene.call, by: mallory) }, by: [mallory])
  }

  // MARK: links

  private static func foreignLink(_ scene: Scene, _ ghost: Ghost) throws -> Words {
    let mallory = DeviceIdentity(user: "mallory", device: "phone")!
    let secret = LinkSecret(maker: scene.alice.identity.fingerprint, using: &scene.world.random)
    let word = try #require(Admission.coming(by: secret, into: scene.call, as: ghost.identity))
    return Words([word, .making(secret.link(of: scene.call), of: scene.call, by: mallory)], by: [mallory])
  }

  private static func otherGuest(_ scene: Scene, _ ghost: Ghost) throws -> Words {
    let secret = LinkSecret(maker: scene.alice.identity.fingerprint, using: &scene.world.random)
    let phone = DeviceIdentity(user: ghost.identity.address.user.text, device: "phone")!
    let word = try #require(Admission.coming(by: secret, into: scene.call, as: phone))
    return Words([word, .making(secret.link(of: scene.call), of: scene.call, by: scene.alice.identity)])
  }

  private static func foreignLinkWords(_ scene: Scene, _ ghost: Ghost) throws -> Words {
    let secrets = (0..<2).map { _ in LinkSecret(maker: scene.alice.identity.fingerprint, using: &scene.world.random) }
    let made = secrets.map { Admission.making($0.link(of: scene.call), of: scene.call, by: scene.alice.identity) }
    let elsewhere = try #require(
      Admission.coming(
        by: secrets[0], into: CallID(unchecked: "6d1f0d6c-0000-4000-8000-000000000000"), as: ghost.identity))
    let frank = DeviceIdentity(user: "guest~frank", device: "phone")!
    var others = try #require(Admission.coming(by: secrets[0], into: scene.call, as: frank))
    others.user = ghost.identity.address.user
    others.fingerprint = Base64Bytes(ghost.identity.fingerprint)
    var another = try #require(Admission.coming(by: secrets[0], into: scene.call, as: ghost.identity))
    another.link = Base64Bytes(secrets[1].link(of: scene.call))
    return Words([elsewhere, others, another] + made)
  }

  /// Dave joins by a link that Alice made, and the others are told. Carol stays.
  private static func comeByLink(_ scene: Scene) throws -> SimDevice {
    let dave = scene.world.add("dave")
    scene.world.run(500)
    var link: (token: String, secret: LinkSecret)?
    scene.alice.makeLink(to: scene.call) { link = ($0, $1) }
    scene.world.run(500)
    let (token, secret) = try #require(link)
    dave.join(scene.call, link: token, secret: secret)
    return dave
  }

  private static func otherMaker(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    scene.alterWords { words, device in
      guard device.user.text == "dave" else { return }
      for index in words.admissions.indices where words.admissions[index].user == nil {
        let link = words.admissions[index].link!.bytes
        words.admissions[index] = .making(link, of: scene.call, by: scene.carol.identity)
      }
    }
    let dave = try comeByLink(scene)
    scene.world.run(8_000)
    #expect(dave.letInByService)
    #expect(dave.stay?.keys.lettingIn.root == nil)
    return Aftermath(scene, warned: [dave])
  }

  private static func lateLink(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    var isLate = true
    scene.alterWords { words, device in
      if isLate, device == scene.bob.address { words.admissions.removeAll { $0.user == nil } }
    }
    let dave = try comeByLink(scene)
    scene.world.run(3_000)
    #expect(scene.bob.warnings.contains { $0.problem == .uninvited && $0.user == "dave" })
    isLate = false
    scene.world.run(10_000)
    let tile = scene.bob.stay?.keys.devices([]).first { $0.user == "dave" }
    #expect(tile?.letIn == .link(of: "alice"))
    #expect(scene.bob.stay?.silence.isEmpty == true && dave.stay?.silence.isEmpty == true)
    return Aftermath(scene, warned: [scene.bob])
  }

  // MARK: links whose guests wait

  private static func notAdmitted(_ scene: Scene, _ ghost: Ghost) throws -> Words {
    let door = try scene.door()
    return Words([door.link, try ghost.comes(by: door)])
  }

  private static func otherKindOfLink(_ seed: UInt64) throws -> Aftermath {
    _ = try uninvited(seed, as: "guest~eve") { scene, ghost in
      var words = try scene.door()
      words.link.waits = nil
      return Words([words.link, try ghost.comes(by: words)])
    }
    return try uninvited(seed, as: "guest~eve") { scene, ghost in
      var words = try scene.door(waits: false)
      words.link.waits = true
      return Words([words.link, try ghost.comes(by: words)])
    }
  }

  private static func foreignAdmissions(_ seed: UInt64) throws -> Aftermath {
    try uninvited(seed, as: "guest~eve") { scene, ghost in
      let (door, other) = (try scene.door(), try scene.door())
      let word = try ghost.comes(by: door)
      func by(_ admitted: Admission?) -> Admission {
        var taken = word
        taken.admittedBy = admitted?.admittedBy
        return taken
      }
      let bob = scene.bob.identity
      let elsewhere = CallID(unchecked: "6d1f0d6c-0000-4000-8000-000000000000")
      let frank = DeviceIdentity(user: "guest~frank", device: "phone")!
      let tablet = DeviceIdentity(user: "guest~eve", device: "tablet")!
      let ofFrank = try #require(Admission.coming(by: door.secret, into: scene.call, as: frank))
      let ofTablet = try #require(Admission.coming(by: door.secret, into: scene.call, as: tablet))
      var flipped = try #require(word.admitted(into: scene.call, by: bob))
      flipped.admittedBy!.signature.bytes[7] ^= 1
      var unsigned = try #require(word.admitted(into: scene.call, by: bob))
      unsigned.signature.bytes[7] ^= 1
      return Words([
        door.link, other.link, by(ofFrank.admitted(into: scene.call, by: bob)),
        by(ofTablet.admitted(into: scene.call, by: bob)), by(word.admitted(into: elsewhere, by: bob)),
        by(try ghost.comes(by: other).admitted(into: scene.call, by: bob)), flipped, unsigned,
      ])
    }
  }

  private static func admittedByStrangers(_ scene: Scene, _ ghost: Ghost) throws -> Words {
    let door = try scene.door()
    let word = try ghost.comes(by: door)
    let strangers = [DeviceIdentity(user: "mallory", device: "phone")!, DeviceIdentity(user: "bob", device: "tablet")!]
    let admitted = strangers.compactMap { word.admitted(into: scene.call, by: $0) }
    let root = Admission.letting(strangers[0].address.user, into: scene.call, by: strangers[0])
    return Words([door.link, root] + admitted, by: strangers)
  }

  /// Frank has come by a link whose guests need not wait.
  private static func admittedByGuest(_ seed: UInt64) throws -> Aftermath {
    let frank = DeviceIdentity(user: "guest~frank", device: "phone")!
    func words(_ scene: Scene) throws -> [Admission] {
      let open = try scene.door(waits: false)
      return [open.link, try #require(Admission.coming(by: open.secret, into: scene.call, as: frank))]
    }
    _ = try uninvited(seed) { scene, ghost in
      Words(try words(scene) + [.letting(ghost.user, into: scene.call, by: frank)], by: [frank])
    }
    return try uninvited(seed, as: "guest~eve") { scene, ghost in
      let door = try scene.door()
      let admitted = try #require(try ghost.comes(by: door).admitted(into: scene.call, by: frank))
      return Words(try words(scene) + [door.link, admitted], by: [frank])
    }
  }

  private static func falseKnocks(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let (door, open) = (try scene.door(), try scene.door(waits: false))
    let mallory = DeviceIdentity(user: "mallory", device: "phone")!
    let eve = DeviceIdentity(user: "guest~eve", device: "phone")!
    let foreign = LinkSecret(maker: mallory.fingerprint, using: &scene.world.random)
    let foreignLink = Admission.making(foreign.link(of: scene.call), of: scene.call, waits: true, by: mallory)
    let elsewhere = CallID(unchecked: "6d1f0d6c-0000-4000-8000-000000000000")
    let word = try #require(Admission.coming(by: door.secret, into: scene.call, as: eve))
    func isShown(
      _ admissions: [Admission?], user: UserID = eve.address.user, signers: [Signer] = []
    ) throws -> Bool {
      try scene.tell(
        scene.alice,
        .knock(
          GuestKnock(
            user: user, name: "Alice", expiresAt: scene.world.timestamp + .seconds(600),
            admissions: admissions.compactMap { $0 } + [door.link, open.link], signers: signers)))
      return scene.alice.stay?.keys.waitingGuests.word(of: user) != nil
    }
    var flipped = word
    flipped.signature.bytes[7] ^= 1
    var others = word
    others.user = UserID("guest~ann")!
    #expect(try !isShown([]))
    #expect(
      try !isShown(
        [.coming(by: foreign, into: scene.call, as: eve), foreignLink], signers: [Signer(Ghost.entry(of: mallory))]))
    #expect(try !isShown([.coming(by: open.secret, into: scene.call, as: eve)]), "its guests need not wait")
    #expect(try !isShown([.coming(by: door.secret, into: elsewhere, as: eve)]))
    #expect(try !isShown([flipped]))
    #expect(try !isShown([others], user: others.user!))
    #expect(try !isShown([.coming(by: door.secret, into: scene.call, as: mallory)], user: mallory.address.user))
    #expect(try isShown([word]), "who has a link of the call is shown")
    return Aftermath(scene, warned: [])
  }

  private static func manyKnocks(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let door = try scene.door()
    let guests = (0..<40).map { DeviceIdentity(user: "guest~\($0)", device: "phone")! }
    for guest in guests {
      let word = try #require(Admission.coming(by: door.secret, into: scene.call, as: guest))
      let knock = GuestKnock(
        user: guest.address.user, name: nil, expiresAt: scene.world.timestamp, admissions: [word, door.link],
        signers: nil)
      try scene.tell(scene.alice, .knock(knock))
    }
    #expect(guests.count { scene.alice.stay?.keys.waitingGuests.word(of: $0.address.user) != nil } == 32)
    return Aftermath(scene, warned: [])
  }

  // MARK: members

  /// `inviter` lets Dave in, and Dave joins.
  private static func letIn(_ scene: Scene, by inviter: SimDevice) -> SimDevice {
    let dave = scene.world.add("dave")
    scene.world.run(500)
    inviter.invite(["dave"], to: scene.call)
    scene.world.run(500)
    dave.accept(scene.call)
    return dave
  }

  private static func withheldWord(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    scene.alterWords { words, device in
      if device == scene.bob.address { words.admissions.removeAll { $0.user?.text == "dave" } }
    }
    _ = letIn(scene, by: scene.alice)
    scene.world.run(10_000)
    let bob = try #require(scene.bob.stay)
    #expect(bob.cipher.sendingEpoch == nil)
    #expect(bob.silences.contains { if case .uninvited(let who) = $0 { who.map(\.user) == ["dave"] } else { false } })
    #expect(scene.alice.stay?.cipher.sendingEpoch != nil, "Alice has let Dave in herself")
    try scene.sendAnyway(scene.bob)
    #expect(bob.cipher.sendingEpoch != nil)
    return Aftermath(scene, warned: [scene.bob])
  }

  private static func revokedSigner(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    _ = letIn(scene, by: scene.carol)
    scene.world.run(6_000)
    #expect(scene.bob.stay?.keys.devices([]).first { $0.user == "dave" }?.letIn == .by(user: "carol"))
    let carol = scene.carol.identity
    scene.bob.pins.pin(carol.address, carol.fingerprint, isVerified: true)
    _ = scene.bob.pins.remember(carol.publicKeys)
    scene.bob.pins.learn(
      TrustStatement(
        .revoke, device: carol.device, fingerprint: carol.fingerprint, at: scene.world.timestamp, by: carol))
    let ghost = Ghost(scene.world, call: scene.call, user: "eve")
    scene.haunt(with: ghost)
    scene.pretend(ghost)
    scene.addWords(Words([.letting(ghost.identity.address.user, into: scene.call, by: carol)], by: [carol]))
    scene.world.run(12_000)
    let bob = try #require(scene.bob.stay)
    #expect(bob.silences.contains { if case .uninvited(let who) = $0 { who.map(\.user) == ["eve"] } else { false } })
    #expect(bob.keys.devices([]).first { $0.user == "dave" }?.letIn == .by(user: "carol"))
    return Aftermath(scene, warned: [scene.bob])
  }

  private static func ringWithoutWord(_ seed: UInt64) throws -> Aftermath {
    var isWarned = true
    for isForeign in [false, true] {
      let world = World(seed: seed)
      let (alice, bob, carol) = (world.add("alice"), world.add("bob"), world.add("carol"))
      world.run(1_000)
      world.lie = { message, device in
        guard case .ring(var ring) = message.body, device == bob.address, let call = message.call else {
          return message
        }
        ring.admissions = isForeign ? [.letting(bob.address.user, into: call, by: carol.identity)] : nil
        var message = message
        message.body = .ring(ring)
        return message
      }
      alice.start(["bob"])
      world.run(1_000)
      let call = try #require(world.calls.control.calls.keys.first)
      bob.accept(call)
      world.run(150)
      #expect(bob.refusals == [.ringNotTrusted] && bob.letInByService)
      #expect(bob.stay?.keys.current == nil)
      isWarned = isWarned && bob.letInByService
      world.run(6_000)
      #expect(bob.stay?.keys.lettingIn.root == alice.address.user && bob.stay?.cipher.sendingEpoch != nil)
    }
    return Aftermath(isWarned: isWarned)
  }

  private static func ownWordWithheld(_ seed: UInt64) throws -> Aftermath {
    let world = World(seed: seed)
    let (alice, bob) = (world.add("alice"), world.add("bob"))
    world.run(1_000)
    Scene.alterWords(world) { words, device in
      if device == bob.address { words.admissions.removeAll { $0.user?.text == "bob" } }
    }
    alice.start(["bob"])
    world.run(1_000)
    let call = try #require(world.calls.control.calls.keys.first)
    bob.accept(call)
    world.run(20_000)
    let stay = try #require(bob.stay)
    #expect(stay.keys.lettingIn.isLetInByService && stay.keys.lettingIn.uninvited.isEmpty)
    #expect(stay.cipher.sendingEpoch != nil)
    return Aftermath(isWarned: bob.letInByService)
  }

  private static func uninvitedLeader(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let ghost = Ghost(scene.world, call: scene.call, user: "eve", participant: 4)
    scene.haunt(with: ghost)
    scene.pretend(ghost)
    // The honest leader's envelopes are lost, so that only the ghost's arrives.
    scene.world.alter = { request, _ in
      guard case .calls(.inCall(let call, .keys(var handedOut))) = request else { return request }
      handedOut.envelopes = []
      return .inCall(call, .keys(handedOut))
    }
    scene.world.run(2_000)
    let bob = try #require(scene.bob.stay)
    let epoch = try #require(bob.keys.epochs[bob.keys.newest])
    let entry = try #require(epoch.list[scene.bob.address])
    let envelope = try #require(
      Envelope.sealing(
        SymmetricKey(size: .bits256), for: scene.bob.address, alg: entry.joinKey!.alg,
        publicKey: entry.joinKey!.publicKey.bytes,
        in: EnvelopeContext(call: scene.call, epoch: epoch.number, listHash: epoch.listHash), from: ghost.identity))
    var told = envelope
    told.from = ghost.identity.address
    try scene.tell(scene.bob, .envelope(told, delivery: 99))
    #expect(scene.bob.stay?.keys.epochs[epoch.number]?.secret == nil)
    #expect(scene.bob.stay?.keys.received.isHeld(of: epoch.number) == true)
    try scene.tell(scene.bob, .keyRequest(KeyRequest(epoch: epoch.number, to: ghost.delivered)))
    scene.world.run(10_000)
    #expect(ghost.keys.epochs.numbers.allSatisfy { ghost.keys.epochs[$0]?.secret == nil })
    #expect(scene.bob.stay?.cipher.sendingEpoch == nil)
    return Aftermath(scene, warned: [scene.bob])
  }

  private static func manyWords(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let bob = try #require(scene.bob.stay)
    var rotation = try scene.announcement(for: scene.bob)
    let word = Admission.letting(
      UserID("eve")!, into: scene.call, by: DeviceIdentity(user: "mallory", device: "phone")!)
    rotation.admissions = (0..<10_000).map { number in
      var word = word
      word.user = UserID("eve\(number)")!
      return word
    }
    #expect(try scene.announce(rotation, to: scene.bob).isEmpty)
    #expect(bob.keys.newest == rotation.epoch)
    scene.world.run(500)
    return Aftermath(scene, warned: [])
  }

  private static func unansweredLookUp(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let lie = scene.world.lieInReply
    scene.world.lieInReply = { reply, device in
      let reply = lie?(reply, device) ?? reply
      guard device == scene.bob.address, case .ok(.devices) = reply else { return reply }
      return .failed(RequestError(.serverBusy, "a lie"))
    }
    let dave = letIn(scene, by: scene.alice)
    scene.world.run(4_000)
    let eve = scene.world.add("eve")
    scene.world.run(500)
    dave.invite(["eve"], to: scene.call)
    scene.world.run(500)
    eve.accept(scene.call)
    scene.world.run(20_000)
    let bob = try #require(scene.bob.stay)
    #expect(bob.silences.contains { if case .uninvited(let who) = $0 { who.map(\.user) == ["eve"] } else { false } })
    return Aftermath(scene, warned: [scene.bob])
  }
}

/// A link of Alice's: the word that makes it, and its secret.
private struct DoorWords {
  var link: Admission
  let secret: LinkSecret
}

extension Ghost {
  fileprivate var user: UserID { identity.address.user }

  /// The word by which the ghost comes by a link.
  fileprivate func comes(by door: DoorWords) throws -> Admission {
    try #require(Admission.coming(by: door.secret, into: keys.own.call, as: identity))
  }
}

extension Scene {
  /// A link of Alice's, whose guests wait or do not.
  fileprivate func door(waits: Bool = true) throws -> DoorWords {
    let secret = LinkSecret(maker: alice.identity.fingerprint, using: &world.random)
    return DoorWords(
      link: .making(secret.link(of: call), of: call, waits: waits, by: alice.identity), secret: secret)
  }

  /// The server says that the ghost is a participant, just as it is listed.
  func pretend(_ ghost: Ghost) {
    let member = MemberState(
      user: ghost.identity.address.user, name: nil, state: .joined,
      participants: [
        ParticipantState(
          participant: ghost.entry.participant, device: ghost.identity.address.device, joinId: ghost.entry.joinId!,
          connected: true, held: false, tracks: [])
      ])
    let (lie, lieInReply) = (world.lie, world.lieInReply)
    world.lie = { message, device in
      guard var message = lie.map({ $0(message, device) }) ?? message else { return nil }
      if case .state(var state) = message.body {
        state.members.append(member)
        message.body = .state(state)
      }
      return message
    }
    world.lieInReply = { reply, device in
      let reply = lieInReply?(reply, device) ?? reply
      guard case .ok(.state(var state)) = reply else { return reply }
      state.members.append(member)
      return .ok(.state(state))
    }
    for device in [alice, bob] { if let stay = device.stay { device.feed(.members([member]), to: stay) } }
  }

  /// The server sends these words with each list.
  func addWords(_ said: Lies.Words) {
    alterWords { words, _ in
      words.admissions += said.admissions
      words.signers += said.signers
    }
  }

  func alterWords(_ change: @escaping (inout Lies.Words, Device) -> Void) { Self.alterWords(world, change) }

  /// Changes the words that a device is shown, wherever they occur.
  static func alterWords(_ world: World, _ change: @escaping (inout Lies.Words, Device) -> Void) {
    let (lie, lieInReply) = (world.lie, world.lieInReply)
    func changed(_ admissions: inout [Admission]?, _ signers: inout [Signer]?, _ device: Device) {
      var words = Lies.Words()
      (words.admissions, words.signers) = (admissions ?? [], signers ?? [])
      change(&words, device)
      (admissions, signers) = (words.admissions, words.signers)
    }
    world.lie = { message, device in
      guard var message = lie.map({ $0(message, device) }) ?? message else { return nil }
      switch message.body {
      case .rotate(var rotation):
        changed(&rotation.admissions, &rotation.signers, device)
        message.body = .rotate(rotation)
      case .ring(var ring):
        changed(&ring.admissions, &ring.signers, device)
        message.body = .ring(ring)
      default: break
      }
      return message
    }
    world.lieInReply = { reply, device in
      let reply = lieInReply?(reply, device) ?? reply
      guard case .ok(.keyList(var list)) = reply else { return reply }
      changed(&list.admissions, &list.signers, device)
      return .ok(.keyList(list))
    }
  }
}
