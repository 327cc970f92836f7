import Foundation

/// A JSON file of `Vectors/`.
func vectors<Content: Decodable>(_ name: String, as type: Content.Type) throws -> Content {
  let url = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Vectors/\(name).json")
  let decoder = JSONDecoder()
  decoder.keyDecodingStrategy = .convertFromSnakeCase
  return try decoder.decode(type, from: Data(contentsOf: url))
}

func bytes(_ hex: String) -> [UInt8] {
  let digits = Array(hex.utf8)
  return stride(from: 0, to: digits.count, by: 2).map {
    UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)!
  }
}

func hex(_ bytes: some Sequence<UInt8>) -> String {
  bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
