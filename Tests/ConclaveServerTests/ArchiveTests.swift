import CallMessages
import Contract
import Foundation
import GRDB
import Logging
import MediaModel
import Listening
import Synchronization
import Testing

@testable import ConclaveServer
@testable import Persistence

private let alice = UserID(unchecked: "alice")

/// A history that everybody requests at once.
struct ArchiveTests {
  private let folder = FileManager.default.temporaryDirectory.path + "/archive-\(UUID().uuidString)"
  private let store: SQLiteStore
  private let archive: Archive

  init() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
    store = try SQLiteStore(path: folder + "/conclave.sqlite")
    archive = Archive(store: store, clock: WallClock(), log: LimitedLog(Logger(label: "test")))
  }

  private func ask(_ query: HistoryQuery) async -> CallMessages.Reply {
    await withCheckedContinuation { answer in archive.answer(query) { answer.resume(returning: $0) } }
  }

  @Test func moreThanItCanAnswerAreToldToComeAgain() async throws {
    let (replies, told) = AsyncStream.makeStream(of: Bool.self)
    let more = 10
    let archive = archive
    // Requests are not answered while the history is held.
    try await store.reader.writeWithoutTransaction { _ in
      for _ in 0..<Archive.maximumWaiting + more {
        archive.answer(.totals(alice, with: UserID(unchecked: "bob"))) { reply in
          if case .ok = reply { told.yield(true) } else { told.yield(false) }
        }
      }
    }
    var answers: [Bool] = []
    for await isAnswered in replies {
      answers.append(isAnswered)
      if answers.count == Archive.maximumWaiting + more { break }
    }
    #expect(answers.prefix(more).allSatisfy { !$0 }, "at once, without waiting for the others")
    #expect(answers.count { $0 } == Archive.maximumWaiting)
    guard case .ok = await ask(.delete(alice, calls: nil)) else { return #expect(Bool(false), "there is room again") }
    try FileManager.default.removeItem(atPath: folder)
  }
}
