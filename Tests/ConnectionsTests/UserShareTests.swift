import Listening
import MediaModel
import Testing

@testable import Connections

/// The allowance that one user's connections share.
struct UserShareTests {
  private static let second: UInt64 = 1_000_000_000
  private let alice = UserID(unchecked: "alice")
  private let bob = UserID(unchecked: "bob")

  private func shares(connections: Int = 3) -> UserShares {
    UserShares(
      limits: UserShare.Limits(
        connections: connections, subscriptions: 2, requestsPerSecond: 10, requestBurst: 100, inboundBytes: 1 << 20,
        eventBytesPerSecond: 1 << 10, eventBurst: 1 << 20))
  }

  private func refusal(_ result: Result<UserShare, UserShareFull>) -> SignalingStatistics.Drop? {
    if case .failure(let full) = result { full.reason } else { nil }
  }

  @Test func connectionsOfOneUserAreBoundedAndThoseOfOthersAreNot() throws {
    let shares = shares()
    let first = try shares.connect(alice, now: 0).get()
    for _ in 0..<2 { _ = try shares.connect(alice, now: 0).get() }
    #expect(refusal(shares.connect(alice, now: 0)) == .userConnectionsFull)
    #expect(refusal(shares.connect(bob, now: 0)) == nil)
    first.disconnect(subscriptions: 0, inboundBytes: 0)
    #expect(refusal(shares.connect(alice, now: 0)) == nil)
  }

  @Test func newLimitsCountForUsersThatAreConnected() throws {
    let shares = shares()
    let share = try shares.connect(alice, now: 0).get()
    var limits = UserShare.Limits(
      connections: 1, subscriptions: 1, requestsPerSecond: 1, requestBurst: 8, inboundBytes: 10,
      eventBytesPerSecond: 1 << 10, eventBurst: 1 << 20)
    shares.setLimits(limits)
    #expect(refusal(shares.connect(alice, now: 0)) == .userConnectionsFull)
    #expect(share.subscribe() && !share.subscribe() && !share.hold(11))
    for _ in 0..<8 { #expect(share.take(1, now: 0) == nil) }
    #expect(share.take(1, now: 0) != nil)
    // The same limits again give nobody a new burst.
    shares.setLimits(limits)
    #expect(share.take(1, now: 0) != nil)
    limits.connections = 2
    shares.setLimits(limits)
    #expect(share.take(1, now: 0) == nil)
    #expect(refusal(shares.connect(bob, now: 0)) == nil, "a user that comes has them, too")
  }

  @Test func connectingAnewRestoresNothing() throws {
    let shares = shares()
    let share = try shares.connect(alice, now: 0).get()
    #expect(share.take(95, now: 0) == nil && share.take(1, now: 0) != nil)
    share.disconnect(subscriptions: 0, inboundBytes: 0)
    shares.prune(now: 0)
    #expect(refusal(shares.connect(alice, now: 0)) == .userLoginsFull)
    shares.prune(now: 11 * Self.second)
    let again = try shares.connect(alice, now: 11 * Self.second).get()
    #expect(again !== share && again.take(95, now: 11 * Self.second) == nil, "full again, it was forgotten")
  }

  @Test func subscriptionsOfAllConnectionsCountTogether() throws {
    let shares = shares()
    let share = try shares.connect(alice, now: 0).get()
    #expect(try shares.connect(alice, now: 0).get() === share)
    #expect(share.subscribe() && share.subscribe() && !share.subscribe())
    share.unsubscribe()
    #expect(share.subscribe() && !share.subscribe())
    share.disconnect(subscriptions: 2, inboundBytes: 0)
    #expect(share.subscribe())
  }

  @Test func workIsChargedOnCredit() throws {
    let share = try shares().connect(alice, now: 0).get()
    share.owe(1_000, now: 0)
    #expect(share.take(1, now: Self.second) != nil)
    #expect(share.take(1, now: 30 * Self.second) == nil, "a debt ends")
  }

  /// Rings with long lists: a few bytes from one user, megabytes to many.
  @Test func eventsOfARequestArePaidForBeforeTheNext() throws {
    let shares = shares()
    let share = try shares.connect(alice, now: 0).get()
    share.charge(EventCharge(count: 3, bytes: 1 << 20), now: 0)
    #expect(share.debt(now: 0) == nil, "the burst is for that")
    share.charge(EventCharge(count: 3, bytes: 40 << 10), now: 0)
    let wait = try #require(share.debt(now: 0))
    #expect(wait > 39 * Self.second && wait < 41 * Self.second)
    #expect(share.debt(now: 30 * Self.second) != nil, "looking at it changes nothing")
    #expect(refusal(shares.connect(alice, now: 30 * Self.second)) == .userLoginsFull, "a new connection does not help")
    #expect(refusal(shares.connect(bob, now: 0)) == nil, "nobody else pays")
    #expect(share.debt(now: 41 * Self.second) == nil)
    share.charge(EventCharge(count: 1, bytes: .max), now: 41 * Self.second)
    #expect(share.debt(now: 100 * Self.second) != nil)
    #expect(share.debt(now: 200 * Self.second) == nil, "the longest debt ends")
  }

  @Test func sixteenEventsAreAUnit() throws {
    let share = try shares().connect(alice, now: 0).get()
    #expect(share.take(45, now: 0) == nil)
    share.charge(EventCharge(count: 16 * 50, bytes: 1), now: 0)
    #expect(share.take(1, now: 0) != nil)
    #expect(share.take(1, now: Self.second) == nil)
  }

  @Test func anAppsOwnMessagesSlowTheirSenderDownByWhatSubscribersGet() throws {
    let share = try shares().connect(alice, now: 0).get()
    #expect(share.fanOut(2 * UserShare.messageBytesPerSecond, now: 0) == nil)
    #expect(share.fanOut(UserShare.messageBytesPerSecond, now: 0) != nil)
    #expect(share.fanOut(1, now: 3 * Self.second) == nil)
  }

  @Test func aRequestThatCostsTheWholeBurstPassesAfterItsFrameWasPaidForAndOwes() throws {
    let share = try shares().connect(alice, now: 0).get()
    let later = 10 * Self.second
    #expect(share.take(4, now: later) == nil && share.take(100, now: later) == nil)
    #expect(share.take(1, now: later) != nil, "nothing is left")
    #expect(share.take(100, now: later + Self.second) != nil, "a second one is not given on credit")
    #expect(share.take(1, now: later + Self.second) == nil)
  }

  @Test func aFewRefusalsArePatientAndManyAreNot() throws {
    let share = try shares().connect(alice, now: 0).get()
    #expect((0..<UserShare.refusalsPerSecond).allSatisfy { _ in share.refuse(now: 0) == nil })
    #expect(share.refuse(now: 0) != nil)
  }
}
