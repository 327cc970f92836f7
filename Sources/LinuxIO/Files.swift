import Glibc

/// Files by calls that wait for the disk.
package enum Files {
  /// Makes the folder and those above it, for the owner only. They are on the disk when this returns.
  package static func makeFolder(_ path: String) throws(SystemError) {
    guard mkdir(path, 0o700) != 0 else { return try syncFolder(parent(of: path)) }
    switch errno {
    case EEXIST:
      // It may be a file.
      let folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
      guard folder >= 0 else { throw SystemError("open the folder", code: errno) }
      close(folder)
    case ENOENT:
      try makeFolder(parent(of: path))
      guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw SystemError("make a folder", code: errno) }
      try syncFolder(parent(of: path))
    default: throw SystemError("make a folder", code: errno)
    }
  }

  /// Writes a file whose folder exists. When this returns, the whole file is there, also after a loss of power. If it throws, or if the process dies, the path
  /// has what it had before, and a file with the suffix `partial` beside it may be left.
  package static func write(_ bytes: [UInt8], to path: String) throws(SystemError) {
    let partial = path + self.partial
    let file = open(partial, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw SystemError("make a file", code: errno) }
    var failure = write(bytes, to: file)
    if failure == 0, fdatasync(file) != 0 { failure = errno }
    if close(file) != 0, failure == 0 { failure = errno }
    if failure == 0, Glibc.rename(partial, path) != 0 { failure = errno }
    guard failure == 0 else {
      unlink(partial)
      throw SystemError("write a file", code: failure)
    }
    try syncFolder(parent(of: path))
  }

  /// Gives a file another name in its folder. When this returns, that is so also after a loss of power.
  package static func rename(_ path: String, to name: String) throws(SystemError) {
    guard Glibc.rename(path, name) == 0 else { throw SystemError("name a file", code: errno) }
    try syncFolder(parent(of: name))
  }

  /// The suffix of a file that is not whole.
  package static let partial = ".partial"

  /// Reads at most `count` bytes from `offset` on, fewer at the end of the file.
  package static func read(_ path: String, from offset: Int, count: Int) throws(SystemError) -> [UInt8] {
    let file = open(path, O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { throw SystemError("open a file", code: errno) }
    defer { close(file) }
    var failure: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: count) { buffer, done in
      while done < count {
        let result = pread(file, buffer.baseAddress.map { $0 + done }, count - done, off_t(offset + done))
        if result < 0, errno == EINTR { continue }
        if result < 0 { failure = errno }
        guard result > 0 else { break }
        done += result
      }
    }
    guard failure == 0 else { throw SystemError("read a file", code: failure) }
    return bytes
  }

  /// nil if there is no such file.
  package static func byteCount(of path: String) -> Int? {
    var status = stat()
    guard stat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
    return Int(status.st_size)
  }

  /// The bytes that this process may still write on the file system of a folder.
  package static func freeBytes(at path: String) throws(SystemError) -> Int64 {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { throw SystemError("ask for the room on the disk", code: errno) }
    return Int64(clamping: UInt64(status.f_bavail) &* UInt64(status.f_frsize))
  }

  /// The size of the file system of a folder, in bytes.
  package static func totalBytes(at path: String) throws(SystemError) -> Int64 {
    var status = statvfs()
    guard statvfs(path, &status) == 0 else { throw SystemError("ask for the size of the disk", code: errno) }
    return Int64(clamping: UInt64(status.f_blocks) &* UInt64(status.f_frsize))
  }

  /// - Returns: 0, or errno.
  static func write(_ bytes: [UInt8], to file: Int32) -> Int32 {
    bytes.withUnsafeBytes { buffer in
      var done = 0
      while done < buffer.count {
        let result = Glibc.write(file, buffer.baseAddress.map { $0 + done }, buffer.count - done)
        if result < 0, errno == EINTR { continue }
        guard result > 0 else { return result < 0 ? errno : ENOSPC }
        done += result
      }
      return 0
    }
  }

  /// A name in a folder is on the disk once the folder is.
  private static func syncFolder(_ path: String) throws(SystemError) {
    let folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard folder >= 0 else { throw SystemError("open a folder", code: errno) }
    defer { close(folder) }
    guard fsync(folder) == 0 else { throw SystemError("write a folder", code: errno) }
  }

  private static func parent(of path: String) -> String {
    guard let slash = path.lastIndex(of: "/") else { return "." }
    return slash == path.startIndex ? "/" : String(path[..<slash])
  }
}

extension SystemError {
  /// The disk or the owner's share of it is full.
  package var isDiskFull: Bool { code == ENOSPC || code == EDQUOT }
}
