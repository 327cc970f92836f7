import Foundation

/// A secret that the configuration names or contains. It is never printed.
package enum Secret: Sendable {
  case file(String)
  case text(String)

  /// - Parameters:
  ///   - name: of its member, for the error.
  ///   - minimum: the least number of bytes.
  /// - Returns: its bytes, without white space at its ends.
  func bytes(_ name: String, minimum: Int) throws(ConfigurationError) -> [UInt8] {
    let text: String
    switch self {
    case .file(let file):
      try Configuration.checkOwnerOnly(file)
      text = try Configuration.text(of: file)
    case .text(let secret): text = secret
    }
    let bytes = Array(text.trimmingCharacters(in: .whitespacesAndNewlines).utf8)
    guard bytes.count >= minimum else {
      throw ConfigurationError("\(name): the secret has \(bytes.count) bytes; make one of at least \(minimum)")
    }
    return bytes
  }
}

extension Secret: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
  package var description: String { "secret" }
  package var debugDescription: String { "secret" }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
