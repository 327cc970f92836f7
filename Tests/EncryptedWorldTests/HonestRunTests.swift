import CallMessages
import Contract
import MediaModel
import Testing

@testable import Calls
@testable import CallMachine
@testable import ConclaveClient

/// An honest server under bad conditions: none of them stops a device, makes it refuse anything, or breaks the history.
struct HonestRunTests {
  private func expectContent(_ world: World, _ what: String, sourceLocation: SourceLocation = #_sourceLocation) {
    for device in world.devices {
      let who = "\(what): \(device.address.user.text)"
      #expect(device.refusals.isEmpty, "\(who)", sourceLocation: sourceLocation)
      let warnings = device.warnings.map(\.problem).filter { $0 != .newDevice && $0 != .mayStillHear }
      #expect(warnings.isEmpty, "\(who)", sourceLocation: sourceLocation)
      for stay in device.stays {
        #expect(stay.silences.subtracting([.noKey, .alone]).isEmpty, "\(who)", sourceLocation: sourceLocation)
      }
    }
    #expect(world.audit.failure == nil, "\(what)", sourceLocation: sourceLocation)
  }

  private func expectConverged(_ world: World, _ call: CallID, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(
      world.run(until: { world.hasConverged(call) }, limit: 20_000) != nil, "all send under one key",
      sourceLocation: sourceLocation)
  }

  @Test(arguments: 1...3) func theServerDiesBetweenAnnouncementAndSwitch(_ seed: UInt64) throws {
    let scene = try Scene(seed: seed)
    var announced = false
    scene.world.lie = { message, _ in
      if case .rotate = message.body { announced = true }
      return message
    }
    scene.carol.leave()
    #expect(scene.world.run(until: { announced }, limit: 2_000) != nil)
    scene.world.killServer(for: 700)
    scene.world.run(15_000)
    expectConverged(scene.world, scene.call)
    expectContent(scene.world, "seed \(seed)")
  }

  @Test(arguments: 1...3) func theLeaderDiesTwice(_ seed: UInt64) throws {
    let world = World(seed: seed)
    let call = try world.call(delay: 10...50, response: 20)
    for device in world.devices.prefix(2) { device.response = nil }
    world.devices[3].leave()
    world.run(14_000)
    for device in world.devices.prefix(2) { device.response = 20 }
    expectContent(world, "seed \(seed)")
    #expect(world.devices[4].stay?.cipher.sendingEpoch == world.calls.control.calls[call]?.epochs.current)
  }

  @Test func twoHundredJoinInTenSeconds() throws {
    let world = World(seed: 1)
    world.isSilent = true
    let first = world.add("u000")
    world.run(500)
    var policy = Policy()
    policy.aloneSeconds = 3_600
    first.start([], policy: policy)
    world.run(1_000)
    let call = try #require(world.calls.control.calls.keys.first)
    var link: (token: String, secret: LinkSecret)?
    first.makeLink(to: call) { link = ($0, $1) }
    world.run(500)
    let (token, secret) = try #require(link)
    let others = (1...200).map { world.add("u\(String(1_000 + $0).suffix(3))") }
    world.run(3_000)
    for device in others {
      device.join(call, link: token, secret: secret)
      world.run(50)
    }
    expectConverged(world, call)
    world.run(5_000)
    #expect(world.joined(call).count == 201)
    expectContent(world, "200 joins")
    #expect(others.allSatisfy { $0.stay?.confirmation == .confirmed || $0.stay?.confirmation == .confirming })
  }

  @Test(arguments: 1...3) func aDeviceRejoinsWithin100MsOfLeaving(_ seed: UInt64) throws {
    let scene = try Scene(seed: seed)
    for _ in 0..<3 {
      scene.carol.leave()
      scene.world.run(80)
      scene.carol.rejoin(scene.call)
      scene.world.run(3_000)
    }
    scene.world.run(5_000)
    expectConverged(scene.world, scene.call)
    #expect(scene.world.joined(scene.call).count == 3)
    expectContent(scene.world, "seed \(seed)")
  }

  @Test(arguments: 1...3) func aCallMovesToAnotherDevice(_ seed: UInt64) throws {
    let scene = try Scene(seed: seed)
    let tablet = scene.world.add("carol", "tablet")
    scene.world.run(1_000)
    tablet.transfer(scene.call)
    scene.world.run(10_000)
    expectConverged(scene.world, scene.call)
    #expect(tablet.stay != nil && scene.carol.stay == nil)
    expectContent(scene.world, "seed \(seed)")
  }

  @Test(arguments: 1...3) func aDeviceHasNoSignalingFor60Seconds(_ seed: UInt64) throws {
    let scene = try Scene(seed: seed)
    scene.bob.disconnect()
    scene.world.run(20_000)
    scene.carol.leave()
    scene.world.run(40_000)
    scene.bob.connect()
    scene.world.run(10_000)
    expectConverged(scene.world, scene.call)
    expectContent(scene.world, "seed \(seed)")
  }

  @Test(arguments: 1...3) func eitherQueueIsThreeSecondsLate(_ seed: UInt64) throws {
    let world = World(seed: seed)
    let call = try world.call(delay: 10...50, response: 20, members: 4)
    for device in world.devices { device.delay = 3_000...3_050 }
    world.devices[2].leave()
    world.run(25_000)
    world.devices.last?.join(call)
    world.run(25_000)
    expectConverged(world, call)
    expectContent(world, "seed \(seed)")
  }

  @Test(arguments: 1...3) func clocksAreAnHourApart(_ seed: UInt64) throws {
    let scene = try Scene(seed: seed) { devices in
      devices[1].clockError = 3_600_000
      devices[2].clockError = -3_600_000
    }
    scene.world.run(15_000)
    expectConverged(scene.world, scene.call)
    expectContent(scene.world, "seed \(seed)")
    #expect(scene.all.allSatisfy { $0.stay?.confirmation == .confirmed })
  }

  @Test func aDeviceSleepsThrough50Epochs() throws {
    let scene = try Scene()
    scene.world.isSilent = true
    let bob = scene.bob.address
    scene.world.lie = { message, device in device == bob ? nil : message }
    let before = try #require(scene.bob.stay).keys.newest
    var epochs: UInt32 = 0
    while epochs < before + 50 {
      scene.carol.leave()
      scene.world.run(3_000)
      scene.carol.rejoin(scene.call)
      scene.world.run(3_000)
      epochs = try #require(scene.world.calls.control.calls[scene.call]).epochs.newest.number
    }
    scene.world.lie = nil
    scene.bob.catchUp()
    scene.world.run(15_000)
    #expect(scene.bob.stays.count == 1, "it is the same stay")
    #expect(scene.bob.stay?.keys.newest ?? 0 >= before + 50)
    expectConverged(scene.world, scene.call)
    expectContent(scene.world, "50 epochs")
  }
}
