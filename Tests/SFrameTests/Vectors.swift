import Foundation

/// The vectors of RFC 9605's repository (`Vectors/test-vectors.json`); other members of the file are ignored.
struct Vectors: Decodable {
  struct Header: Decodable {
    var kid: UInt64
    var ctr: UInt64
    var encoded: String
  }

  struct Frame: Decodable {
    var cipherSuite: UInt16
    var kid: UInt64
    var ctr: UInt64
    var baseKey: String
    var metadata: String
    var nonce: String
    var pt: String
    var ct: String
  }

  var header: [Header]
  var sframe: [Frame]

  static let all: Vectors = {
    let url = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Vectors/test-vectors.json")
    let decoder = JSONDecoder()
    decoder.keyDecodingStrategy = .convertFromSnakeCase
    return try! decoder.decode(Vectors.self, from: Data(contentsOf: url))
  }()
}

func bytes(_ hex: String) -> [UInt8] {
  let digits = Array(hex.utf8)
  return stride(from: 0, to: digits.count, by: 2).map {
    UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)!
  }
}

/// SplitMix64: a seeded source, so that a failing run can be repeated.
struct SeededGenerator: RandomNumberGenerator {
  var state: UInt64
  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var z = state
    z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
    z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
    return z ^ (z >> 31)
  }
}
