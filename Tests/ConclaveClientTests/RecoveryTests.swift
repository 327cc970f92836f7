import MediaModel
import Octets
import Testing

@testable import ConclaveClient

/// Automatic recovery, in virtual time.
struct RecoveryTests {
  private struct Machine {
    var recovery = Recovery()
    var now = Instant(nanoseconds: 1_000_000_000)
    var generator = SplitMix64(seed: 12)

    mutating func on(_ input: Recovery.Input) -> Recovery.Action? {
      recovery.handle(input, now: now, using: &generator)
    }

    mutating func wait(_ duration: Duration) -> Recovery.Action? {
      now = now.advanced(by: duration)
      return recovery.handleTimeout(now: now)
    }
  }

  @Test func aLostConnectionAloneNeedsNoRejoin() {
    var machine = Machine()
    #expect(machine.on(.standing(.connected)) == nil)
    #expect(machine.on(.signalingLost) == nil)
    #expect(machine.on(.signalingBack) == nil)
    #expect(machine.on(.state(.connected)) == nil)
    #expect(machine.recovery.nextTimeout == nil)
  }

  @Test(arguments: [ParticipantStanding.absent, .silent])
  func aDeviceThatFindsItselfAbsentOrSilentRejoins(_ standing: ParticipantStanding) {
    var machine = Machine()
    _ = machine.on(.signalingLost)
    _ = machine.on(.signalingBack)
    #expect(machine.on(.state(standing)) == .rejoin)
    // Only once: events meanwhile concern the former participant.
    #expect(machine.on(.state(.absent)) == nil)
    #expect(machine.on(.rejoined) == nil)
    // The state that follows the rejoin has no media yet.
    #expect(machine.on(.state(.silent)) == nil)
  }

  @Test func theStateMayComeBeforeTheRegistrationIsAnswered() {
    var machine = Machine()
    _ = machine.on(.signalingLost)
    #expect(machine.on(.state(.silent)) == .rejoin)
  }

  @Test func aStateThatDoesNotComeIsAskedFor() {
    var machine = Machine()
    _ = machine.on(.signalingLost)
    _ = machine.on(.signalingBack)
    #expect(machine.wait(.milliseconds(1_999)) == nil)
    #expect(machine.wait(.milliseconds(1)) == .askState)
    #expect(machine.on(.state(.connected)) == nil)
  }

  @Test func aLostPathIsRestartedAndThenRejoined() {
    var machine = Machine()
    _ = machine.on(.standing(.connected))
    #expect(machine.on(.standing(.silent)) == .restartMedia)
    #expect(machine.on(.mediaFailed) == nil)
    #expect(machine.wait(.seconds(8)) == .rejoin)
  }

  @Test func aRestartThatHelpsIsTheEndOfIt() {
    var machine = Machine()
    _ = machine.on(.standing(.connected))
    #expect(machine.on(.mediaFailed) == .restartMedia)
    #expect(machine.on(.standing(.connected)) == nil)
    #expect(machine.wait(.seconds(60)) == nil)
  }

  @Test func mediaThatNeverFlowedIsNotLost() {
    var machine = Machine()
    #expect(machine.on(.standing(.silent)) == nil)
  }

  @Test func aFailedRejoinIsTriedAgainWithPausesThatGrow() {
    var machine = Machine()
    #expect(machine.on(.state(.absent)) == .rejoin)
    var pauses: [Duration] = []
    for _ in 0..<8 {
      #expect(machine.on(.rejoinFailed(code: "rate.limited")) == nil)
      let due = machine.recovery.nextTimeout ?? machine.now
      pauses.append(machine.now.duration(to: due))
      #expect(machine.wait(machine.now.duration(to: due)) == .rejoin)
    }
    #expect(pauses[0] <= .milliseconds(250))
    #expect(pauses[7] >= .seconds(4) && pauses[7] <= .seconds(8))
    #expect(machine.on(.rejoinFailed(code: nil)) == nil)
  }

  @Test(arguments: ["call.ended", "call.not-found", "call.answered-elsewhere"])
  func anAnswerThatWillNotChangeIsTheEnd(_ code: String) {
    var machine = Machine()
    _ = machine.on(.state(.absent))
    #expect(machine.on(.rejoinFailed(code: code)) == .giveUp(code))
    #expect(machine.on(.state(.absent)) == nil)
  }
}
