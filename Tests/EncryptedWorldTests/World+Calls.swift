import CallMessages
import Contract
import MediaModel
import Testing

@testable import Calls
@testable import CallMachine
@testable import ConclaveClient

/// An initial call, and its possible changes.
extension World {
  enum Change: CaseIterable { case joins, leaves, joinAndLeave, leaderLeaves }

  /// A call of `u0` and others, all present; two more users have declined.
  func call(delay: ClosedRange<Int>, response: Int? = 100, members: Int = 6) throws -> CallID {
    isSilent = true
    for user in 0..<(members + 2) { add("u\(user)", delay: delay, response: response) }
    run(4_000)
    var policy = Policy()
    policy.aloneSeconds = 3_600
    devices[0].start((1..<members).map { "u\($0)" }, policy: policy)
    run(6_000)
    let call = try #require(calls.control.calls.keys.first)
    for device in devices[1..<members] {
      device.accept(call)
      run(300)
    }
    // These two are members who can join at any time.
    for user in members..<(members + 2) {
      devices[0].invite(["u\(user)"], to: call)
    }
    // Rings last 30 s, and an epoch with 1 s of signaling takes 5 s.
    run(12_000)
    try #require(hasConverged(call))
    try #require(joined(call).count == members)
    isSilent = false
    run(200)
    return call
  }

  func change(_ change: Change, _ call: CallID) {
    switch change {
    case .joins: for device in devices.suffix(2) { device.join(call) }
    case .leaves: for device in devices[2...3] { device.leave() }
    case .joinAndLeave:
      devices.last?.join(call)
      devices[2].leave()
    case .leaderLeaves:
      devices[0].leave()
      devices.last?.join(call)
    }
  }

  /// Whether all joined devices hear each other, on paths of this run of the server.
  func allHear(_ call: CallID) -> Bool {
    let devices = joined(call)
    return devices.allSatisfy { $0.stay?.isCut == false }
      && pairs(devices).allSatisfy { receiver, sender in receiver.stay?.heard[sender.address] ?? 0 > 0 }
  }
}
