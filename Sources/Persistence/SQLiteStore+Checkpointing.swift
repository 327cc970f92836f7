package import CallMessages
import GRDB
import Synchronization

/// Moves written pages from the write-ahead log into the database file.
extension SQLiteStore {
  struct Clearing {
    var isUnderWay = false
    /// The log has old pages with data of a deleted user: it must be emptied, not only copied.
    var isWanted = false
  }

  /// Call it each second or so. Returns immediately: the disk works concurrently with the calls. A failed checkpoint is repeated the
  /// next time.
  /// - Parameter failed: called on the checkpointer's queue for a failure of the disk. Blocking readers are not failures.
  package func checkpoint(failed: @escaping @Sendable (StoreError) -> Void = { _ in }) {
    let wanted: Bool? = clearing.withLock { clearing in
      guard !clearing.isUnderWay else { return nil }
      defer { clearing = Clearing(isUnderWay: true) }
      return clearing.isWanted
    }
    guard let wanted else { return }
    checkpointer.asyncWriteWithoutTransaction { [self] db in
      var isDone = false
      do {
        try db.checkpoint(wanted ? .truncate : .passive)
        isDone = true
      } catch {
        let error = StoreError(error, path: path)
        if error.kind != .busy { failed(error) }
      }
      clearing.withLock {
        $0.isUnderWay = false
        if wanted, !isDone { $0.isWanted = true }
      }
    }
  }

  func noteForgotten(_ changes: [StoreChange]) {
    let isForgotten = changes.contains { if case .forgotten = $0 { true } else { false } }
    if isForgotten { clearing.withLock { $0.isWanted = true } }
  }
}
