/// A statement with its values. The text is in the program and values are always bound, so no value can become a part of it.
package struct PostgresStatement: Sendable {
  let sql: StaticString
  let values: [PostgresValue]

  /// - Parameter values: for `$1` and so on. The type of each is the same whenever this text is used.
  package init(_ sql: StaticString, _ values: PostgresValue...) { self.init(sql, values: values) }

  /// The same.
  package init(_ sql: StaticString, values: [PostgresValue]) {
    self.sql = sql
    self.values = values
  }

  var text: String { sql.withUTF8Buffer { String(decoding: $0, as: UTF8.self) } }
}

/// A value, in PostgreSQL's binary format. nil is NULL.
package enum PostgresValue: Sendable {
  case integer(Int64?)
  case text(String?)
  case bytes([UInt8]?)
  case flag(Bool)
  case texts([String])

  /// The type's number in `pg_type`.
  var type: UInt32 {
    switch self {
    case .integer: PostgresType.integer
    case .text: PostgresType.text
    case .bytes: PostgresType.bytes
    case .flag: PostgresType.flag
    case .texts: PostgresType.texts
    }
  }

  /// Appends the value. Returns false, and appends nothing, for NULL.
  func write(to bytes: inout [UInt8]) -> Bool {
    switch self {
    case .integer(let number?): bytes.append(bigEndian: number)
    case .text(let text?): bytes += text.utf8
    case .bytes(let value?): bytes += value
    case .flag(let flag): bytes.append(flag ? 1 : 0)
    case .texts(let texts):
      // One dimension without NULLs, from index 1 (array_recv).
      for number in [1, 0, Int32(bitPattern: PostgresType.text), Int32(texts.count), 1] {
        bytes.append(bigEndian: number)
      }
      for text in texts {
        bytes.append(bigEndian: Int32(text.utf8.count))
        bytes += text.utf8
      }
    case .integer(nil), .text(nil), .bytes(nil): return false
    }
    return true
  }
}

/// Numbers of types (`pg_type.dat`), which never change.
enum PostgresType {
  static let flag: UInt32 = 16
  static let bytes: UInt32 = 17
  static let integer: UInt32 = 20
  static let text: UInt32 = 25
  static let texts: UInt32 = 1_009
}

extension [UInt8] {
  fileprivate mutating func append(bigEndian number: some FixedWidthInteger) {
    Swift.withUnsafeBytes(of: number.bigEndian) { append(contentsOf: $0) }
  }
}
