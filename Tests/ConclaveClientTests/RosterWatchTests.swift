import Contract
import MediaModel
import Testing

@testable import ConclaveClient

/// The list of the epoch in use, compared with the call's members: in virtual time, over an unreliable network.
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

  @Test mutating func aStrangerIsShownAtOnceAndStopsAfterASecondLook() throws {
    let (own, ghost) = (entry("alice", 1), entry("bob", 2))
    try begin([own, ghost], members: [member(own)])
    #expect(watch.standing(of: 2, now: now) == .stranger)
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
    // All ends at once when the cause is gone.
    watch.see(member(ghost), now: now)
    #expect(watch.stopping(.stranger, now: now).isEmpty && watch.suspects.isEmpty)
    #expect(watch.nextTimeout == nil)
  }

  @Test mutating func timeCountsOnlyWhileTheServerIsHeard() throws {
    let (own, ghost) = (entry("alice", 1), entry("bob", 2))
    try begin([own, ghost], members: [member(own)])
    wait(.seconds(4))
    watch.signaling(false, now: now)
    wait(.seconds(3_600))
    let asked2 = asks()
    #expect(!asked2 && watch.nextTimeout == nil)
    watch.signaling(true, now: now)
    wait(.seconds(4))
    let asked3 = asks()
    #expect(!asked3, "it begins anew")
    wait(.seconds(1))
    let asked4 = asks()
    #expect(asked4)
    // The answer that was under way does not come any more: asked again.
    watch.signaling(false, now: now)
    watch.signaling(true, now: now)
    answer()
    #expect(watch.stopping(.stranger, now: now).isEmpty)
  }

  @Test mutating func aDepartedMemberHas15Seconds() throws {
    let (own, bob) = (entry("alice", 1), entry("bob", 2))
    try begin([own, bob], members: [member(own), member(bob)])
    watch.see(member(bob, .left, isThere: false), now: now)
    #expect(watch.standing(of: 2, now: now) == nil)
    wait(.seconds(3))
    #expect(watch.standing(of: 2, now: now) == .departed)
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

  /// Rejoined: the former stay is listed until the next epoch, for as long as leaders take.
  @Test mutating func aFormerStayCountsAsLeft() throws {
    let (own, bob) = (entry("alice", 1), entry("bob", 2))
    try begin([own, bob], members: [member(own), member(bob)])
    watch.see(member(entry("bob", 3)), now: now)
    wait(.seconds(14))
    #expect(watch.stopping(.stranger, now: now).isEmpty && watch.stopping(.departed, now: now).isEmpty)
    #expect(watch.standing(of: 2, now: now) == .departed)
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
    wait(.seconds(20))
    _ = watch.takeQuestion(now: now)
    answer()
    #expect(watch.isHeld)
    watch.see(member(ghost), now: now)
    #expect(watch.isHeld, "it flaps")
    watch.accept()
    #expect(!watch.isHeld)
  }

  @Test mutating func anAcceptedDeviceDoesNotStopTheSendingAgain() throws {
    let (own, ghost) = (entry("alice", 1), entry("bob", 2))
    try begin([own, ghost], members: [member(own)])
    wait(.seconds(5))
    _ = watch.takeQuestion(now: now)
    answer()
    watch.accept()
    #expect(watch.stopping(.stranger, now: now).isEmpty)
    wait(.seconds(600))
    let asked7 = asks()
    #expect(!asked7)
    // Another device is another matter.
    watch.use(try EpochList([own, ghost, entry("carol", 5)], epoch: 3), now: now)
    wait(.seconds(5))
    let asked8 = asks()
    #expect(asked8)
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
    timer.joined(1, now: now)
    #expect(timer.due == nil)
    timer.joined(2, now: now)
    #expect(timer.due == now.advanced(by: .seconds(10)))
    timer.signaling(false, now: now.advanced(by: .seconds(4)))
    #expect(timer.due == now.advanced(by: .seconds(60)))
    timer.signaling(true, now: now.advanced(by: .seconds(20)))
    #expect(timer.due == now.advanced(by: .seconds(26)))
    #expect(timer.isOver(now: now.advanced(by: .seconds(26))))
  }
}
