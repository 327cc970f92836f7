import CallMessages
import Contract
import MediaModel
import Testing

@testable import ConclaveClient

/// Rows about lasting links: the server names the call into which somebody comes.
extension Lies {
  /// Dave comes by a lasting link with this secret, for which Alice lets people into her call. `lie` alters the words that he gets.
  private static func come(
    _ scene: Scene, with secret: LinkSecret, _ lie: @escaping (inout Words) -> Void
  ) throws -> SimDevice {
    scene.alterWords { words, device in
      if device.user.text == "dave" { lie(&words) }
    }
    let dave = scene.world.add("dave")
    scene.world.run(500)
    var token: String?
    scene.alice.makeLink(to: scene.call, with: secret) { link, _ in token = link }
    scene.world.run(500)
    dave.join(scene.call, link: try #require(token), secret: secret, isLasting: true)
    return dave
  }

  /// Dave takes everybody for uninvited: he sends nothing, and is not let in by the service.
  private static func isAlone(_ dave: SimDevice, in scene: Scene) throws -> Aftermath {
    scene.world.run(12_000)
    let stay = try #require(dave.stay)
    #expect(stay.keys.lettingIn.root == nil && !dave.letInByService)
    for user in ["alice", "bob", "carol"] {
      #expect(dave.warnings.contains { $0.problem == .uninvited && $0.user == user }, "\(user)")
    }
    #expect(
      !dave.warnings.contains { $0.problem == .uninvited && $0.user == "dave" }, "this device is no stranger to itself")
    #expect(stay.silences.contains { if case .uninvited = $0 { true } else { false } })
    #expect(stay.cipher.sendingEpoch == nil)
    #expect(stay.keys.devices(stay.session.state.members).allSatisfy { $0.user == "dave" || $0.letIn == .nobody })
    return Aftermath(scene, warned: [dave])
  }

  static func callOfAnother(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    // Carol's link, in a call that Alice has started.
    let secret = LinkSecret(maker: scene.carol.identity.fingerprint, using: &scene.world.random)
    return try isAlone(try come(scene, with: secret) { _ in }, in: scene)
  }

  static func wordOfAnotherCall(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let secret = LinkSecret(maker: scene.alice.identity.fingerprint, using: &scene.world.random)
    let before = CallID(unchecked: "6d1f0d6c-0000-4000-8000-000000000000")
    let word = Admission.making(secret.link(of: before), of: before, by: scene.alice.identity)
    var moved = word
    moved.link = Base64Bytes(secret.link(of: scene.call))
    let dave = try come(scene, with: secret) { words in
      words.admissions.removeAll { $0.user == nil }
      words.admissions += [word, moved]
    }
    return try isAlone(dave, in: scene)
  }

  static func accompliceAsStarter(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let (alice, bob) = (scene.alice.identity, scene.bob.identity)
    let secret = LinkSecret(maker: alice.fingerprint, using: &scene.world.random)
    let dave = try come(scene, with: secret) { words in
      words.admissions.removeAll { $0.user == alice.address.user || $0.user == bob.address.user }
      words.admissions += [alice, bob].map { .letting($0.address.user, into: scene.call, by: bob) }
    }
    return try isAlone(dave, in: scene)
  }

  static func withheldStart(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let secret = LinkSecret(maker: scene.alice.identity.fingerprint, using: &scene.world.random)
    var isLate = true
    let dave = try come(scene, with: secret) { words in
      if isLate { words.admissions = [] }
    }
    let aftermath = try isAlone(dave, in: scene)
    isLate = false
    dave.catchUp()
    scene.world.run(15_000)
    let stay = try #require(dave.stay)
    #expect(stay.keys.lettingIn.root?.text == "alice")
    #expect(stay.silence.isEmpty && stay.cipher.sendingEpoch != nil)
    #expect(!dave.letInByService)
    return aftermath
  }
}
