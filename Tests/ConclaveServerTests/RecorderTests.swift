import CallMessages
import Contract
import Foundation
import GRDB
import Logging
import MediaModel
import StoreWriting
import Testing

@testable import ConclaveServer
@testable import Persistence

private let alice = UserID(unchecked: "alice")
private let call = CallID(unchecked: "c1")
private let time = Timestamp(milliseconds: 1_790_000_000_000)

private func second(_ n: Int) -> Instant { Instant(nanoseconds: 1_000_000_000 * UInt64(n)) }

/// A recorder and its database, whose disk can be made full.
private final class Rig {
  let folder = FileManager.default.temporaryDirectory.path + "/recorder-\(UUID().uuidString)"
  let store: SQLiteStore
  let health = StoreHealth()
  var recorder: Recorder

  init(maximumBacklog: Int = 100) throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    store = try SQLiteStore(path: folder + "/conclave.sqlite")
    recorder = Recorder(
      place: store.place, logger: Logger(label: "test"), health: health, maximumBacklog: maximumBacklog)
  }

  deinit { try? FileManager.default.removeItem(atPath: folder) }

  /// SQLite itself reports that the disk is full.
  func makeFull(_ isFull: Bool) throws {
    try store.writer.writeWithoutTransaction { try $0.execute(sql: "PRAGMA max_page_count = \(isFull ? 1 : 1 << 20)") }
  }

  /// More than fits into the existing pages.
  var large: [StoreChange] {
    let device = Device(user: alice, device: DeviceID(unchecked: "phone"))
    let calls = (0..<2_000).map { CallID(unchecked: "\($0)") }
    return [.mailbox(device, StoredMailbox(envelopes: [], rung: calls))]
  }

  /// Takes changes and writes all that may be written, like `ControlPlane`, without a separate thread.
  func write(_ changes: [StoreChange], now: Instant) {
    recorder.record(changes)
    flush(now: now)
  }

  func flush(now: Instant) {
    while let changes = recorder.next(now: now) { recorder.finish(failure(of: changes), now: now) }
  }

  private func failure(of changes: [StoreChange]) -> StoreError? {
    do {
      try store.write(changes)
      return nil
    } catch {
      return error
    }
  }

  /// The disk is full, and the recorder has noticed it.
  func fail(at now: Instant) throws {
    try makeFull(true)
    write(large, now: now)
    #expect(health.statistics.failure?.contains("the disk is full") == true)
  }

  /// Rewrites in the same way. Returns the changes that should be written.
  func rewrite(at now: Instant, _ everything: [StoreChange] = [.reset]) -> [StoreChange]? {
    guard let changes = recorder.rewrite(now: now, everything: { everything }) else { return nil }
    recorder.finish(failure(of: changes), now: now)
    flush(now: now)
    return changes
  }

  func outcomes() throws -> [HistoryEntry.Outcome] {
    try store.list(of: alice, before: time + .seconds(99), limit: 9, rejoinable: [], now: time).calls.map(\.outcome)
  }
}

private func part(_ outcome: HistoryEntry.Outcome?) -> StoreChange {
  .history(.part(call, alice, name: nil, .outgoing, outcome))
}
private let began = StoreChange.history(.call(call, .audio, startedAt: time))

struct RecorderTests {
  @Test func theTimeOfATransactionIsMeasured() throws {
    let rig = try Rig()
    rig.recorder.record([.running(time)])
    let first = rig.recorder.next(now: second(1))
    rig.recorder.finish(nil, now: second(1).advanced(by: .milliseconds(30)))
    rig.recorder.record([.running(time)])
    let other = rig.recorder.next(now: second(2))
    #expect(first?.count == 1 && other?.count == 1)
    rig.recorder.finish(StoreError(.busy, "locked"), now: second(9))
    let waits = rig.health.statistics.waits
    #expect(waits.counts.reduce(0, +) == 1, "one that failed is counted elsewhere")
    #expect(abs(waits.sum - 0.03) < 1e-9)
  }

  @Test func changesDuringATransactionAreTheNextOne() throws {
    let rig = try Rig()
    rig.recorder.record([began])
    #expect(rig.recorder.next(now: second(0)) == [began] && rig.recorder.isWriting)
    rig.recorder.record([part(nil)])
    rig.recorder.record([part(.missed)])
    #expect(rig.recorder.next(now: second(0)) == nil, "one at a time")
    #expect(rig.recorder.settled == 0 && rig.recorder.recorded == 3)
    rig.recorder.finish(nil, now: second(0))
    #expect(rig.recorder.settled == 1, "the others are not on the disk")
    #expect(rig.recorder.next(now: second(0)) == [part(nil), part(.missed)], "both, as one")
    rig.recorder.finish(nil, now: second(0))
    #expect(rig.recorder.settled == 3 && !rig.recorder.isWriting)
    #expect(rig.recorder.next(now: second(0)) == nil)
  }

  @Test func aFailureHoldsUpNothingThatWaits() throws {
    let rig = try Rig()
    for change in [began, part(nil), part(.missed)] { rig.recorder.record([change]) }
    _ = rig.recorder.next(now: second(0))
    rig.recorder.record([.reset])
    rig.recorder.finish(StoreError(.full, "full"), now: second(1))
    #expect(rig.recorder.settled == 4)
    rig.recorder.record([.reset])
    #expect(rig.recorder.settled == 5 && rig.recorder.next(now: second(2)) == nil)
    #expect(rig.recorder.rewrite(now: second(4)) { [.reset] } == [began, part(nil), part(.missed), .reset])
    rig.recorder.record([.reset])
    #expect(rig.recorder.settled == 6, "a rewrite delays nobody either")
  }

  @Test func aDiskThatDoesNotAnswerIsAFailure() throws {
    let rig = try Rig()
    rig.recorder.record([began])
    _ = rig.recorder.next(now: second(0))
    rig.recorder.record([part(.missed)])
    rig.recorder.checkPatience(now: second(4))
    #expect(rig.recorder.settled == 0 && rig.health.statistics.failure == nil)
    rig.recorder.checkPatience(now: second(5))
    #expect(rig.recorder.settled == 2 && rig.health.statistics.failure?.contains("has not answered") == true)
    #expect(rig.recorder.rewrite(now: second(60)) { [.reset] } == nil, "the transaction is under way still")
    rig.recorder.finish(nil, now: second(61))
    #expect(rig.health.statistics.failure != nil, "later changes are not on the disk")
    #expect(rig.recorder.rewrite(now: second(61)) { [.reset] } == [began, part(.missed), .reset])
    rig.recorder.finish(nil, now: second(62))
    #expect(rig.health.statistics.failure == nil && rig.health.statistics.lost == 0)
  }

  @Test func asManyChangesWaitAsMay() throws {
    let rig = try Rig(maximumBacklog: 3)
    rig.recorder.record([began])
    _ = rig.recorder.next(now: second(0))
    rig.recorder.record([.reset, .reset])
    #expect(!rig.recorder.isFull)
    rig.recorder.record([.reset])
    #expect(rig.recorder.isFull)
    rig.recorder.finish(nil, now: second(0))
    _ = rig.recorder.next(now: second(0))
    #expect(!rig.recorder.isFull)
  }

  @Test func aHealthyDiskHasChangesAtOnce() throws {
    let rig = try Rig()
    rig.write([began, part(.answered)], now: second(0))
    #expect(try rig.outcomes() == [.answered])
    #expect(rig.health.statistics.transactions == 1 && rig.health.statistics.failure == nil)
    #expect(rig.rewrite(at: second(60)) == nil, "there is nothing to repair")
  }

  @Test func aFullDiskIsNotTriedAgainForAWhile() throws {
    let rig = try Rig()
    try rig.fail(at: second(0))
    try rig.makeFull(false)
    rig.write([began, part(.answered)], now: second(1))
    #expect(try rig.outcomes().isEmpty)
    #expect(rig.rewrite(at: second(2)) == nil)
    #expect(rig.health.statistics.failures == 1, "one try for two changes")
    #expect(rig.rewrite(at: second(3)) != nil)
    #expect(try rig.outcomes() == [.answered], "nothing is missing")
    #expect(rig.health.statistics.failure == nil)
    rig.write([part(.declined)], now: second(4))
    #expect(try rig.outcomes() == [.declined], "it is healthy again")
  }

  @Test func aDiskThatStaysFullKeepsEverythingForTheNextTry() throws {
    let rig = try Rig()
    try rig.fail(at: second(0))
    rig.write([began, part(.answered)], now: second(1))
    #expect(rig.rewrite(at: second(3), rig.large) == [began, part(.answered)] + rig.large)
    #expect(rig.health.statistics.failures == 2 && rig.health.statistics.failure != nil)
    #expect(rig.rewrite(at: second(5)) == nil)
    try rig.makeFull(false)
    #expect(rig.rewrite(at: second(6)) == [began, part(.answered), .reset])
    #expect(try rig.outcomes() == [.answered])
  }

  @Test func changesDuringARewriteAreWrittenBehindIt() throws {
    let rig = try Rig()
    try rig.fail(at: second(0))
    try rig.makeFull(false)
    let device = Device(user: alice, device: DeviceID(unchecked: "phone"))
    let mailbox = StoredMailbox(envelopes: [], rung: [call])
    let changes = try #require(rig.recorder.rewrite(now: second(3)) { [.reset, .mailbox(device, mailbox)] })
    // The rewrite is running: nobody waits for it, and it does not include these.
    rig.write([.mailbox(device, StoredMailbox(envelopes: [], rung: []))], now: second(3))
    rig.write([began, part(.missed)], now: second(4))
    #expect(rig.recorder.rewrite(now: second(9)) { [] } == nil, "one at a time")
    #expect(rig.health.statistics.failure != nil)
    try rig.store.write(changes)
    rig.recorder.finish(nil, now: second(9))
    #expect(rig.health.statistics.failure != nil, "clients know of changes that a kill would lose")
    rig.flush(now: second(9))
    #expect(try rig.store.load(now: time).mailboxes.isEmpty)
    #expect(try rig.outcomes() == [.missed])
    #expect(rig.health.statistics.failure == nil && rig.health.statistics.lost == 0)
  }

  @Test func factsOfAFailedRewriteAreKept() throws {
    let rig = try Rig()
    try rig.fail(at: second(0))
    rig.write([began], now: second(1))
    _ = try #require(rig.recorder.rewrite(now: second(3)) { [.reset] })
    rig.write([part(.missed), .reset], now: second(4))
    rig.recorder.finish(StoreError(.full, "full"), now: second(5))
    #expect(rig.recorder.rewrite(now: second(7)) { [] } == nil, "the pause counts from the failure")
    #expect(rig.recorder.rewrite(now: second(8)) { [.reset] } == [began, part(.missed), .reset])
  }

  @Test func tooMuchDuringARewriteIsAnotherRewrite() throws {
    let rig = try Rig(maximumBacklog: 3)
    try rig.fail(at: second(0))
    try rig.makeFull(false)
    _ = try #require(rig.recorder.rewrite(now: second(3)) { [.reset] })
    rig.write([.reset, .reset, began], now: second(3))
    rig.write([.reset, part(.missed)], now: second(3))
    rig.write([.reset], now: second(3))
    rig.recorder.finish(nil, now: second(4))
    #expect(rig.health.statistics.failure != nil)
    #expect(rig.rewrite(at: second(4)) == [began, part(.missed), .reset])
    #expect(rig.health.statistics.failure == nil && rig.health.statistics.lost == 0)
    #expect(try rig.outcomes() == [.missed])
  }

  @Test func changesWithoutRoomAreCounted() throws {
    let rig = try Rig(maximumBacklog: 2)
    try rig.fail(at: second(0))
    rig.write([began, part(nil), part(.missed)], now: second(1))
    rig.write([part(.answered)], now: second(1))
    #expect(rig.health.statistics.lost == 2)
    #expect(rig.recorder.rewrite(now: second(3)) { [] } == [began, part(nil)], "the first are kept, in order")
  }
}
