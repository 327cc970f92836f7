import RTP

/// Bytes written in hexadecimal; spaces between them are ignored.
func bytes(_ hex: String) -> [UInt8] {
  let digits = hex.utf8.filter { $0 > UInt8(ascii: " ") }
  return stride(from: 0, to: digits.count, by: 2).map { nibble(digits[$0]) << 4 | nibble(digits[$0 + 1]) }
}

private func nibble(_ digit: UInt8) -> UInt8 {
  digit <= UInt8(ascii: "9") ? digit - UInt8(ascii: "0") : (digit | 0x20) - UInt8(ascii: "a") + 10
}

/// The bytes that `write` puts into a zeroed buffer of `capacity` bytes; it returns their number.
func written(capacity: Int = 1_500, _ write: (UnsafeMutableRawBufferPointer) -> Int) -> [UInt8] {
  var buffer = [UInt8](repeating: 0, count: capacity)
  let length = buffer.withUnsafeMutableBytes(write)
  return Array(buffer.prefix(length))
}

func parsed(_ packet: [UInt8]) -> RTPHeader? { packet.withUnsafeBytes { RTPHeader(parsing: $0.bytes) } }
