import CallMessages
import Contract
import Testing

struct SimulatedWorldTests {
  #if DEBUG
    static let batches = 0..<1
  #else
    static let batches = 0..<8
  #endif
  /// Seeds that have failed once are kept.
  static let kept: [UInt64] = [9, 49, 77, 265, 362, 454, 566, 911, 1_304, 1_644, 1_666, 1_969, 2_257]
  /// The same, in worlds whose calls may be recorded.
  static let keptOfRecorded: [UInt64] = [766, 1_154]

  /// In a third of the worlds changes of members wait as in a large call.
  private static func crowd(_ seed: UInt64) -> Int { seed / 2 % 3 == 0 ? 2 + Int(seed / 6 % 2) : 64 }

  /// Each seed is a separate world; a failing one is printed with the steps that led to the failure.
  @Test(arguments: batches) func theRulesHoldWhateverHappens(batch: Int) {
    var counts: [EventName: Int] = [:]
    var causes: [MemberCause: Int] = [:]
    var looked = [Int](repeating: 0, count: Check.allCases.count)
    var (repeats, gaps, recorded) = (0, 0, 0)
    for seed in UInt64(batch * 250)..<UInt64((batch + 1) * 250) {
      let world = SimulatedWorld(
        seed: seed, isLate: seed % 2 == 1, crowd: Self.crowd(seed), isRecorded: seed % 3 != 0)
      if let failure = world.run(steps: 100) {
        Issue.record("seed \(seed): \(failure)")
        return
      }
      counts.merge(world.events.counts, uniquingKeysWith: +)
      causes.merge(world.members.causes, uniquingKeysWith: +)
      recorded += world.recordings.recorded
      repeats += world.mail.repeats
      gaps += world.mail.gaps
      for place in looked.indices { looked[place] += world.verdict.looked[place] }
    }
    // A world in which nothing happens proves nothing.
    let elsewhere: Set<EventName> = [
      .mediaSlots, .mediaNeed, .mediaWanted, .pushRing, .pushCancel, .pushMessage, .pushAlert, .report, .guestKnock,
      .guestKnockOver, .recordingShared, .recordingChanged, .recordingSeen, .recordingReached, .recordingRemoved,
      .linkChanged, .linkWaiting,
    ]
    let seldom = EventName.allCases.filter { counts[$0, default: 0] == 0 && !elsewhere.contains($0) }
    #expect(seldom.isEmpty)
    // This world has no guests, and only guests can be removed.
    #expect(MemberCause.allCases.filter { causes[$0, default: 0] == 0 } == [.removed])
    #expect(Check.allCases.filter { looked[$0.rawValue] == 0 }.isEmpty)
    #expect(recorded > 0)
    #expect(repeats > 0 && gaps > 0, "the network repeats and reorders")
  }

  /// With messages in flight between people and calls.
  @Test(arguments: [5, 159, 251, 275, 443, 501, 535, 583, 1_023, 1_449] as [UInt64])
  func keptSeedsHoldWithLateMessages(seed: UInt64) {
    let failure = SimulatedWorld(seed: seed, isLate: true).run(steps: 100)
    #expect(failure == nil, "seed \(seed)")
  }

  @Test(arguments: kept) func keptSeedsHold(seed: UInt64) {
    let failure = SimulatedWorld(seed: seed).run(steps: 100)
    #expect(failure == nil, "seed \(seed)")
  }

  @Test(arguments: keptOfRecorded) func keptSeedsHoldWhereCallsAreRecorded(seed: UInt64) {
    let failure = SimulatedWorld(seed: seed, crowd: Self.crowd(seed), isRecorded: true).run(steps: 100)
    #expect(failure == nil, "seed \(seed)")
  }

  /// A member leaves, and the call ends, while a change waits; and an ACK comes after its epoch was switched to.
  @Test(arguments: [865, 1_207] as [UInt64]) func keptSeedsHoldWhereChangesWait(seed: UInt64) {
    let failure = SimulatedWorld(seed: seed, isLate: true, crowd: Self.crowd(seed)).run(steps: 100)
    #expect(failure == nil, "seed \(seed)")
  }

  /// Each deliberately broken rule is caught by its invariant.
  @Test(arguments: Mutation.allCases) func aServerThatBreaksARuleIsCaught(mutation: Mutation) {
    for seed: UInt64 in 0..<240 {
      let world = SimulatedWorld(
        seed: seed, isLate: mutation.isOfMail, crowd: mutation.isOfWaiting ? 2 : 64,
        isRecorded: mutation.isOfRecording, mutation: mutation)
      guard let failure = world.run(steps: 100) else { continue }
      let check = world.verdict.failure?.check
      #expect(check.map(mutation.caughtBy.contains) == true, "seed \(seed): \(failure)")
      return
    }
    Issue.record("240 worlds did not notice that a server \(mutation)")
  }
}
