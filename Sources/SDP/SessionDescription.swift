/// An SDP text split into its m= sections and attributes (RFC 8866), without interpretation.
package struct SessionDescription: Sendable {
  /// `a=name:value`, or `a=name` with an empty value.
  package struct Attribute: Sendable {
    package var line: Int
    package var name: Substring
    package var value: Substring
  }

  /// `m=media port protocol formats` and the attributes below it.
  package struct Section: Sendable {
    package var line: Int
    package var media: Substring
    package var port: UInt16
    package var protocolName: Substring
    package var formats: [Substring]
    package var attributes: [Attribute] = []
  }

  /// The attributes above the first m= line.
  package private(set) var attributes: [Attribute] = []
  package private(set) var sections: [Section] = []

  /// As much as signaling accepts in one request.
  package static let maximumBytes = 256 * 1_024
  package static let maximumLineBytes = 4_096
  /// A browser's video section has about 100 lines.
  package static let maximumLines = 16_384
  /// 8 audio and 25 video slots, the participant's own tracks, and some that have ended.
  package static let maximumSections = 64

  /// Accepts CRLF and LF line ends.
  package init(parsing text: String) throws(SDPError) {
    guard text.utf8.count <= Self.maximumBytes else {
      throw SDPError(line: 1, "the description is over \(Self.maximumBytes) bytes: remove codecs or m= lines")
    }
    var lines = text.utf8.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
    while let last = lines.last, last.isEmpty || last.elementsEqual("\r".utf8) { lines.removeLast() }
    guard lines.count <= Self.maximumLines else {
      throw SDPError(line: Self.maximumLines, "there are over \(Self.maximumLines) lines: remove codecs or m= lines")
    }
    for (index, line) in lines.enumerated() {
      try read(Substring(line.last == UInt8(ascii: "\r") ? line.dropLast() : line), number: index + 1)
    }
    guard !lines.isEmpty else { throw SDPError(line: 1, "the description is empty: send its sdp") }
  }

  private mutating func read(_ line: Substring, number: Int) throws(SDPError) {
    guard line.utf8.count <= Self.maximumLineBytes else {
      throw SDPError(line: number, "the line is over \(Self.maximumLineBytes) bytes")
    }
    guard line.utf8.allSatisfy({ $0 >= 0x20 && $0 != 0x7f || $0 == 0x09 }) else {
      throw SDPError(line: number, "the line holds a control character: end each line with CRLF")
    }
    guard number > 1 || line == "v=0" else { throw SDPError(line: 1, "the description must begin with v=0") }
    let bytes = line.utf8
    guard bytes.count >= 2, bytes[bytes.index(after: bytes.startIndex)] == UInt8(ascii: "="), let type = line.first
    else { throw SDPError(line: number, "a line must be one letter, = and a value, with no empty line between") }
    let value = line.dropFirst(2)
    switch type {
    case "m": try beginSection(value, number: number)
    case "a": add(value, number: number)
    default: break
    }
  }

  private mutating func beginSection(_ value: Substring, number: Int) throws(SDPError) {
    guard sections.count < Self.maximumSections else {
      throw SDPError(line: number, "there are over \(Self.maximumSections) m= lines: use transceivers again")
    }
    let fields = value.split(separator: " ")
    // "port/count" is for layered multicast, which WebRTC does not have.
    guard fields.count >= 4, let port = UInt16(fields[1]) else {
      throw SDPError(line: number, "an m= line must be media, port, protocol and at least one format")
    }
    sections.append(
      Section(
        line: number, media: fields[0], port: port, protocolName: fields[2], formats: Array(fields.dropFirst(3))))
  }

  private mutating func add(_ text: Substring, number: Int) {
    let colon = text.utf8.firstIndex(of: UInt8(ascii: ":"))
    let attribute = Attribute(
      line: number, name: text[..<(colon ?? text.endIndex)],
      value: colon.map { text[text.utf8.index(after: $0)...] } ?? "")
    if sections.isEmpty {
      attributes.append(attribute)
    } else {
      sections[sections.count - 1].attributes.append(attribute)
    }
  }
}

extension [SessionDescription.Attribute] {
  package func first(_ name: String) -> SessionDescription.Attribute? { first { $0.name == name } }

  package func all(_ name: String) -> [SessionDescription.Attribute] { filter { $0.name == name } }

  package func contains(_ name: String) -> Bool { contains { $0.name == name } }
}

extension StringProtocol {
  /// Whether the text is 1 or more characters of RFC 8866's `token`, so that it can occur anywhere in a description.
  var isToken: Bool {
    !isEmpty
      && utf8.allSatisfy {
        $0 > 0x20 && $0 < 0x7f && !"\"(),/:;<=>?@[\\]".utf8.contains($0)
      }
  }
}

/// A fault of an offer or an answer. The text is for the client's developer and says what to do. It never contains text of the
/// description, which is personal data.
package struct SDPError: Error, Hashable, Sendable {
  /// Starting at 1.
  package var line: Int
  package var reason: String

  package init(line: Int, _ reason: String) {
    self.line = line
    self.reason = reason
  }
}

extension SDPError: CustomStringConvertible {
  package var description: String { "line \(line): \(reason)" }
}
