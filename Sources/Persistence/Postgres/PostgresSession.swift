import MediaModel
import PostgreSQL

/// A connection that is opened when it is needed, and again when it was lost.
struct PostgresSession {
  let target: PostgresTarget
  let settings: PostgresConnection.Settings
  private var connection: PostgresConnection?

  init(_ target: PostgresTarget, _ settings: PostgresConnection.Settings) {
    self.target = target
    self.settings = settings
  }

  /// - Parameter body: may leave no transaction open, unless it throws.
  mutating func use<Value>(_ body: (PostgresConnection) throws -> Value) throws -> Value {
    let used: PostgresConnection
    if let connection {
      used = connection
    } else {
      used = try PostgresConnection(target, settings)
    }
    // A transaction that an error has left open ends with the connection.
    connection = nil
    let value = try body(used)
    connection = used
    return value
  }

  /// The same. If the connection that was there turns out to be lost, `body` runs again with a new one: it may do so twice.
  mutating func repeatedly<Value>(_ body: (PostgresConnection) throws -> Value) throws -> Value {
    let isNew = connection == nil
    do {
      return try use(body)
    } catch PostgresError.lost(after: nil) where !isNew {
      return try use(body)
    }
  }
}
