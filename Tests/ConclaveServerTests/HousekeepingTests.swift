import CallMessages
import Contract
import Foundation
import GRDB
import Logging
import MediaModel
import Listening
import StoreWriting
import Testing

@testable import ConclaveServer
@testable import Persistence

private let alice = UserID(unchecked: "alice")

/// The database's periodic work, with each second's step called by the test.
@Suite(.timeLimit(.minutes(5))) struct HousekeepingTests {
  private let folder = FileManager.default.temporaryDirectory.path + "/housekeeping-\(UUID().uuidString)"
  private let store: SQLiteStore
  private let health = StoreHealth()
  private let clock = WallClock()
  private let housekeeping: Housekeeping

  init() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    store = try SQLiteStore(path: folder + "/conclave.sqlite")
    housekeeping = Housekeeping(
      store: store, health: health, clock: clock, historyDays: 30, log: LimitedLog(Logger(label: "test")))
  }

  private func second(_ n: Int) -> Instant { Instant(nanoseconds: 1_000_000_000 * UInt64(n)) }

  private func forgotten(at second: Int) -> [UserID] {
    var users: [UserID] = []
    housekeeping.step(now: self.second(second)) { users.append($0) }
    return users
  }

  /// A call that ended `days` days ago.
  private func old(_ id: String, days: Int) -> [StoreChange] {
    let call = CallID(unchecked: id)
    let then = clock.now() - .seconds(86_400 * days)
    return [.history(.call(call, .audio, startedAt: then)), .history(.ended(call, at: then))]
  }

  private func history() throws -> [String] {
    try store.reader.read { try String.fetchAll($0, sql: "SELECT call FROM history ORDER BY call") }
  }

  @Test func usersWhomAnotherProcessForgotAreTold() throws {
    #expect(forgotten(at: 1).isEmpty)
    try SQLiteStore(path: store.path).forget(alice)
    #expect(forgotten(at: 2) == [alice])
    #expect(forgotten(at: 3).isEmpty, "the command that follows from it settles it")
    try FileManager.default.removeItem(atPath: folder)
  }

  @Test func expiredRecordsAreSweptAnHourAfterTheLastTime() throws {
    try store.write(old("c1", days: 31) + old("c2", days: 1))
    _ = forgotten(at: 1)
    #expect(try history() == ["c2"])
    try store.write(old("c3", days: 31))
    _ = forgotten(at: 3_600)
    #expect(try history() == ["c2", "c3"])
    _ = forgotten(at: 3_601)
    #expect(try history() == ["c2"])
    try FileManager.default.removeItem(atPath: folder)
  }

  @Test func aDiskThatFailsIsLeftAlone() throws {
    try store.write(old("c1", days: 31))
    health.failed("full")
    _ = forgotten(at: 1)
    #expect(try history() == ["c1"])
    health.succeeded()
    _ = forgotten(at: 2)
    #expect(try history().isEmpty)
    try FileManager.default.removeItem(atPath: folder)
  }

  /// The loop that requests it has connections to serve.
  @Test func itsCallerDoesNotWaitForTheDisk() async throws {
    try SQLiteStore(path: store.path).forget(alice)
    let (users, told) = AsyncStream.makeStream(of: UserID.self)
    let held = DispatchSemaphore(value: 0)
    store.writer.asyncWriteWithoutTransaction { _ in held.wait() }
    for n in 1...3 { housekeeping.begin(now: second(n)) { told.yield($0) } }
    // Up to here nobody has waited; only now the disk continues.
    held.signal()
    for await user in users {
      #expect(user == alice)
      break
    }
    try FileManager.default.removeItem(atPath: folder)
  }
}
