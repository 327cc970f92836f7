@testable import CallMachine
@testable import PeopleMachine
@testable import Calls
import Contract
import MediaModel
import Simulation
import Testing

import CallMessages

/// After a restart the clock is behind the times of the previous run: from then on nothing lasts longer than allowed.
struct ClockRules {
  let stage = Stage()

  /// Restarts the server an hour before it died.
  private func goBack() { stage.restart(after: .seconds(-3_600)) }

  @Test func aRingIsOverInItsTime() throws {
    let alice = stage.connect("alice")
    _ = stage.connect("bob")
    let call = try alice.call(["bob"])
    stage.advance(.seconds(10))
    goBack()
    _ = stage.connect("alice")
    let bob = stage.connect("bob")
    #expect(bob.events().rings.map(\.expiresAt) == [stage.now + .seconds(30)])
    stage.advance(.seconds(10))
    // The corrected expiry is stored: another restart does not extend it.
    stage.restart()
    _ = stage.connect("alice")
    let again = stage.connect("bob")
    stage.advance(.milliseconds(19_999))
    #expect(!again.names().contains(.callMissed))
    stage.advance(.milliseconds(1))
    #expect(again.names().contains(.callMissed))
    #expect(stage.disk.call(call) == nil && stage.node.control.calls.isEmpty)
  }

  @Test func aClockSetBackDoesNotProlongAnAbsence() throws {
    let (call, alice) = try callOfTwo(awaySeconds: 60)
    stage.advance(.seconds(20))
    #expect(try alice.phase(of: "bob", in: call) == .disconnected)
    goBack()
    let again = stage.connect("alice")
    try again.rejoin(call)
    try again.connectMedia(call)
    stage.advance(.milliseconds(59_999))
    #expect(try again.phase(of: "bob", in: call) == .disconnected)
    stage.advance(.milliseconds(1))
    #expect(again.code(.call(call, .state)) == .callEnded, "alice was the only one left of two (rule 9)")
  }

  /// Its connection breaks before media has ever flowed: the 15 s do not count from a join in the future.
  @Test func aDeviceThatGoesIsDisconnectedAfter15Seconds() throws {
    let (call, _) = try callOfTwo()
    goBack()
    let alice = stage.connect("alice")
    try alice.connectMedia(call)
    let bob = stage.connect("bob")
    bob.disconnect()
    stage.advance(.seconds(15))
    #expect(try alice.phase(of: "bob", in: call) == .disconnected)
  }

  @Test func beingAloneIsNoLongerThanItMay() throws {
    let alice = stage.connect("alice")
    let call = try alice.call([]) { $0.aloneSeconds = 60 }
    stage.advance(.seconds(50))
    goBack()
    let again = stage.connect("alice")
    try again.connectMedia(call)
    stage.advance(.seconds(60))
    #expect(again.code(.call(call, .state)) == .callEnded)
  }

  @Test func keysRotateInTheirTime() throws {
    let (call, _) = try callOfTwo()
    goBack()
    let alice = stage.connect("alice")
    try alice.connectMedia(call)
    try stage.connect("bob").connectMedia(call)
    stage.advance(.seconds(599))
    _ = alice.events()
    stage.advance(.seconds(2))
    #expect(alice.names().contains(.keysRotate))
  }

  @Test func aCallEndsInItsTimeAndHasLastedNoNegativeOne() throws {
    let (call, _) = try callOfTwo { $0.maxHours = 1 }
    goBack()
    let alice = stage.connect("alice")
    try alice.connectMedia(call)
    try stage.connect("bob").connectMedia(call)
    stage.advance(.seconds(3_599))
    #expect(try alice.state(call).state == .active)
    stage.advance(.seconds(1))
    #expect(alice.events().ended == Ended(reason: .expired, by: nil, seconds: 3_600))
  }

  @Test func endedCallsCanBeReportedForADay() throws {
    let (call, alice) = try callOfTwo()
    #expect(alice.code(.call(call, .end)) == nil)
    goBack()
    let again = stage.connect("alice")
    let bob = UserID(unchecked: "bob")
    #expect(again.code(.call(call, .report(ReportAbuse(user: bob, text: "x")))) == nil)
    stage.advance(.seconds(86_401))
    #expect(again.code(.call(call, .report(ReportAbuse(user: bob, text: "x")))) == .callEnded)
  }

  /// Events kept for an absent device expire in time, and envelopes with their call.
  @Test func mailboxesAreCleared() throws {
    let (call, alice) = try callOfTwo()
    stage.advance(.milliseconds(100))
    _ = try alice.handOut(call, 2, to: [stage.connect("bob", keys: false, mode: .individual)])
    goBack()
    let bob = Device(user: UserID(unchecked: "bob"), device: DeviceID(unchecked: "phone"))
    #expect(stage.node.people.directory[bob]?.mailbox.kept.map(\.body.name) == [.keysEnvelope])
    stage.advance(.seconds(86_400))
    #expect(stage.node.control.calls.isEmpty && stage.node.nextDeadline == nil)
    #expect(stage.node.people.directory[bob]?.mailbox.isEmpty ?? true)
  }

  /// A call of two with media; if bob should be away, his connection then breaks.
  private func callOfTwo(
    awaySeconds: Int? = nil, policy change: (inout Policy) -> Void = { _ in }
  ) throws -> (call: CallID, alice: Client) {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"]) { policy in
      policy.awaySeconds = awaySeconds
      change(&policy)
    }
    try bob.accept(call)
    for client in [alice, bob] { try client.connectMedia(call) }
    if awaySeconds != nil {
      bob.disconnect()
      try bob.loseMedia(call)
    }
    return (call, alice)
  }
}
