package import Contract
package import MediaModel

/// A word by which somebody joined, or by which people may join (protocol section 5.13).
package struct StoredWord: Hashable, Sendable, Codable {
  /// The user or link that a word lets in: a call keeps one word for each.
  package enum Subject: Hashable, Sendable, Comparable {
    case link(Base64Bytes)
    case user(UserID)

    /// Distinguishes it from all others: ids contain no `=`, with which the text of a link ends.
    package var text: String {
      switch self {
      case .link(let key): key.base64
      case .user(let user): user.text
      }
    }

    package static func < (one: Subject, other: Subject) -> Bool {
      switch (one, other) {
      case (.link(let one), .link(let other)): one.bytes.lexicographicallyPrecedes(other.bytes)
      case (.link, .user): true
      case (.user, .link): false
      case (.user(let one), .user(let other)): one < other
      }
    }
  }

  package var admission: Admission
  /// When a link expires; nil for a revoked link, and for the word of a user.
  package var validUntil: Timestamp?

  package init(admission: Admission, validUntil: Timestamp? = nil) {
    self.admission = admission
    self.validUntil = validUntil
  }

  package var subject: Subject {
    if let user = admission.user { return .user(user) }
    return .link(admission.link ?? Base64Bytes([]))
  }
}

extension StoredWord: CustomStringConvertible { package var description: String { "word" } }
