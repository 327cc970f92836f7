extension UInt8 {
  static var null: UInt8 { 0x00 }
  static var lineFeed: UInt8 { 0x0A }
  static var carriageReturn: UInt8 { 0x0D }
  static var colon: UInt8 { UInt8(ascii: ":") }
  static var backslash: UInt8 { UInt8(ascii: "\\") }
  static var letterC: UInt8 { UInt8(ascii: "c") }
  static var letterN: UInt8 { UInt8(ascii: "n") }
  static var letterR: UInt8 { UInt8(ascii: "r") }
}

extension StringProtocol {
  var trimmingBlanks: SubSequence {
    guard let first = firstIndex(where: { $0 != " " && $0 != "\t" }),
      let last = lastIndex(where: { $0 != " " && $0 != "\t" })
    else { return self[endIndex..<endIndex] }
    return self[first...last]
  }
}

/// Reads a number of decimal digits; nil for anything else, or more than 18 digits.
func decimal(_ text: some StringProtocol) -> Int? {
  guard !text.isEmpty, text.utf8.count <= 18, text.utf8.allSatisfy({ $0 >= 0x30 && $0 <= 0x39 }) else { return nil }
  return Int(text)
}
