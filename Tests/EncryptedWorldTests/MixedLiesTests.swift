import CallMessages
import Contract
import Crypto
import MediaModel
import Seeded
import Simulation
import Testing

@testable import Calls
@testable import CallMachine
@testable import ConclaveClient

/// A server that lies at random, about everything at once: whatever it does, no key and nonce repeat, no frame passes for another's, and a ghost opens only
/// frames of senders that had it on their list.
struct MixedLiesTests {
  @Test(arguments: 0..<20) func aThousandLyingServers(_ batch: UInt64) {
    for seed in (batch * 50 + 1)...(batch * 50 + 50) {
      #expect(throws: Never.self, "seed \(seed)") { try play(seed) }
    }
  }

  private func play(_ seed: UInt64) throws {
    let scene = try Scene(seed: seed, isSilent: true)
    let liar = Liar(scene, seed: seed)
    let world = scene.world
    world.isSilent = false
    for _ in 0..<6 {
      switch liar.random.below(5) {
      case 0: if scene.carol.stay != nil { scene.carol.leave() } else { scene.carol.rejoin(scene.call) }
      case 1: if scene.bob.stay == nil { scene.bob.rejoin(scene.call) }
      case 2: liar.replay()
      case 3: liar.flap()
      default: break
      }
      world.run(Int64(100 + liar.random.below(900)))
    }
    world.run(3_000)
    liar.ghost.listen()
    try world.audit.check()
    // The ghost opens only frames of senders that had it on their list.
    let listed = liar.listed
    for device in scene.all where !listed.contains(device.address) {
      for stay in device.stays where liar.ghost.opened.contains(stay.participant) {
        try Breach.unless(false, .opensUnlisted)
      }
    }
  }
}

/// A lying server that randomly changes events.
private final class Liar {
  let scene: Scene
  let ghost: Ghost
  var random: SeededGenerator
  /// The devices that were shown a list with the ghost on it.
  var listed: Set<Device> = []
  private var recorded: [(EventMessage, Device)] = []
  private var count: UInt64 = 1_000_000

  init(_ scene: Scene, seed: UInt64) {
    self.scene = scene
    random = SeededGenerator(seed: seed &* 0x9e37_79b9)
    ghost = Ghost(scene.world, call: scene.call, user: seed % 2 == 0 ? "bob" : "zed")
    ghost.intercept()
    scene.world.lie = { [unowned self] message, device in lie(message, device) }
  }

  private func lie(_ message: EventMessage, _ device: Device) -> EventMessage? {
    if recorded.count < 200 { recorded.append((message, device)) }
    var message = message
    switch message.body {
    case .rotate(var rotation):
      distort(&rotation, device)
      message.body = .rotate(rotation)
    case .switchKeys(var change):
      if random.chance(20) { return nil }
      if random.chance(10) { change.epoch = change.epoch &+ UInt32(random.below(5)) &- 2 }
      message.body = .switchKeys(change)
    case .envelope(var envelope):
      if random.chance(10) { return nil }
      if random.chance(10) { envelope.ciphertext.bytes[random.below(envelope.ciphertext.bytes.count)] ^= 1 }
      if random.chance(10) { envelope.from = ghost.identity.address }
      if random.chance(10) { envelope.epoch &+= 1 }
      message.body = .envelope(envelope)
    case .member(var change):
      if random.chance(10) { return nil }
      if random.chance(10), !change.member.participants.isEmpty {
        change.member.participants[0].participant = UInt32(random.below(5))
      }
      message.body = .member(change)
    case .confirmed(var confirmed):
      if random.chance(20) { return nil }
      if random.chance(30), !confirmed.buckets.isEmpty { confirmed.buckets[0].tag.bytes[0] ^= 1 }
      message.body = .confirmed(confirmed)
    default: break
    }
    return message
  }

  private func distort(_ rotation: inout Rotate, _ device: Device) {
    guard random.chance(60), let honest = scene.world.calls.control.calls[scene.call]?.epochs.newest.list else {
      return
    }
    var list = honest
    switch random.below(9) {
    case 0, 1, 2:
      list = ghost.haunt(list)
      listed.insert(device)
      if rotation.deliver != nil { rotation.deliver?.append(ghost.delivered) }
    case 3:
      guard list.count > 1 else { break }
      let next = list[1].participant
      list[0].participant = next
    case 4:
      guard list.count > 1 else { break }
      let first = list[0].participant
      list[0].participant = list[1].participant
      list[1].participant = first
    case 5: list.removeAll { $0.address == device }
    case 6: rotation.mode = rotation.mode == .fresh ? .ratchet : .fresh
    case 7: rotation.previous.bytes[0] ^= 1
    default: rotation.epoch &+= UInt32(random.below(4))
    }
    rotation.list = list
    rotation.added = nil
    rotation.removed = nil
    rotation.listHash = Base64Bytes(
      EpochList.hash(
        rotation.epoch, of: scene.call, previous: rotation.previous.bytes, rosterHash: EpochList.rosterHash(list)))
    var whole = rotation
    whole.deliver = nil
    ghost.feed(.rotate(whole))
  }

  /// An earlier event is repeated.
  func replay() {
    for _ in 0..<5 where !recorded.isEmpty {
      let (message, address) = recorded[random.below(recorded.count)]
      count += 1
      scene.world.device(address)?.receive(message, count)
    }
  }

  /// The ghost is called a member, or no longer.
  func flap() {
    for device in scene.all {
      guard let state = device.stay?.session.state, var member = state.members.randomElement(using: &random) else {
        continue
      }
      if random.chance(50) {
        member.participants = []
      } else {
        member.participants.append(
          ParticipantState(
            participant: ghost.entry.participant, device: ghost.entry.device, joinId: ghost.entry.joinId!,
            connected: true, held: false, tracks: []))
      }
      count += 1
      device.receive(
        EventMessage(
          at: scene.world.timestamp, call: scene.call, body: .member(MemberChange(member: member, cause: .connected))),
        count)
    }
  }
}
