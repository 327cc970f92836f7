import Foundation
import Glibc

/// The folder of the state that survives a restart, with mode 700. A folder that others may read or write is refused, because they would have the
/// secret and all calls.
package struct StateFolder: Sendable {
  package let path: String

  /// Creates the folder if it is missing.
  /// - Throws: `ConfigurationError` if it cannot be created.
  package init(_ path: String) throws(ConfigurationError) {
    self.path = path
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw ConfigurationError("state: cannot make the folder \(path); make it yourself, or name another by --state")
    }
    try Configuration.checkOwnerOnly(path)
  }

  package var database: String { Self.database(in: path) }

  static func database(in folder: String) -> String { folder + "/conclave.sqlite" }

  static func adminSocket(in folder: String) -> String { folder + "/admin" }

  /// A Unix socket's path has at most 107 bytes (unix(7)).
  static func tooLong(_ path: String) -> String { "state: \(path) is longer than 107 bytes; take a shorter folder" }

  /// Held by the one server that uses the folder; the system releases it when the server dies.
  final class Lock: Sendable {
    private let file: Int32
    fileprivate init(_ file: Int32) { self.file = file }
    deinit { close(file) }
  }

  enum Use {
    /// The folder is free. The lock is nil if no server has created it yet.
    case free(Lock?)
    /// Another server uses it.
    case taken
  }

  /// Checks whether a server could use the folder, without creating anything.
  static func use(_ path: String) throws(ConfigurationError) -> Use {
    try Configuration.checkOwnerOnly(path)
    var place = path
    while access(place, F_OK) != 0, place != "/", !place.isEmpty {
      place = (place as NSString).deletingLastPathComponent
    }
    guard access(place.isEmpty ? "." : place, W_OK | X_OK) == 0 else {
      throw ConfigurationError(
        "state: \(place) cannot be written by this user; check its owner and mode, or run as the server's")
    }
    let name = path + "/lock"
    let file = open(name, O_RDWR | O_CLOEXEC)
    guard file >= 0 else {
      if errno == ENOENT || errno == ENOTDIR { return .free(nil) }
      throw ConfigurationError("\(name): cannot be opened; check its owner and mode, or remove it")
    }
    let lock = Lock(file)
    return flock(file, LOCK_EX | LOCK_NB) == 0 ? .free(lock) : .taken
  }

  /// - Throws: `ConfigurationError` for another file in the place of the admin socket.
  static func checkAdminSocket(in folder: String) throws(ConfigurationError) {
    var status = stat()
    let path = adminSocket(in: folder)
    guard lstat(path, &status) == 0, status.st_mode & S_IFMT != S_IFSOCK else { return }
    throw ConfigurationError(
      "\(path): the admin socket cannot be made: there is another file of this name; move it away")
  }

  func lock() throws(ConfigurationError) -> Lock {
    let name = path + "/lock"
    let file = open(name, O_CREAT | O_RDWR | O_CLOEXEC, 0o600)
    guard file >= 0 else {
      throw ConfigurationError(
        "\(name): cannot be made; check who owns the folder, its mode, and that its disk has room")
    }
    guard flock(file, LOCK_EX | LOCK_NB) == 0 else {
      close(file)
      throw ConfigurationError("state: another server uses \(path); end that one, or name another folder by --state")
    }
    return Lock(file)
  }

  /// The HS256 secret: the text of `file` (by default one in this folder) without white space at its ends. Created from 32 random bytes, with mode 600, if
  /// the default file is missing.
  /// - Returns: the secret, and whether it was just created.
  package func secret(
    file: String?, default text: String = "secret"
  ) throws(ConfigurationError) -> (secret: String, isNew: Bool) {
    let name = file ?? path + "/" + text
    if let secret = try Self.secret(at: name) { return (secret, false) }
    guard file == nil, !FileManager.default.fileExists(atPath: name) else {
      throw ConfigurationError("\(name): cannot be read; check its name and mode")
    }
    var generator = SystemRandomNumberGenerator()
    let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    let secret = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    // Created with its mode rather than changed to it, so that others can never read it.
    let made = FileManager.default.createFile(
      atPath: name, contents: Data((secret + "\n").utf8), attributes: [.posixPermissions: 0o600])
    guard made else {
      throw ConfigurationError("\(name): cannot be written; check the folder's mode, and that its disk has room")
    }
    return (secret, true)
  }

  /// The secret in a file; nil if that cannot be read.
  /// - Throws: `ConfigurationError` for one that is too short.
  static func secret(at name: String) throws(ConfigurationError) -> String? {
    guard let text = try? String(contentsOfFile: name, encoding: .utf8) else { return nil }
    try Configuration.checkOwnerOnly(name)
    let secret = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard secret.utf8.count >= 32 else {
      throw ConfigurationError("\(name): a secret has at least 32 characters (RFC 7518 section 3.2)")
    }
    return secret
  }
}

extension Configuration {
  /// - Throws: `ConfigurationError` for a file or folder that others may read, write or enter. A missing one passes: its reader reports it.
  static func checkOwnerOnly(_ path: String) throws(ConfigurationError) {
    var status = stat()
    guard stat(path, &status) == 0, !isPrivate(status, group: getegid()) else { return }
    let isFolder = status.st_mode & S_IFMT == S_IFDIR
    throw ConfigurationError(
      "\(path): others than its owner have access (mode \(String(status.st_mode & 0o777, radix: 8))); run "
        + "chmod \(isFolder ? "700" : "600") \(path), and take a new secret if somebody else may have read it")
  }

  /// Whether only its owner can access a file or folder. `group`, the server's own, may also read a file of root's: a secret that Kubernetes mounts is like
  /// that, and the server cannot change it.
  static func isPrivate(_ status: stat, group: gid_t) -> Bool {
    switch status.st_mode & 0o077 {
    case 0: true
    case 0o040: status.st_mode & S_IFMT == S_IFREG && status.st_uid == 0 && status.st_gid == group && group != 0
    default: false
    }
  }
}
