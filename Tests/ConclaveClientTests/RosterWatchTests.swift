import Contract
import MediaModel
import Testing

@testable import ConclaveClient

/// The current epoch's list, compared with the call's members, in virtual time and over an unreliable network.
struct RosterWatchTests {
  private var watch = RosterWatch()
  private var now = Instant(nanoseconds: 1_000_000_000)

  private func entry(_ user: String, _ number: UInt32, device: String = "phone") -> ListEntry {
    ListEntry(
      user: UserID(user)!, device: DeviceID(device)!, participant: number,
      joinId: Base64Bytes([UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 16)),
      joinKey: JoinKey(
        alg: "x", publicKey: Base64Bytes([UInt8(truncatingIfNeeded: number)]), at: Timestamp(milliseconds: 0),
        signature: Base64Bytes([])),
      fingerprint: Base64Bytes([UInt8](repeating: UInt8(truncatingIfNeeded: number), count: 32)))
  }

  private func member(_ entry: ListEntry, _ phase: MemberPhase = .joined, isThere: Bool = true) -> MemberState {
    MemberState(
      user: entry.user, name: nil, state: phase,
      participants: isThere
        ? [
          ParticipantState(
            participant: entry.participant, device: entry.device, joinId: entry.joinId!, connected: true, held: false,
            tracks: [])
        ] : [])
  }

  private mutating func begin(_ entries: [ListEntry], members: [MemberState]) throws {
    watch.own = 1
    watch.see(members, now: now)
    watch.use(try EpochList(entries, epoch: 2), now: now)
  }

  private mutating func wait(_ duration: Duration) {
    now = now.advanced(by: duration)
    watch.handleTimeout(now: now)
  }

  private mutating func answer() {
    watch.answered(now: now)
    watch.answered(now: now)
  }

  private mutating func asks() -> Bool { watch.takeQuestion(now: now) }

  private func kind(_ entry: ListEntry) -> RosterWatch.Kind? { watch.suspects[entry.address]?.kind }

  private func warns(_ entry: ListEntry) -> Bool {
    watch.suspects[entry.address].map { watch.warns(of: $0, now: now) } ?? false
  }

  /// The seconds until it stops for the ghost, with answers of an honest server; nil after the limit.
  private mutating func secondsToStop(_ limit: Int, _ each: (inout RosterWatchTests) throws -> Void) rethrows -> Int? {
    for second in 1...limit {
      try each(&self)
      wait(.seconds(1))
      _ = asks()
      if !watch.stopping(.stranger, now: now).isEmpty || !watch.stopping(.departed, now: now).isEmpty { return second }
    }
    return nil
  }

  @Test mutating func aStrangerIsShownAtOnceAndStopsAfterASecondLook() throws {
    let (own, ghost) = (entry("alice", 1), entry("bob", 2))
    try begin([own, ghost], members: [member(own)])
    #expect(kind(ghost) == .stranger && warns(ghost))
    wait(.milliseconds(4_999))
    let asked1 = asks()
    #expect(!asked1)
    wait(.milliseconds(1))
    let (first, second) = (asks(), asks())
    #expect(first && !second)
    #expect(watch.stopping(.stranger, now: now).isEmpty, "not before the answer")
    answer()
    #expect(watch.stopping(.stranger, now: now).map(\.participant) == [2])
    #expect(!watch.isHeld)
    // Everything ends at once when the cause is gone.
    watch.see(member(ghost), now: now)
    #expect(watch.stopping(.stranger, now: now).isEmpty && watch.suspects.isEmpty)
    #expect(watch.nextTimeout == nil)
  }

  /// A server may withhold a state after a reconnect, and remove the device from the list before the state arrives.
  @Test mutating func aDeviceThatNobodyLetInIsToldOfAfterItHasLeft() throws {
    let (own, ghost) = (entry("alice", 1), entry("bob", 2))
    var lettingIn = LettingIn(CallID(unchecked: "6d1f0d6c-0000-4000-8000-000000000000"), .started)
    lettingIn.start(as: own.user)
    var effects: [KeyEffect] = []
    func warned() -> Int {
      effects.count { if case .warn(let warning) = $0 { warning.problem == .uninvited } else { false } }
    }
    try begin([own], members: [member(own), member(ghost)])
    watch.signaling(false, now: now)
    watch.signaling(true, now: now)
    watch.use(try EpochList([own, ghost], epoch: 3), now: now)
    watch.see(uninvited: [ghost.address], isUndecided: false, now: now)
    wait(.seconds(4))
    watch.tell(lettingIn, now: now, into: &effects)
    watch.use(try EpochList([own], epoch: 4), now: now)
    watch.tell(lettingIn, now: now, into: &effects)
    #expect(warned() == 0)
    watch.see([member(own)], now: now)
    watch.tell(lettingIn, now: now, into: &effects)
    watch.tell(lettingIn, now: now, into: &effects)
    #expect(warned() == 1)
  }

  @Test mutating func timeCountsOnlyWhileTheServerIsHeardAndAddsUp() throws {
    let (own, ghost) = (entry("alice", 1), entry("bob", 2))
    try begin([own, ghost], members: [member(own)])
    wait(.seconds(4))
    watch.signaling(false, now: now)
    wait(.seconds(3_600))
    let asked2 = asks()
    #expect(!asked2 && watch.nextTimeout == nil)
    watch.signaling(true, now: now)
    wait(.milliseconds(999))
    let asked3 = asks()
    #expect(!asked3)
    wait(.milliseconds(1))
    let asked4 = asks()
    #expect(asked4)
    // The pending answer will not arrive any longer, so it asks again.
    watch.signaling(false, now: now)
    watch.signaling(true, now: now)
    answer()
    #expect(watch.stopping(.stranger, now: now).isEmpty)
    let asked5 = asks()
    #expect(asked5)
    answer()
    #expect(watch.stopping(.stranger, now: now).map(\.participant) == [2])
  }

  /// z18: a server that breaks the connection, or withholds the answers, again and again.
  @Test(arguments: [2, 4, 7]) mutating func noServerKeepsTheStopAwayByBreakingTheConnection(_ interval: Int) throws {
    let (own, ghost) = (entry("alice", 1), entry("bob", 2))
    try begin([own, ghost], members: [member(own)])
    var second = 0
    let stopped = secondsToStop(60) { test in
      second += 1
      guard second % interval == 0 else { return }
      test.watch.signaling(false, now: test.now)
      test.watch.signaling(true, now: test.now)
      test.watch.see([test.member(own)], now: test.now)
    }
    let seconds = try #require(stopped, "it never stops")
    #expect(seconds <= 11)
  }

  /// A device that comes back often, as on a bad network: each time its numbers differ for a moment, and in between it
  /// is in the call.
  @Test mutating func timeRunsBackWhileTheDeviceIsThere() throws {
    let (own, bob) = (entry("alice", 1), entry("bob", 2))
    try begin([own, bob], members: [member(own), member(bob)])
    for _ in 0..<40 {
      watch.see(member(bob, .left, isThere: false), now: now)
      wait(.seconds(2))
      #expect(kind(bob) == .departed && !warns(bob))
      watch.see(member(bob), now: now)
      wait(.seconds(2))
    }
    // Without being listed, it is remembered for a minute.
    watch.see(member(bob, .left, isThere: false), now: now)
    wait(.seconds(8))
    watch.use(try EpochList([own], epoch: 3), now: now)
    wait(.seconds(59))
    watch.use(try EpochList([own, bob], epoch: 4), now: now)
    #expect(warns(bob))
    watch.use(try EpochList([own], epoch: 5), now: now)
    wait(.seconds(60))
    watch.use(try EpochList([own, bob], epoch: 6), now: now)
    #expect(!warns(bob))
  }

  @Test mutating func aQuestionThatIsNotAnsweredCountsAsAnsweredAfter5Seconds() throws {
    let (own, ghost) = (entry("alice", 1), entry("bob", 2))
    try begin([own, ghost], members: [member(own)])
    wait(.seconds(5))
    let asked = asks()
    #expect(asked && watch.nextTimeout == now.advanced(by: .seconds(5)))
    wait(.milliseconds(4_999))
    #expect(watch.stopping(.stranger, now: now).isEmpty)
    wait(.milliseconds(1))
    #expect(watch.stopping(.stranger, now: now).map(\.participant) == [2])
  }

  /// After a reconnect the state may explain a listed device: until then it is shown without a warning.
  @Test mutating func aWarningWaitsForTheStateAndNotForEver() throws {
    let (own, ghost) = (entry("alice", 1), entry("bob", 2))
    try begin([own], members: [member(own)])
    watch.signaling(false, now: now)
    watch.signaling(true, now: now)
    watch.use(try EpochList([own, ghost], epoch: 3), now: now)
    #expect(kind(ghost) == .stranger && !warns(ghost))
    wait(.milliseconds(4_999))
    #expect(!warns(ghost))
    wait(.milliseconds(1))
    #expect(warns(ghost))
    watch.signaling(false, now: now)
    watch.signaling(true, now: now)
    #expect(warns(ghost), "the state has been missing for 5 s")
    watch.see([member(own), member(ghost)], now: now)
    #expect(kind(ghost) == nil)
  }

  @Test mutating func aDepartedMemberIsShownAtOnceAndHas15Seconds() throws {
    let (own, bob) = (entry("alice", 1), entry("bob", 2))
    try begin([own, bob], members: [member(own), member(bob)])
    #expect(kind(bob) == nil)
    watch.see(member(bob, .left, isThere: false), now: now)
    #expect(kind(bob) == .departed && !warns(bob))
    wait(.seconds(3))
    #expect(warns(bob))
    let asked5 = asks()
    #expect(!asked5)
    wait(.seconds(7))
    let asked6 = asks()
    #expect(asked6)
    answer()
    #expect(watch.stopping(.departed, now: now).isEmpty)
    wait(.milliseconds(4_999))
    #expect(watch.stopping(.departed, now: now).isEmpty)
    wait(.milliseconds(1))
    #expect(watch.stopping(.departed, now: now).map(\.participant) == [2])
    watch.use(try EpochList([own], epoch: 3), now: now)
    #expect(watch.stopping(.departed, now: now).isEmpty)
  }

  /// z3: every 2.5 s, a device has "left" under one number and is listed under the next.
  @Test mutating func aDepartedDeviceDoesNotHearOnUnderNewNumbers() throws {
    let own = entry("alice", 1)
    var number: UInt32 = 2
    let key = entry("zed", 2).fingerprint
    func zed(_ number: UInt32) -> ListEntry {
      var entry = RosterWatchTests().entry("zed", number)
      entry.fingerprint = key
      return entry
    }
    try begin([own, zed(number)], members: [member(own), member(zed(number))])
    var seconds = 0.0
    while watch.stopping(.departed, now: now).isEmpty, seconds < 150 {
      number += 1
      watch.see(member(zed(number)), now: now)
      watch.see([member(own), member(zed(number), .left, isThere: false)], now: now)
      watch.use(try EpochList([own, zed(number)], epoch: number), now: now)
      #expect(kind(zed(number)) == .departed)
      wait(.milliseconds(2_500))
      seconds += 2.5
      if asks() { answer() }
    }
    #expect(seconds <= 15, "it hears for \(seconds) s")
  }

  /// z3 b: a device that is said to have left from the start, and is never in the call as it is listed.
  @Test mutating func aDeviceThatWasNeverThereIsAStrangerWhateverTheStateSays() throws {
    let (own, zed) = (entry("alice", 1), entry("zed", 2))
    try begin([own, zed], members: [member(own), member(zed, .left, isThere: false)])
    #expect(kind(zed) == .stranger && warns(zed))
    // With another number or join it is not the listed device.
    watch.see(member(entry("zed", 3)), now: now)
    #expect(kind(zed) == .stranger)
  }

  /// The server drops the participant again and again: the next stay continues the count.
  @Test mutating func theNextStayRemembersWhatTheFormerOneSuspected() throws {
    let (own, ghost) = (entry("alice", 1), entry("bob", 2))
    try begin([own, ghost], members: [member(own)])
    var number: UInt32 = 10
    var second = 0
    let stopped = try secondsToStop(60) { test in
      second += 1
      guard second % 3 == 0 else { return }
      number += 1
      let former = test.watch
      let back = test.entry("alice", number)
      test.watch = RosterWatch()
      test.watch.remember(former, now: test.now)
      test.watch.own = number
      test.watch.see([test.member(back)], now: test.now)
      test.watch.use(try EpochList([back, ghost], epoch: number), now: test.now)
    }
    #expect(try #require(stopped) <= 12)
  }

  /// After a rejoin the former stay is listed until the next epoch, for as long as leaders take.
  @Test mutating func aFormerStayCountsAsLeft() throws {
    let (own, bob) = (entry("alice", 1), entry("bob", 2))
    try begin([own, bob], members: [member(own), member(bob)])
    watch.see(member(entry("bob", 3)), now: now)
    wait(.seconds(14))
    #expect(watch.stopping(.stranger, now: now).isEmpty && watch.stopping(.departed, now: now).isEmpty)
    #expect(kind(bob) == .departed && warns(bob))
  }

  @Test mutating func aSecondStopWithinAMinuteWaitsForThePerson() throws {
    let (own, ghost) = (entry("alice", 1), entry("bob", 2))
    try begin([own, ghost], members: [member(own)])
    wait(.seconds(5))
    _ = watch.takeQuestion(now: now)
    answer()
    watch.see(member(ghost), now: now)
    wait(.seconds(30))
    watch.see(member(ghost, .left, isThere: false), now: now)
    watch.see([member(own)], now: now)
    wait(.seconds(15))
    _ = watch.takeQuestion(now: now)
    answer()
    #expect(watch.isHeld)
    watch.see(member(ghost), now: now)
    #expect(watch.isHeld, "it flaps")
    watch.accept([], now: now)
    #expect(!watch.isHeld)
  }

  @Test mutating func anAcceptedDeviceDoesNotStopTheSendingAgain() throws {
    let (own, ghost) = (entry("alice", 1), entry("bob", 2))
    try begin([own, ghost], members: [member(own)])
    wait(.seconds(5))
    _ = watch.takeQuestion(now: now)
    answer()
    watch.accept([RosterWatch.Shown(ghost)], now: now)
    #expect(watch.stopping(.stranger, now: now).isEmpty)
    wait(.seconds(600))
    let asked7 = asks()
    #expect(!asked7)
    // Another device counts separately.
    watch.use(try EpochList([own, ghost, entry("carol", 5)], epoch: 3), now: now)
    wait(.seconds(5))
    let asked8 = asks()
    #expect(asked8)
  }

  /// z9: the person sends in spite of the named device. Another one, or the same with another key or join, stops the
  /// sending again.
  @Test mutating func sendingAnywayIsAboutTheOnesThatWereNamed() throws {
    let (own, carol, ghost) = (entry("alice", 1), entry("carol", 2), entry("zed", 3))
    try begin([own, carol], members: [member(own)])
    wait(.seconds(5))
    if asks() { answer() }
    let shown = watch.stopping(.stranger, now: now)
    #expect(shown.map(\.participant) == [2])
    watch.use(try EpochList([own, carol, ghost], epoch: 3), now: now)
    watch.accept(shown.map(RosterWatch.Shown.init), now: now)
    #expect(watch.stopping(.stranger, now: now).isEmpty)
    wait(.seconds(6))
    if asks() { answer() }
    #expect(watch.stopping(.stranger, now: now).map(\.participant) == [3], "the person was never asked about this one")
    var other = carol
    other.fingerprint.bytes[0] ^= 1
    watch.use(try EpochList([own, other, ghost], epoch: 4), now: now)
    wait(.seconds(1))
    if asks() { answer() }
    #expect(watch.stopping(.stranger, now: now).map(\.participant) == [2, 3])
  }

  @Test mutating func aThousandMembersCostNoSquare() throws {
    let all = (1...1_000).map { (number: Int) -> ListEntry in
      var entry = entry("u\(10_000 + number)", UInt32(number))
      let low = UInt8(truncatingIfNeeded: number)
      let high = UInt8(truncatingIfNeeded: number >> 8)
      let digits: [UInt8] = [1, low, high]
      entry.joinId = Base64Bytes(digits + [UInt8](repeating: 0, count: 13))
      entry.fingerprint = Base64Bytes(digits + [UInt8](repeating: 0, count: 29))
      return entry
    }
    try begin(all, members: all.map { member($0) })
    #expect(watch.suspects.isEmpty)
    for entry in all { watch.see(member(entry, .left, isThere: false), now: now) }
    #expect(watch.suspects.count == 999)
  }

  // MARK: the first epoch

  @Test func theFirstEpochIsShort() {
    let now = Instant(nanoseconds: 1_000_000_000)
    var timer = SecuringTimer()
    #expect(timer.due == nil)
    timer.begin(now: now)
    timer.begin(now: now.advanced(by: .seconds(3)))
    #expect(timer.due == now.advanced(by: .seconds(10)))
    timer.signaling(false, now: now.advanced(by: .seconds(4)))
    #expect(timer.due == now.advanced(by: .seconds(60)))
    timer.signaling(true, now: now.advanced(by: .seconds(20)))
    #expect(timer.due == now.advanced(by: .seconds(26)))
    #expect(timer.isOver(now: now.advanced(by: .seconds(26))))
  }
}
