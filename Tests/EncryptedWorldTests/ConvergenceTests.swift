import CallMessages
import Contract
import MediaModel
import Testing

@testable import Calls
@testable import CallMachine
@testable import ConclaveClient

/// How long it takes until everybody sends under the same new key, and what is heard meanwhile.
struct ConvergenceTests {
  /// Milliseconds from two changes, `apart` ms apart, until everybody has converged on the lists after both.
  private func timeToConverge(_ world: World, _ call: CallID, _ kind: World.Change) -> Int64? {
    world.change(kind, call)
    let before = world.calls.control.calls[call]?.epochs.newest.number ?? 0
    return world.run(
      until: { (world.calls.control.calls[call]?.epochs.newest.number ?? 0) > before && world.hasConverged(call) },
      limit: 30_000)
  }

  @Test(arguments: World.Change.allCases, 1...5)
  func within3sWhenAllAnswerIn300ms(_ kind: World.Change, _ seed: UInt64) throws {
    let world = World(seed: seed)
    // 300 ms from the server's request to the answer's arrival.
    let call = try world.call(delay: 50...100, response: 100)
    let time = try #require(timeToConverge(world, call, kind), "seed \(seed)")
    #expect(time <= 3_000, "seed \(seed)")
    #expect(world.audit.failure == nil, "seed \(seed)")
  }

  @Test(arguments: World.Change.allCases, 1...5)
  func within5sWhenSomeDoNotAnswer(_ kind: World.Change, _ seed: UInt64) throws {
    let world = World(seed: seed)
    let call = try world.call(delay: 50...100, response: 100)
    // They do not acknowledge, and somebody else leads.
    for device in world.devices[4...5] { device.response = nil }
    let time = try #require(timeToConverge(world, call, kind), "seed \(seed)")
    #expect(time <= 5_000, "seed \(seed)")
    #expect(world.audit.failure == nil, "seed \(seed)")
  }

  @Test(arguments: 1...2, 1...5)
  func threeSecondsMoreForEachLeaderThatFails(_ failing: Int, _ seed: UInt64) throws {
    let world = World(seed: seed)
    let call = try world.call(delay: 50...100, response: 100)
    for device in world.devices.prefix(failing) { device.response = nil }
    let time = try #require(timeToConverge(world, call, .leaves), "seed \(seed)")
    #expect(time > 3_000 * Int64(failing), "seed \(seed)")
    #expect(time <= 5_000 + 3_000 * Int64(failing), "seed \(seed)")
    #expect(world.audit.failure == nil, "seed \(seed)")
  }

  /// Its place is kept so that it can come back, but nobody waits for that: a device that has left hears nothing after
  /// 3 s.
  @Test(arguments: [false, true], 1...5)
  func aLeaderWhoseConnectionBreaksIsReplacedAtOnce(_ hasHandedOut: Bool, _ seed: UInt64) throws {
    let world = World(seed: seed)
    let call = try world.call(delay: 50...100, response: 100)
    let leader = world.devices[0]
    let before = try #require(world.calls.control.calls[call]).epochs.newest.number
    world.change(.leaves, call)
    let start = world.now
    let isDue = {
      guard let epochs = world.calls.control.calls[call]?.epochs, epochs.newest.number > before else { return false }
      if case .asking(let asking) = epochs.phase { return !hasHandedOut && asking.leader == leader.address }
      return hasHandedOut
    }
    try #require(world.run(until: isDue, limit: 3_000) != nil, "seed \(seed)")
    leader.disconnect()
    let others = world.joined(call).filter { $0 !== leader }
    #expect(others.count == 3)
    let areUnderIt = { others.allSatisfy { ($0.stay?.cipher.sendingEpoch ?? 0) > before } }
    #expect(world.run(until: areUnderIt, limit: 30_000) != nil, "seed \(seed)")
    #expect(world.now - start <= 3_000, "seed \(seed)")
    #expect(world.audit.failure == nil, "seed \(seed)")
  }

  /// The leader hands out a key and dies, unnoticed by the server: a device that lacks the key gets it from another
  /// holder.
  @Test(arguments: 1...10)
  func aDeviceWithoutTheKeyOfADeadLeaderGetsItFromAnother(_ seed: UInt64) throws {
    let world = World(seed: seed)
    let call = try world.call(delay: 50...100, response: 100)
    let (leader, victim) = (world.devices[0], world.devices[5])
    world.lie = { message, device in
      guard case .envelope = message.body, device == victim.address, leader.response != nil else { return message }
      leader.response = nil
      return nil
    }
    let before = try #require(world.calls.control.calls[call]).epochs.newest.number
    world.change(.leaves, call)
    #expect(world.run(until: { leader.response == nil }, limit: 3_000) != nil, "seed \(seed)")
    // 2 s for devices that do not acknowledge, half a second until the key is requested, 2 s until it is requested
    // again.
    let time = world.run(until: { (victim.stay?.cipher.sendingEpoch ?? 0) > before }, limit: 30_000)
    #expect(time ?? .max <= 5_500, "seed \(seed)")
    #expect(victim.refusals.isEmpty, "seed \(seed)")
    #expect(world.audit.failure == nil, "seed \(seed)")
  }

  @Test(arguments: World.Change.allCases, 1...8)
  func mediaPausesLessThanHalfASecondWithOneSecondOfSignaling(_ kind: World.Change, _ seed: UInt64) throws {
    try rotate(World(seed: seed), kind)
  }

  @Test(arguments: World.Change.allCases) func aClientThatPausesLongerIsCaught(_ kind: World.Change) {
    #expect(throws: Breach.mediaGap) { try rotate(World(seed: 1, weakness: .pausesForRotation), kind) }
  }

  private func rotate(_ world: World, _ kind: World.Change) throws {
    let call = try world.call(delay: 1_000...1_200, response: 20, members: 5)
    let members = world.joined(call)
    for member in members { member.stay?.resetGaps() }
    world.change(kind, call)
    // Leaving members are no longer heard; the others are heard all the time.
    let staying = members.filter { $0.stay != nil }
    world.run(15_000)
    try Breach.unless(world.hasConverged(call), .doesNotConverge)
    for (receiver, sender) in pairs(staying) {
      try Breach.unless((receiver.stay?.gap(from: sender) ?? .max) < 500, .mediaGap)
    }
    try world.audit.check()
  }

  @Test(arguments: 1...10)
  func anAcceptingDeviceIsHeardAtOnce(_ seed: UInt64) throws {
    let world = World(seed: seed)
    let alice = world.add("alice", delay: 100...120)
    let bob = world.add("bob", delay: 100...120)
    world.add("bob", "tablet")
    world.run(1_000)
    alice.start(["bob"])
    world.run(2_000)
    let call = try #require(bob.rings.keys.first)
    bob.accept(call)
    // The request, the reply, and one frame: no epoch was made for it.
    world.run(400)
    #expect(bob.stay?.heard[alice.address] ?? 0 > 0)
    #expect(alice.stay?.heard[bob.address] ?? 0 > 0)
    #expect(bob.stay?.keys.current == 1)
    world.run(3_000)
    #expect(world.hasConverged(call))
    #expect(bob.stay?.keys.current == 2)
    #expect(world.audit.failure == nil, "seed \(seed)")
    #expect(bob.refusals.isEmpty && alice.refusals.isEmpty)
  }
}
