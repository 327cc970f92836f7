import Contract
import MediaModel
import Testing

@testable import Calls
@testable import ConclaveClient

/// People come, go, lose their connections and restart their apps at random, behind an honest server.
struct RandomWorldTests {
  @Test(arguments: 1...40)
  func onlyWhoIsOnTheListReadsAndAllAgreeInTheEnd(_ seed: UInt64) throws {
    let world = World(seed: seed)
    let call = try begin(world)
    for _ in 0..<12 { step(world, call) }
    for device in world.devices {
      device.connect()
      device.delay = 10...50
      device.response = 20
    }
    world.run(20_000)
    #expect(world.audit.failure == nil, "seed \(seed)")
    guard world.calls.calls[call] != nil, world.joined(call).count > 1 else { return }
    #expect(world.run(until: { world.hasConverged(call) }, limit: 5_000) != nil, "seed \(seed)")
    let members = world.joined(call)
    for member in members { member.stay?.resetGaps() }
    world.run(1_000)
    for (receiver, sender) in pairs(members) {
      #expect(
        (receiver.stay?.heard[sender.address] ?? 0) > 15, "seed \(seed): \(receiver.address) hears \(sender.address)")
    }
    #expect(world.audit.failure == nil, "seed \(seed)")
    #expect(world.devices.allSatisfy { $0.refusals.isEmpty && $0.warnings.allSatisfy { $0.problem == .newDevice } })
  }

  /// A call of the first user with all others.
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
    return try #require(world.calls.calls.keys.first)
  }

  private func step(_ world: World, _ call: CallID) {
    let device = world.devices[world.random.below(world.devices.count)]
    switch world.random.below(10) {
    case 0...3:
      if device.stay == nil { device.rings[call] != nil ? device.accept(call) : device.join(call) }
    case 4: device.leave()
    case 5: device.disconnect()
    case 6: device.restart()
    case 7: device.connect()
    case 8: if device.stay == nil { device.rejoin(call) }
    default:
      if let stay = device.stay { world.setMedia(world.random.chance(50), of: device, in: stay.call) }
    }
    world.run([0, 50, 200, 1_000, 3_000, 16_000][world.random.below(6)].asInt64)
  }
}

extension Int { var asInt64: Int64 { Int64(self) } }

/// Every receiver with every sender.
func pairs(_ devices: [SimDevice]) -> [(SimDevice, SimDevice)] {
  devices.flatMap { a in devices.compactMap { a === $0 ? nil : (a, $0) } }
}
