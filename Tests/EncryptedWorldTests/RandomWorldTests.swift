import CallMessages
import Contract
import MediaModel
import Seeded
import Simulation
import Testing

@testable import Calls
@testable import CallMachine
@testable import ConclaveClient

/// People join, leave, lose their connections and restart their apps at random, with an honest server.
struct RandomWorldTests {
  @Test(arguments: 0..<9) func onlyWhoIsOnTheListReadsAndAllAgreeInTheEnd(_ batch: UInt64) {
    for seed in (batch * 20 + 1)...(batch * 20 + 20) {
      #expect(throws: Never.self, "seed \(seed)") { try live(seed) }
    }
  }

  /// A server that sometimes dies, at any moment: with real keys, too, everything continues.
  @Test(arguments: 1...120) func theServerMayDieAtAnyMoment(_ seed: UInt64) throws { try live(seed, mortality: 200) }

  /// Seeds that once failed: a leader mistook its own key for the epoch's, devices rejoined endlessly, or applied
  /// events of their former stay to the new one.
  @Test(arguments: [215, 278]) func keptSeedsDoNotFailAgain(_ seed: UInt64) throws { try live(seed) }
  @Test(arguments: [138, 246, 259, 264, 273, 284]) func keptSeedsWithADeathDoNotFailAgain(_ seed: UInt64) throws {
    try live(seed, mortality: 200)
  }

  /// Each deliberately broken rule is noticed.
  @Test(arguments: [Weakness.sharesWithThoseWhoLeft, .sharesThePast, .countsAnew, .neverSwitches, .keepsThoseWhoLeft])
  func aClientThatBreaksARuleIsCaught(_ weakness: Weakness) {
    for seed: UInt64 in 1...30 {
      do { try live(seed, weakness: weakness) } catch {
        let breach = (error as? Audit.Failure)?.breach ?? error as? Breach
        #expect(breach == weakness.breach, "seed \(seed)")
        return
      }
    }
    Issue.record("30 worlds did not notice that a client \(weakness)")
  }

  private func live(_ seed: UInt64, mortality: Int? = nil, weakness: Weakness? = nil) throws {
    let world = World(seed: seed, weakness: weakness)
    let call = try begin(world)
    world.mortality = mortality
    for _ in 0..<12 { step(world, call) }
    world.mortality = nil
    for device in world.devices {
      // A device that did not answer the server's request for a key is asked again on its next connection.
      if device.response == nil { device.disconnect() }
      device.connect()
      device.delay = 10...50
      device.response = 20
    }
    world.run(20_000)
    try world.audit.check()
    guard world.calls.control.calls[call] != nil, world.joined(call).count > 1 else { return }
    try Breach.unless(world.run(until: { world.hasConverged(call) }, limit: 5_000) != nil, .doesNotConverge)
    let members = world.joined(call)
    for member in members { member.stay?.resetGaps() }
    world.run(1_000)
    for (receiver, sender) in pairs(members) {
      try Breach.unless((receiver.stay?.heard[sender.address] ?? 0) > 15, .isNotHeard)
    }
    try world.audit.check()
    for device in world.devices {
      // Leaders that do not answer leave a departed device on the list for a while, and it may indeed still hear then.
      // After a restart of the server it may have left before this stay began.
      let mayBeTrue: Set<KeyWarning.Problem> =
        mortality == nil ? [.mayStillHear, .newDevice] : [.mayStillHear, .newDevice, .notInCall]
      let warnings = (device.warnings.filter { !mayBeTrue.contains($0.problem) } + device.falseAlarms).map(\.problem)
      guard !device.falseRefusals.isEmpty || !warnings.isEmpty else { continue }
      let who = "\(device.address.user.text)/\(device.address.device.text)"
      world.audit.fail(.refusesHonest, "\(who): \(device.falseRefusals), \(warnings)")
    }
    try world.audit.check()
  }

  /// Starts a call of the first user with all others.
  private func begin(_ world: World) throws -> CallID {
    let delays = [1...5, 10...50, 100...300, 800...1_000]
    for user in 0..<(3 + world.random.below(4)) {
      for device in 0...world.random.below(2) {
        world.add(
          "u\(user)", "d\(device)", delay: delays[world.random.below(4)],
          response: [5, 50, 300, nil][world.random.below(4)])
      }
    }
    world.run(5_000)
    let users = Set(world.devices.map(\.address.user.text)).subtracting(["u0"]).sorted()
    var policy = Policy()
    policy.aloneSeconds = 3_600
    policy.ringSeconds = 60
    world.devices[0].start(users, policy: policy)
    world.run(6_000)
    return try #require(world.calls.control.calls.keys.first)
  }

  private func step(_ world: World, _ call: CallID) {
    let device = world.devices[world.random.below(world.devices.count)]
    switch world.random.below(11) {
    case 0...3:
      if device.stay == nil { device.rings[call] != nil ? device.accept(call) : device.join(call) }
    case 4: device.leave()
    case 5: device.disconnect()
    case 6: device.restart()
    case 7: device.connect()
    case 8: if device.stay == nil { device.rejoin(call) }
    case 9:
      // A stolen device, for example: another device of the user removes it from the call.
      let other = world.devices.first { $0.address.user == device.address.user && $0 !== device && $0.isConnected }
      other?.ask(.people(.removeDevice(RemoveDevice(device: device.address.device)))) { (_: NoBody) in }
    default:
      if let stay = device.stay { world.setMedia(world.random.chance(50), of: device, in: stay.call) }
    }
    world.run([0, 50, 200, 1_000, 3_000, 16_000][world.random.below(6)].asInt64)
  }
}

extension Int { var asInt64: Int64 { Int64(self) } }

/// Every pair of a receiver and a sender.
func pairs(_ devices: [SimDevice]) -> [(SimDevice, SimDevice)] {
  devices.flatMap { a in devices.compactMap { a === $0 ? nil : (a, $0) } }
}
