import CallMessages
import Contract
import MediaModel
import Seeded
import Simulation
import Testing

@testable import Calls
@testable import CallMachine
@testable import ConclaveClient

/// The server dies and restarts from its stored state (protocol section 4, rule 11): with real keys, too, nobody is
/// lost or duplicated.
struct DeathTests {
  @Test(arguments: World.Change.allCases, 1...20)
  func allAreBackWithin5sOfTheNewStart(_ kind: World.Change, _ seed: UInt64) throws {
    let world = World(seed: seed)
    let call = try world.call(delay: 10...60, response: 20)
    let before = try #require(world.calls.control.calls[call]).epochs.newest.number
    world.change(kind, call)
    // At a moment during the rotation, or after it.
    world.run(Int64(world.random.below(2_000)))
    let expected = world.devices.filter { $0.stay != nil }
    world.killServer(for: 50 + world.random.below(2_000))
    for device in expected { device.stay?.resetGaps() }
    #expect(world.run(until: { !world.isDown }, limit: 2_100) != nil)
    // A device that was about to join or leave may be present, too.
    let areBack = { Set(world.joined(call).map(\.address)).isSuperset(of: expected.map(\.address)) }
    let time = world.run(until: { areBack() && world.allHear(call) }, limit: 10_000)
    #expect(time ?? .max <= 5_000, "seed \(seed)")
    #expect(areBack(), "seed \(seed)")
    #expect(world.run(until: { world.hasConverged(call) }, limit: 5_000) != nil, "seed \(seed)")
    // A fresh key for all, and the call code that goes with it.
    #expect(world.calls.control.calls[call]?.epochs.newest.number ?? 0 > before)
    #expect(world.audit.failure == nil, "seed \(seed)")
    #expect(world.devices.allSatisfy { $0.refusals.isEmpty }, "seed \(seed)")
  }

  /// The server dies during a ring: the ring continues, and the device that accepts soon has a key.
  @Test(arguments: 1...10)
  func aRingGoesOnAndWhoAcceptsIsHeard(_ seed: UInt64) throws {
    let world = World(seed: seed)
    let alice = world.add("alice")
    let bob = world.add("bob")
    world.run(1_000)
    alice.start(["bob"])
    world.run(Int64(world.random.below(300)))
    world.killServer(for: 500)
    world.run(3_000)
    let call = try #require(bob.rings.keys.first, "seed \(seed)")
    bob.accept(call)
    world.run(2_000)
    #expect(bob.stay?.heard[alice.address] ?? 0 > 0, "seed \(seed)")
    #expect(alice.stay?.heard[bob.address] ?? 0 > 0, "seed \(seed)")
    #expect(world.audit.failure == nil, "seed \(seed)")
  }
}
