import CallMessages
import Contract
import MediaModel
import Seeded
import Simulation
import Testing

@testable import ConclaveClient

/// A server that delivers events after any number of turns, replies late, loses connections, and keeps its own device
/// on the lists under ever new numbers. The oracles hold after each input and at all times.
struct InterleavingTests {
  @Test(arguments: 0..<10) func theOraclesHoldInAnyOrder(_ batch: UInt64) {
    var (compared, wrongHearings) = (0, 0)
    for seed in (batch * 20 + 1)...(batch * 20 + 20) {
      #expect(throws: Never.self, "seed \(seed)") {
        let oracles = try play(seed)
        compared += oracles.compared
        wrongHearings += oracles.wrongHearings
      }
    }
    #expect(compared > 30 && wrongHearings > 1_000, "the worlds test too little: \(compared), \(wrongHearings)")
  }

  @Test(arguments: [Weakness.sealsLate, .neverStops, .hidesWarnings]) func aBrokenRuleIsFound(_ weakness: Weakness) {
    for seed: UInt64 in 1...40 {
      do { _ = try play(seed, weakness: weakness) } catch {
        #expect((error as? Audit.Failure)?.breach == weakness.breach, "seed \(seed)")
        return
      }
    }
    Issue.record("40 worlds did not notice that a client \(weakness)")
  }

  private func play(_ seed: UInt64, weakness: Weakness? = nil) throws -> Oracles {
    let scene = try Scene(seed: seed, isSilent: true, weakness: weakness)
    let world = scene.world
    let oracles = Oracles(world)
    world.oracles = oracles
    world.isSilent = false
    var random = SeededGenerator(seed: seed &* 0x9e37_79b9)
    let haunting = Haunting(scene, user: random.chance(50) ? "bob" : "zed")
    world.disorder = [0, 30, 300, 1_500][random.below(4)]
    for device in scene.all { device.response = [5, 100, 900, 2_500][random.below(4)] }
    for _ in 0..<16 {
      switch random.below(8) {
      case 0, 1: if scene.carol.stay != nil { scene.carol.leave() } else { scene.carol.rejoin(scene.call) }
      case 2, 3: haunting.appear()
      case 4: haunting.claim(isThere: random.chance(50))
      case 5:
        let device = scene.all[random.below(3)]
        if device.isConnected { device.disconnect() } else { device.connect() }
      case 6: for device in scene.all { device.connect() }
      default: break
      }
      world.run(Int64(50 + random.below(2_950)))
      haunting.ghost.listen()
      for participant in haunting.ghost.opened {
        let stays = scene.all.flatMap(\.stays).filter { $0.participant == participant }
        let isListed = stays.contains { stay in oracles.haunted.contains { $0.joinId == stay.joinId } }
        try Breach.unless(isListed, .opensUnlisted)
      }
      try world.audit.check()
    }
    for device in scene.all { device.connect() }
    // Sending has stopped by now because of a ghost that is still listed.
    world.run(30_000)
    try world.audit.check()
    return oracles
  }
}

/// A device of the server that appears on the lists and disappears, with a new stay and number each time, under one
/// key.
private final class Haunting {
  let scene: Scene
  private(set) var ghost: Ghost
  private var isListed = false
  private let forger: Forger
  private var count: UInt64 = 2_000_000
  private var number: UInt32 = 900

  init(_ scene: Scene, user: String) {
    self.scene = scene
    ghost = Ghost(scene.world, call: scene.call, user: user)
    ghost.intercept()
    let box = Box()
    forger = Forger(scene.world, scene.call) { list, _ in
      guard let haunting = box.haunting, haunting.isListed else { return list }
      return haunting.ghost.haunt(list)
    }
    forger.listener = { rotation, _ in
      var whole = rotation
      whole.deliver = nil
      box.haunting?.ghost.feed(.rotate(whole))
    }
    box.haunting = self
  }

  private final class Box { weak var haunting: Haunting? }

  /// From the next epoch on it is on the lists under a new number, or no longer.
  func appear() {
    number += 1
    isListed.toggle()
    guard isListed else { return forger.deliver = [] }
    ghost = Ghost(
      scene.world, call: scene.call, user: ghost.identity.user, participant: number, identity: ghost.identity)
    ghost.intercept()
    forger.deliver = [ghost.delivered]
  }

  /// The server calls it a member, or says that it has left.
  func claim(isThere: Bool) {
    for device in scene.all {
      guard let stay = device.stay else { continue }
      let known = stay.session.state.members.first { $0.user == ghost.entry.user }
      var member = known ?? MemberState(user: ghost.entry.user, name: nil, state: .joined, participants: [])
      member.participants.removeAll { $0.device == ghost.entry.device }
      if isThere {
        member.participants.append(
          ParticipantState(
            participant: ghost.entry.participant, device: ghost.entry.device, joinId: ghost.entry.joinId!,
            connected: true, held: false, tracks: []))
      }
      member.state = member.participants.isEmpty ? .left : .joined
      count += 1
      device.receive(
        EventMessage(
          at: scene.world.timestamp, call: scene.call,
          body: .member(MemberChange(member: member, cause: isThere ? .joined : .left))), count)
    }
  }
}
