import Glibc

/// A file that grows until it is whole. Its calls wait for the disk, and it is used by one thread at a time.
package final class AppendedFile {
  private var file: Int32
  private let path: String

  /// Makes an empty file, in place of another one. Its folder exists.
  package init(_ path: String) throws(SystemError) {
    self.path = path
    file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard file >= 0 else { throw SystemError("make a file", code: errno) }
  }

  deinit { if file >= 0 { close(file) } }

  package func append(_ bytes: [UInt8]) throws(SystemError) {
    let failure = Files.write(bytes, to: file)
    guard failure == 0 else { throw SystemError("write a file", code: failure) }
  }

  /// Nothing more follows: when this returns, the whole file is there under its name, also after a loss of power.
  package func finish(as name: String) throws(SystemError) {
    var failure: Int32 = fdatasync(file) == 0 ? 0 : errno
    if close(file) != 0, failure == 0 { failure = errno }
    file = -1
    guard failure == 0 else { throw SystemError("write a file", code: failure) }
    try Files.rename(path, to: name)
  }
}
