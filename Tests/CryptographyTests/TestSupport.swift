import COpenSSL
import Foundation

func bytes(hex: String) -> [UInt8] {
  let digits = Array(hex.utf8)
  return stride(from: 0, to: digits.count, by: 2).compactMap {
    UInt8(String(decoding: digits[$0..<$0 + 2], as: UTF8.self), radix: 16)
  }
}

func bytes(base64URL text: String) -> [UInt8] {
  let padding = String(repeating: "=", count: -text.utf8.count & 3)
  let base64 = text.replacing("-", with: "+").replacing("_", with: "/") + padding
  return Data(base64Encoded: base64).map(Array.init) ?? []
}

func hex(_ bytes: [UInt8]) -> String { bytes.map { String(format: "%02x", $0) }.joined() }

/// Whether OpenSSL keeps no error of this thread's earlier calls.
var hasNoErrors: Bool { ERR_peek_error() == 0 }
