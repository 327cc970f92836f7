import Contract
import MediaModel

extension JoinKey {
  /// Times that a client of any language can write as a number.
  static let times: Range<Int64> = 0..<(1 << 53)

  /// - Throws: `request.invalid` when it can't be one. The server looks into neither the key nor the signature.
  func check() throws(RequestError) {
    guard (1...64).contains(alg.utf8.count), (1...4_096).contains(publicKey.bytes.count),
      (1...1_024).contains(signature.bytes.count), Self.times.contains(at.milliseconds)
    else {
      throw RequestError(
        .requestInvalid, "a joinKey has an alg of up to 64 bytes, an SPKI, a time `at` and its signature",
        field: "joinKey")
    }
  }
}
