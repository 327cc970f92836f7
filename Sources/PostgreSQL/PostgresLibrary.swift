import CPostgreSQL

/// libpq, opened with its first use.
enum PostgresLibrary {
  /// - Throws: `PostgresError.noLibrary`.
  static func functions() throws(PostgresError) -> cpostgresql_library {
    guard let opened else { throw .noLibrary }
    return opened
  }

  private static let opened: cpostgresql_library? = cpostgresql_open()?.pointee
}
