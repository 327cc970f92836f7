import CPostgreSQL

/// The answer to one statement.
package final class PostgresRows {
  private let library: cpostgresql_library
  private let result: OpaquePointer
  package let count: Int
  /// How many rows an INSERT, UPDATE or DELETE has changed, or a SELECT returned.
  package let changed: Int

  /// Owns the result.
  init(_ result: OpaquePointer, _ library: cpostgresql_library) {
    self.library = library
    self.result = result
    count = Int(library.row_count(result))
    changed = library.command_rows(result).flatMap { Int(String(cString: $0)) } ?? 0
  }

  deinit { library.clear(result) }

  /// The error's code; nil if there is none.
  var state: SQLState? {
    library.error_field(result, cpostgresql_state_field()).map { SQLState(String(cString: $0)) }
  }

  /// The values that `read` makes of the rows.
  package func map<Value>(_ read: (PostgresRow) throws -> Value) throws -> [Value] {
    try (0..<count).map { try read(PostgresRow(rows: self, index: Int32($0))) }
  }

  /// nil if there is none.
  package var first: PostgresRow? { count > 0 ? PostgresRow(rows: self, index: 0) : nil }

  /// - Returns: nil for NULL.
  /// - Throws: `PostgresError.malformed` if there is no such column, or it has another type.
  fileprivate func bytes(_ row: Int32, _ column: Int, _ type: UInt32) throws(PostgresError) -> UnsafeRawBufferPointer? {
    guard (0..<Int(library.column_count(result))).contains(column), library.column_type(result, Int32(column)) == type
    else { throw .malformed }
    guard library.is_null(result, row, Int32(column)) == 0 else { return nil }
    guard let value = library.value(result, row, Int32(column)) else { throw .malformed }
    return UnsafeRawBufferPointer(start: value, count: Int(library.length(result, row, Int32(column))))
  }
}

/// One row. Each access checks the column's type; a NULL where none is expected is `PostgresError.malformed`.
package struct PostgresRow {
  fileprivate let rows: PostgresRows
  fileprivate let index: Int32

  package func optionalText(_ column: Int) throws(PostgresError) -> String? {
    guard let bytes = try rows.bytes(index, column, PostgresType.text) else { return nil }
    guard let text = String(validating: bytes, as: UTF8.self) else { throw .malformed }
    return text
  }

  package func optionalInteger(_ column: Int) throws(PostgresError) -> Int64? {
    guard let bytes = try rows.bytes(index, column, PostgresType.integer) else { return nil }
    guard bytes.count == 8 else { throw .malformed }
    return Int64(bigEndian: bytes.loadUnaligned(as: Int64.self))
  }

  package func optionalBytes(_ column: Int) throws(PostgresError) -> [UInt8]? {
    try rows.bytes(index, column, PostgresType.bytes).map { Array($0) }
  }

  package func text(_ column: Int) throws(PostgresError) -> String { try some(optionalText(column)) }
  package func integer(_ column: Int) throws(PostgresError) -> Int64 { try some(optionalInteger(column)) }
  package func bytes(_ column: Int) throws(PostgresError) -> [UInt8] { try some(optionalBytes(column)) }

  package func flag(_ column: Int) throws(PostgresError) -> Bool {
    guard let bytes = try rows.bytes(index, column, PostgresType.flag), bytes.count == 1 else { throw .malformed }
    return bytes[0] != 0
  }

  private func some<Value>(_ value: Value?) throws(PostgresError) -> Value {
    guard let value else { throw .malformed }
    return value
  }
}
