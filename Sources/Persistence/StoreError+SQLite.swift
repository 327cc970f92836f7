import CallMessages
import GRDB

/// SQLite's errors, in words for the operator.
extension StoreError {
  init(_ error: any Error, path: String) {
    guard let error = error as? DatabaseError else {
      self = error as? StoreError ?? StoreError(.broken, Self.broken(path))
      return
    }
    switch error.resultCode {
    case .SQLITE_NOTADB, .SQLITE_CORRUPT, .SQLITE_MISMATCH: self.init(.broken, Self.broken(path))
    // The file for shared memory cannot grow.
    case .SQLITE_IOERR where error.extendedResultCode == .SQLITE_IOERR_SHMSIZE: self.init(.full, Self.full(path))
    case .SQLITE_FULL: self.init(.full, Self.full(path))
    case .SQLITE_READONLY, .SQLITE_PERM:
      self.init(.readOnly, "\(path): cannot be written; check who owns the file and its folder, and their modes")
    case .SQLITE_CANTOPEN, .SQLITE_AUTH:
      self.init(.cannotOpen, "\(path): cannot be opened; check that its folder exists and is the server's own")
    case .SQLITE_BUSY, .SQLITE_LOCKED:
      self.init(.busy, "\(path): another process has locked it; end that one, or wait")
    case .SQLITE_IOERR:
      self.init(
        .failed,
        "\(path): the disk failed (SQLite \(error.extendedResultCode.rawValue)); look at the kernel's log (dmesg)")
    // Never the message or the arguments: they may contain what was to be written.
    default: self.init(.failed, "\(path): SQLite error \(error.extendedResultCode.rawValue); report it")
    }
  }

  static func newer(_ place: String) -> StoreError {
    StoreError(.newer, "\(place): a newer version of the server made it; run that one, or restore a backup")
  }

  /// The file belongs to a later start.
  static func fenced(_ path: String, own: FencingToken, newest: UInt32) -> StoreError {
    StoreError(
      .fenced,
      "\(path): a server that started later uses the file (start \(newest), this is start \(own.number)); end one of the two, "
        + "or give each its own state folder")
  }

  private static func full(_ path: String) -> String { "\(path): the disk is full; make room" }

  private static func broken(_ path: String) -> String {
    "\(path): the file is damaged; move it away (with -wal and -shm beside it) and start anew, or restore a backup: "
      + "running calls, devices' keys and history are in it"
  }
}
