import Contract
import MediaModel
import Testing

@testable import Calls
@testable import ConclaveClient

/// How long it takes until all send under one new key, and what is heard meanwhile.
struct ConvergenceTests {
  enum Change: CaseIterable { case joins, leaves, joinAndLeave, leaderLeaves }

  /// A call of `u0` and five others, all there; `u6` and `u7` have declined.
  private func call(
    _ world: World, delay: ClosedRange<Int>, response: Int? = 100, members: Int = 6
  ) throws -> CallID {
    world.isSilent = true
    for user in 0..<(members + 2) { world.add("u\(user)", delay: delay, response: response) }
    world.run(4_000)
    var policy = Policy()
    policy.aloneSeconds = 3_600
    world.devices[0].start((1..<members).map { "u\($0)" }, policy: policy)
    world.run(6_000)
    let call = try #require(world.calls.calls.keys.first)
    for device in world.devices[1..<members] {
      device.accept(call)
      world.run(300)
    }
    // The two more are members who can join when they like.
    for user in members..<(members + 2) {
      world.devices[0].ask(.invite(call, Invite(callees: [UserID("u\(user)")!])), then: { (_: InviteResults) in })
    }
    // Rings are for 30 s, and an epoch with 1 s of signaling takes 5.
    world.run(12_000)
    try #require(world.hasConverged(call))
    try #require(world.joined(call).count == members)
    world.isSilent = false
    world.run(200)
    return call
  }

  private func change(_ change: Change, _ world: World, _ call: CallID) {
    switch change {
    case .joins: for device in world.devices.suffix(2) { device.join(call) }
    case .leaves: for device in world.devices[2...3] { device.leave() }
    case .joinAndLeave:
      world.devices.last?.join(call)
      world.devices[2].leave()
    case .leaderLeaves:
      world.devices[0].leave()
      world.devices.last?.join(call)
    }
  }

  /// Milliseconds from two changes, `apart` ms of each other, until all have converged on the lists after both.
  private func timeToConverge(_ world: World, _ call: CallID, _ kind: Change) -> Int64? {
    change(kind, world, call)
    let before = world.calls.calls[call]?.epochs.newest.number ?? 0
    return world.run(
      until: { (world.calls.calls[call]?.epochs.newest.number ?? 0) > before && world.hasConverged(call) },
      limit: 30_000)
  }

  @Test(arguments: Change.allCases, 1...5)
  func within3sWhenAllAnswerIn300ms(_ kind: Change, _ seed: UInt64) throws {
    let world = World(seed: seed)
    // 300 ms from the server's word to the answer's arrival.
    let call = try call(world, delay: 50...100, response: 100)
    let time = try #require(timeToConverge(world, call, kind), "seed \(seed)")
    #expect(time <= 3_000, "seed \(seed)")
    #expect(world.audit.failure == nil, "seed \(seed)")
  }

  @Test(arguments: Change.allCases, 1...5)
  func within5sWhenSomeDoNotAnswer(_ kind: Change, _ seed: UInt64) throws {
    let world = World(seed: seed)
    let call = try call(world, delay: 50...100, response: 100)
    // They do not acknowledge; the leader is another.
    for device in world.devices[4...5] { device.response = nil }
    let time = try #require(timeToConverge(world, call, kind), "seed \(seed)")
    #expect(time <= 5_000, "seed \(seed)")
    #expect(world.audit.failure == nil, "seed \(seed)")
  }

  @Test(arguments: 1...2, 1...5)
  func threeSecondsMoreForEachLeaderThatFails(_ failing: Int, _ seed: UInt64) throws {
    let world = World(seed: seed)
    let call = try call(world, delay: 50...100, response: 100)
    for device in world.devices.prefix(failing) { device.response = nil }
    let time = try #require(timeToConverge(world, call, .leaves), "seed \(seed)")
    #expect(time > 3_000 * Int64(failing), "seed \(seed)")
    #expect(time <= 5_000 + 3_000 * Int64(failing), "seed \(seed)")
    #expect(world.audit.failure == nil, "seed \(seed)")
  }

  @Test(arguments: Change.allCases, 1...8)
  func mediaPausesLessThanHalfASecondWithOneSecondOfSignaling(_ kind: Change, _ seed: UInt64) throws {
    let world = World(seed: seed)
    let call = try call(world, delay: 1_000...1_200, response: 20, members: 5)
    let members = world.joined(call)
    for member in members { member.stay?.resetGaps() }
    change(kind, world, call)
    // Those who go are not heard on; the others are, all the time.
    let staying = members.filter { $0.stay != nil }
    world.run(10_000)
    #expect(world.hasConverged(call), "seed \(seed)")
    for (receiver, sender) in pairs(staying) {
      #expect(
        (receiver.stay?.gap(from: sender) ?? .max) < 500, "seed \(seed): \(receiver.address) of \(sender.address)")
    }
    #expect(world.audit.failure == nil, "seed \(seed)")
  }

  @Test(arguments: 1...10)
  func whoAcceptsIsHeardAtOnce(_ seed: UInt64) throws {
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
