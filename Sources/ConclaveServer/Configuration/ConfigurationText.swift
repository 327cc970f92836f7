import JSON

/// The text of a configuration file: finds the position of each member.
struct ConfigurationText: Sendable {
  let bytes: [UInt8]
  let file: String?

  struct Place: Hashable, CustomStringConvertible {
    var line: Int
    /// In characters, from 1.
    var column: Int
    var description: String { "\(line):\(column)" }
  }

  init(_ bytes: [UInt8], file: String? = nil) {
    self.bytes = bytes
    self.file = file
  }

  /// Why the text is not a configuration, in words for the operator.
  func error(_ error: JSONError) -> ConfigurationError {
    guard let offset = error.offset else {
      return located(ConfigurationError("\(error.field ?? "the file"): \(error.reason)"))
    }
    let last = max(0, min(offset, bytes.count) - 1)
    let place = place(ofByte: last)
    let reason = [error.reason.replacing(" at byte \(offset)", with: ""), hint(at: last)].compactMap { $0 }
    guard let file else {
      return ConfigurationError(
        "the file: line \(place.line), column \(place.column): \(reason.joined(separator: "; "))")
    }
    return ConfigurationError("\(file):\(place): \(reason.joined(separator: "; "))")
  }

  /// People write some things that JSON does not have.
  private func hint(at byte: Int) -> String? {
    guard bytes.indices.contains(byte) else { return "it ends too early" }
    switch bytes[byte] {
    case UInt8(ascii: "/"), UInt8(ascii: "#"): return "JSON has no comments"
    case UInt8(ascii: "'"): return "take double quotes"
    case UInt8(ascii: "}"), UInt8(ascii: "]"):
      let before = bytes[..<byte].last { !$0.isBlank }
      return before == UInt8(ascii: ",") ? "leave out the comma before it" : nil
    default: return byte == bytes.count - 1 ? "it ends too early" : nil
    }
  }

  /// The same, each line with the position in the file of the member with which it begins.
  func located(_ error: ConfigurationError) -> ConfigurationError {
    guard let file else { return error }
    let offsets = Members(of: bytes).offsets
    let lines = error.description.split(separator: "\n", omittingEmptySubsequences: false).map { line in
      var path = line.prefix { $0.isASCII && ($0.isLetter || $0.isNumber || "._$-".contains($0)) }
      guard line.dropFirst(path.count).hasPrefix(": ") else { return String(line) }
      while offsets[String(path)] == nil {
        guard let point = path.lastIndex(of: ".") else { return String(line) }
        path = path[..<point]
      }
      return offsets[String(path)].map { "\(file):\(place(ofByte: $0)): \(line)" } ?? String(line)
    }
    return ConfigurationError(lines.joined(separator: "\n"))
  }

  func place(ofByte offset: Int) -> Place {
    let before = bytes.prefix(offset)
    let start = (before.lastIndex(of: UInt8(ascii: "\n")) ?? -1) + 1
    // Continuation bytes of UTF-8 are not characters.
    let column = before[start...].count { $0 & 0xc0 != 0x80 } + 1
    return Place(line: before.count { $0 == UInt8(ascii: "\n") } + 1, column: column)
  }
}

/// The position of each member of a JSON text. The text was already read: it is valid, and not deep.
private struct Members {
  private(set) var offsets: [String: Int] = [:]
  private let bytes: [UInt8]
  private var next = 0

  init(of bytes: [UInt8]) {
    self.bytes = bytes
    readValue("")
  }

  private var byte: UInt8? { next < bytes.count ? bytes[next] : nil }

  private mutating func skipBlanks() { while let byte, byte.isBlank { next += 1 } }

  private mutating func readValue(_ path: String) {
    skipBlanks()
    switch byte {
    case UInt8(ascii: "{"): readAll(until: UInt8(ascii: "}")) { $0.readMember(path) }
    case UInt8(ascii: "["):
      var index = 0
      readAll(until: UInt8(ascii: "]")) {
        let name = Self.path(path, "\(index)")
        $0.offsets[name] = $0.next
        $0.readValue(name)
        index += 1
      }
    case UInt8(ascii: "\""): _ = readString()
    default: while let byte, !byte.isBlank, !",}]".utf8.contains(byte) { next += 1 }
    }
  }

  private mutating func readAll(until end: UInt8, _ read: (inout Self) -> Void) {
    next += 1
    while true {
      skipBlanks()
      guard let byte else { return }
      if byte == UInt8(ascii: ",") {
        next += 1
      } else if byte == end {
        next += 1
        return
      } else {
        let before = next
        read(&self)
        guard next > before else { return }
      }
    }
  }

  private mutating func readMember(_ path: String) {
    let start = next
    let name = Self.path(path, readString())
    skipBlanks()
    guard byte == UInt8(ascii: ":") else { return }
    next += 1
    offsets[name] = start
    readValue(name)
  }

  /// Names of options have no escapes; a name that has one is never looked up.
  private mutating func readString() -> String {
    next += 1
    let start = next
    while let byte, byte != UInt8(ascii: "\"") { next += byte == UInt8(ascii: "\\") ? 2 : 1 }
    let text = String(decoding: bytes[min(start, bytes.count)..<min(next, bytes.count)], as: UTF8.self)
    next += 1
    return text
  }

  private static func path(_ path: String, _ name: String) -> String { path.isEmpty ? name : "\(path).\(name)" }
}

extension UInt8 {
  fileprivate var isBlank: Bool { self == 0x20 || (0x09...0x0d).contains(self) }
}
