import Testing

@testable import Forwarding

/// Each transition of a slot, by name, and its effect in every state.
struct SlotStateTests {
  private static let states: [SlotState] = [
    .empty, .withheld(rank: 1, .newSource), .withheld(rank: 1, .resumed), .awaiting(rank: 1, next: nil, .newSource),
    .awaiting(rank: 1, next: nil, .resumed), .awaiting(rank: 1, next: nil, .layer(7)),
    .awaiting(rank: 1, next: nil, .layer(nil)), .awaiting(rank: 1, next: 0, .resumed), .running(rank: 1),
    .switching(rank: 1, next: 0), .switching(rank: 1, next: 2),
  ]

  /// - Returns: the states after `transition`, in the order of `states`.
  private func after(_ transition: (inout SlotState) -> Void) -> [SlotState] {
    Self.states.map { state in
      var new = state
      transition(&new)
      return new
    }
  }

  @Test func takeBeginsWithANewSourceInEveryState() {
    #expect(after { $0.take(rank: 2) } == Self.states.map { _ in .awaiting(rank: 2, next: nil, .newSource) })
  }

  @Test func leaveEmptiesTheSlotInEveryState() {
    #expect(after { $0.leave() } == Self.states.map { _ in .empty })
  }

  @Test func beginSendsOnlyWhatIsAwaited() {
    #expect(
      after { _ = $0.begin() } == [
        .empty, .withheld(rank: 1, .newSource), .withheld(rank: 1, .resumed), .running(rank: 1), .running(rank: 1),
        .running(rank: 1), .running(rank: 1), .switching(rank: 1, next: 0), .running(rank: 1),
        .switching(rank: 1, next: 0), .switching(rank: 1, next: 2),
      ])
    let continuations = Self.states.map { state in
      var state = state
      return state.begin()
    }
    #expect(
      continuations == [nil, nil, nil, .newSource, .resumed, .layer(7), .layer(nil), .resumed, nil, nil, nil])
  }

  @Test func pauseStopsWhatRunsAndKeepsTheSwitchUnderWay() {
    #expect(
      after { $0.pause() } == Self.states.prefix(8) + [
        .awaiting(rank: 1, next: nil, .resumed), .awaiting(rank: 1, next: 0, .resumed),
        .awaiting(rank: 1, next: 2, .resumed),
      ])
  }

  @Test func restartForgetsHowTheSourceContinued() {
    #expect(
      after { $0.restart() } == [
        .empty, .withheld(rank: 1, .newSource), .withheld(rank: 1, .newSource),
        .awaiting(rank: 1, next: nil, .newSource), .awaiting(rank: 1, next: nil, .newSource),
        .awaiting(rank: 1, next: nil, .newSource), .awaiting(rank: 1, next: nil, .newSource),
        .awaiting(rank: 1, next: 0, .newSource), .awaiting(rank: 1, next: nil, .newSource),
        .awaiting(rank: 1, next: 0, .newSource), .awaiting(rank: 1, next: 2, .newSource),
      ])
  }

  @Test func withholdStopsEverythingAndEndsTheSwitch() {
    #expect(
      after { $0.withhold() } == [
        .empty, .withheld(rank: 1, .newSource), .withheld(rank: 1, .resumed), .withheld(rank: 1, .newSource),
        .withheld(rank: 1, .resumed), .withheld(rank: 1, .layer(7)), .withheld(rank: 1, .layer(nil)),
        .withheld(rank: 1, .resumed), .withheld(rank: 1, .resumed), .withheld(rank: 1, .resumed),
        .withheld(rank: 1, .resumed),
      ])
  }

  @Test func admitWaitsForAKeyFrameAfterBeingWithheld() {
    #expect(
      after { $0.admit() } == [
        .empty, .awaiting(rank: 1, next: nil, .newSource), .awaiting(rank: 1, next: nil, .resumed),
      ]
        + Self.states.dropFirst(3))
  }

  @Test func expectSwitchesARunningSlotAtTheNextKeyFrame() {
    #expect(
      after { $0.expect(2) } == Self.states.prefix(3) + [
        .awaiting(rank: 1, next: 2, .newSource), .awaiting(rank: 1, next: 2, .resumed),
        .awaiting(rank: 1, next: 2, .layer(7)), .awaiting(rank: 1, next: 2, .layer(nil)),
        .awaiting(rank: 1, next: 2, .resumed), .switching(rank: 1, next: 2), .switching(rank: 1, next: 2),
        .switching(rank: 1, next: 2),
      ])
    #expect(
      after { $0.expect(nil) } == Self.states.prefix(7) + [
        .awaiting(rank: 1, next: nil, .resumed), .running(rank: 1), .running(rank: 1), .running(rank: 1),
      ])
  }

  /// The timestamp steps of layers that never began add up, so that the first packet continues from the last sent one.
  @Test func showContinuesFromTheLayerThatWasSentLast() {
    #expect(
      after { $0.show(rank: 2, difference: 5) } == [
        .empty, .withheld(rank: 2, .newSource), .withheld(rank: 2, .layer(5)),
        .awaiting(rank: 2, next: nil, .newSource), .awaiting(rank: 2, next: nil, .layer(5)),
        .awaiting(rank: 2, next: nil, .layer(12)), .awaiting(rank: 2, next: nil, .layer(nil)),
        .awaiting(rank: 2, next: nil, .layer(5)), .awaiting(rank: 2, next: nil, .layer(5)),
        .awaiting(rank: 2, next: nil, .layer(5)), .awaiting(rank: 2, next: nil, .layer(5)),
      ])
    var state = SlotState.running(rank: 0)
    state.show(rank: 1, difference: .max)
    state.show(rank: 2, difference: 3)
    #expect(state == .awaiting(rank: 2, next: nil, .layer(2)))
    state.show(rank: 1, difference: nil)
    #expect(state == .awaiting(rank: 1, next: nil, .layer(nil)))
  }

  @Test func onlyRunningAndSwitchingSlotsSend() {
    #expect(Self.states.filter(\.isRunning) == Array(Self.states.suffix(3)))
    #expect(
      Self.states.filter(\.isSteppingDown) == [.awaiting(rank: 1, next: 0, .resumed), .switching(rank: 1, next: 0)])
  }
}
