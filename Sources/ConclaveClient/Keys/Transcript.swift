import Crypto

/// Bytes that are hashed or signed, put together as protocol section 5 writes them.
struct Transcript {
  private(set) var bytes: [UInt8]

  init(_ label: String) { bytes = Array(label.utf8) }

  mutating func append(_ raw: some Sequence<UInt8>) { bytes.append(contentsOf: raw) }

  /// A number in 4 big-endian bytes.
  mutating func append(_ number: UInt32) {
    for shift in [24, 16, 8, 0] as [UInt32] { bytes.append(UInt8(truncatingIfNeeded: number >> shift)) }
  }

  /// A number in 8 big-endian bytes.
  mutating func append(_ number: UInt64) {
    append(UInt32(truncatingIfNeeded: number >> 32))
    append(UInt32(truncatingIfNeeded: number))
  }

  /// `lp(x)`: x behind its length in 2 bytes. Ids and keys are far shorter than 64 KiB; a longer one keeps only its length's low bits and
  /// so fits no signature that an honest device made.
  mutating func appendPrefixed(_ value: some Collection<UInt8>) {
    bytes.append(UInt8(truncatingIfNeeded: value.count >> 8))
    bytes.append(UInt8(truncatingIfNeeded: value.count))
    bytes.append(contentsOf: value)
  }

  mutating func appendPrefixed(_ text: String) { appendPrefixed(text.utf8) }

  var sha256: [UInt8] { Array(SHA256.hash(data: bytes)) }
}
