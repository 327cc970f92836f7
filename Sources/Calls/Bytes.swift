/// How the protocol writes what is hashed (section 5): numbers are big-endian, `lp(x)` is x behind its length in 2 bytes.
extension [UInt8] {
  mutating func appendBigEndian(_ number: UInt32) {
    for shift in stride(from: 24, through: 0, by: -8) { append(UInt8(truncatingIfNeeded: number >> UInt32(shift))) }
  }

  /// `part` is shorter than 65,536 bytes.
  mutating func appendPrefixed(_ part: some Collection<UInt8>) {
    append(UInt8(truncatingIfNeeded: part.count >> 8))
    append(UInt8(truncatingIfNeeded: part.count))
    append(contentsOf: part)
  }

  mutating func appendPrefixed(_ text: String) { appendPrefixed(text.utf8) }
}
