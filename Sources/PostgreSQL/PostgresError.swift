/// Why PostgreSQL cannot be used, or has not done what it was asked to. None has a statement's values, or a text of the server about them.
package enum PostgresError: Error, Equatable, Sendable {
  /// libpq 14 or later is not installed.
  case noLibrary
  /// The text is no URL of PostgreSQL.
  case badURL
  /// The URL has a parameter that is not for it.
  case parameterNotAllowed(String)
  /// There is no connection, in words of libpq and the server: hosts, a role and a database may be named in them.
  case notConnected(String)
  /// The server is too old, or its database has another encoding than UTF-8.
  case unsuitable(Unsuitable)
  /// The connection ended, or nothing came for this time: what was sent may have been done, or not.
  case lost(after: Duration?)
  /// It is committed, but PostgreSQL warned, as when it may not be on a synchronous standby.
  case unconfirmed
  /// The server refused a statement with this SQLSTATE, and undid the transaction.
  case refused(SQLState)
  /// A column has another type, or a value that is none of its type.
  case malformed

  package enum Unsuitable: Equatable, Sendable {
    /// As `server_version_num`.
    case version(Int)
    case encoding(String)
  }

  /// After this the connection is of no use.
  var endsConnection: Bool {
    switch self {
    case .lost: true
    case .noLibrary, .badURL, .parameterNotAllowed, .notConnected, .unsuitable, .unconfirmed, .refused, .malformed:
      false
    }
  }
}

/// The code of an error (PostgreSQL's manual, appendix A): five digits or capital letters.
package struct SQLState: Hashable, Sendable, ExpressibleByStringLiteral, CustomStringConvertible {
  package let description: String

  package init(stringLiteral text: String) { description = text }

  /// "XX000" (an internal error) for a text that is no code.
  init(_ text: String?) {
    let isCode = text.map { $0.utf8.count == 5 && $0.utf8.allSatisfy { Self.digits.contains($0) } } ?? false
    description = isCode ? text ?? "" : "XX000"
  }

  /// The first two characters.
  package var category: Substring { description.prefix(2) }

  private static let digits: Set<UInt8> = Set("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ".utf8)
}
