import Foundation
import Octets
import Seeded
import Testing

/// The headers of RFC 9605's test vectors; other members of the file are ignored.
private struct HeaderVectors: Decodable {
  struct Header: Decodable {
    var kid: UInt64
    var ctr: UInt64
    var encoded: String
  }

  var header: [Header]

  /// The file is in the tests of the cipher, which uses the rest of it.
  static let all = Result {
    let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let file = tests.appending(path: "SFrameTests/Vectors/test-vectors.json")
    return try JSONDecoder().decode(HeaderVectors.self, from: Data(contentsOf: file)).header
  }
}

struct SFrameHeaderTests {
  @Test func everyVectorEncodesAndParses() throws {
    #expect(try HeaderVectors.all.get().count == 289)
    for vector in try HeaderVectors.all.get() {
      let header = SFrameHeader(keyID: vector.kid, counter: vector.ctr)
      #expect(encoded(header) == bytes(vector.encoded))
      let parsed = try bytes(vector.encoded).withUnsafeBytes { try SFrameHeader(parsing: $0.bytes) }
      #expect(parsed == header)
      #expect(parsed.byteCount == vector.encoded.count / 2)
    }
  }

  @Test func everyTruncatedVectorIsRefused() throws {
    for vector in try HeaderVectors.all.get() {
      for count in 0..<vector.encoded.count / 2 {
        #expect(throws: SFrameHeaderError.truncated) { try parse(Array(bytes(vector.encoded).prefix(count))) }
      }
    }
  }

  /// H.264 inserts a 3 between two zeros and a byte below 4.
  @Test func everyVectorParsesBehindEmulationPrevention() throws {
    var escapes = 0
    for vector in try HeaderVectors.all.get() {
      let header = bytes(vector.encoded)
      let escaped = Self.escaped(header)
      escapes += escaped.count - header.count
      for rest in [[], [0, 0, 3, 1]] as [[UInt8]] {
        let frame = escaped + rest
        let parsed = try frame.withUnsafeBytes { try SFrameHeader(parsingEscaped: $0.bytes) }
        #expect(parsed == SFrameHeader(keyID: vector.kid, counter: vector.ctr))
      }
      // Each is a separate array, so that AddressSanitizer detects a read beyond its end.
      for count in 0..<header.count {
        let part = Array(Self.escaped(Array(header[..<count])))
        #expect(throws: SFrameHeaderError.truncated) {
          try part.withUnsafeBytes { try SFrameHeader(parsingEscaped: $0.bytes) }
        }
      }
    }
    #expect(escapes > 0)
  }

  private static func escaped(_ bytes: [UInt8]) -> [UInt8] {
    var escaped: [UInt8] = []
    for byte in bytes {
      if byte < 4, escaped.suffix(2) == [0, 0] { escaped.append(3) }
      escaped.append(byte)
    }
    return escaped
  }

  /// A value below 8 in the long form, and leading zero bytes, in the KID and in the counter.
  @Test(arguments: [
    "8007", "8000", "0807", "0800", "900010", "9000ff", "090010", "b0000000ff", "f00000000000000100",
    "0f0000000000000100",
  ])
  func longerEncodingsThanNeededAreRefused(_ hex: String) {
    #expect(throws: SFrameHeaderError.notMinimal) { try parse(bytes(hex)) }
  }

  @Test func noiseParsesToWhatItEncodesToOrNot() {
    var random = SeededGenerator(seed: 0x5f)
    for _ in 0..<50_000 {
      let noise = (0..<Int.random(in: 0...20, using: &random)).map { _ in UInt8.random(in: 0...255, using: &random) }
      guard let header = try? parse(noise) else { continue }
      #expect(encoded(header) == Array(noise.prefix(header.byteCount)))
    }
  }

  private func parse(_ bytes: [UInt8]) throws -> SFrameHeader {
    try bytes.withUnsafeBytes { try SFrameHeader(parsing: $0.bytes) }
  }

  private func encoded(_ header: SFrameHeader) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: SFrameHeader.maximumByteCount)
    let count = bytes.withUnsafeMutableBytes { header.write(into: $0) }
    return Array(bytes.prefix(count))
  }

  private func bytes(_ hex: String) -> [UInt8] {
    let digits = Array(hex.utf8)
    return stride(from: 0, to: digits.count, by: 2).compactMap {
      UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
    }
  }
}
