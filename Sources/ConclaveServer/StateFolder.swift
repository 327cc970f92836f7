import Foundation
import Glibc

/// The folder of what survives a restart, with mode 700.
package struct StateFolder: Sendable {
  package let path: String

  /// Makes the folder when it is missing.
  /// - Throws: `ConfigurationError` when it cannot be made.
  package init(_ path: String) throws(ConfigurationError) {
    self.path = path
    do {
      try FileManager.default.createDirectory(
        atPath: path, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    } catch {
      throw ConfigurationError("state: cannot make the folder \(path); make it yourself, or name another by --state")
    }
  }

  package var database: String { path + "/conclave.sqlite" }

  /// Held by the one server that uses the folder; the system lets go of it when the server dies.
  final class Lock: Sendable {
    private let file: Int32
    fileprivate init(_ file: Int32) { self.file = file }
    deinit { close(file) }
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

  /// The HS256 secret: the text of `file` (default `secret` here) without white space at its ends. Made of 32 random bytes, with mode 600, when the default file is missing.
  /// - Returns: the secret, and whether it was made just now.
  package func secret(file: String?) throws(ConfigurationError) -> (secret: String, isNew: Bool) {
    let name = file ?? path + "/secret"
    if let secret = try Self.secret(at: name) { return (secret, false) }
    guard file == nil, !FileManager.default.fileExists(atPath: name) else {
      throw ConfigurationError("\(name): cannot be read; check its name and mode")
    }
    var generator = SystemRandomNumberGenerator()
    let bytes = (0..<32).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
    let secret = bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    // Made with its mode, not changed to it: at no moment can others read it.
    let made = FileManager.default.createFile(
      atPath: name, contents: Data((secret + "\n").utf8), attributes: [.posixPermissions: 0o600])
    guard made else {
      throw ConfigurationError("\(name): cannot be written; check the folder's mode, and that its disk has room")
    }
    return (secret, true)
  }

  /// The secret in a file; nil when that cannot be read.
  /// - Throws: `ConfigurationError` for one that is too short.
  static func secret(at name: String) throws(ConfigurationError) -> String? {
    guard let text = try? String(contentsOfFile: name, encoding: .utf8) else { return nil }
    let secret = text.trimmingCharacters(in: .whitespacesAndNewlines)
    guard secret.utf8.count >= 32 else {
      throw ConfigurationError("\(name): a secret has at least 32 characters (RFC 7518 section 3.2)")
    }
    return secret
  }
}
