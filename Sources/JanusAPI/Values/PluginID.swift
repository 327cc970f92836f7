/// The id of a room or of a participant: a number below 2⁵³, or a text where the configuration says so. One gateway has either kind only.
package enum PluginID: Hashable, Comparable, Sendable {
  case number(UInt64)
  case text(String)

  /// Numbers that every JSON parser reads exactly.
  package static let numbers: ClosedRange<UInt64> = 1...(1 << 53 - 1)

  /// 1 to 64 bytes of `A-Z a-z 0-9 . _ ~ @ + -`, so that an id with the prefix of rooms is a `CallID`.
  package init?(text: String) {
    let isPlain = text.utf8.allSatisfy { byte in
      switch byte {
      case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "."), UInt8(ascii: "_"), UInt8(ascii: "~"),
        UInt8(ascii: "@"), UInt8(ascii: "+"), UInt8(ascii: "-"):
        true
      default: false
      }
    }
    guard isPlain, (1...64).contains(text.utf8.count) else { return nil }
    self = .text(text)
  }

  package init?(number: some BinaryInteger) {
    guard let number = UInt64(exactly: number), Self.numbers.contains(number) else { return nil }
    self = .number(number)
  }

  var tree: JSONTree {
    switch self {
    case .number(let number): JSONTree(number)
    case .text(let text): .text(text)
    }
  }

  package var description: String {
    switch self {
    case .number(let number): "\(number)"
    case .text(let text): text
    }
  }

  package static func < (a: Self, b: Self) -> Bool {
    switch (a, b) {
    case (.number(let a), .number(let b)): a < b
    case (.text(let a), .text(let b)): a.utf8.lexicographicallyPrecedes(b.utf8)
    case (.number, .text): true
    case (.text, .number): false
    }
  }
}

/// The kind of ids that a gateway's rooms and participants have.
package enum PluginIDKind: String, Sendable, Hashable, CaseIterable, Codable {
  case numbers, strings

  func random(using generator: inout some RandomNumberGenerator) -> PluginID {
    switch self {
    case .numbers: .number(UInt64.random(in: PluginID.numbers, using: &generator))
    case .strings:
      .text([generator.next(), generator.next()].map { String($0 | 1 << 63, radix: 16) }.joined())
    }
  }
}
