import Foundation

/// The frames of RFC 9605's repository (`Vectors/test-vectors.json`); other members of the file are ignored;
/// `OctetsTests` reads the headers.
struct Vectors: Decodable {
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
