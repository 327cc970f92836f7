/// SHA-256, HMAC-SHA256 (RFC 2104) and the check of devices' signatures, injected because the state machines import no cryptographic library.
package struct Hashing: Sendable {
  /// The SHA-256 of the bytes.
  package let digest: @Sendable ([UInt8]) -> [UInt8]
  /// The HMAC-SHA256 of a message with a key.
  package let authenticationCode: @Sendable (_ message: [UInt8], _ key: [UInt8]) -> [UInt8]
  /// Whether a code belongs to a message and a key, compared in constant time.
  package let isValid: @Sendable (_ code: [UInt8], _ message: [UInt8], _ key: [UInt8]) -> Bool
  /// Whether a signature over a message was made with the private half of a key (SPKI), by one of the algorithms of protocol section 5.13.
  package let verifies:
    @Sendable (_ signature: [UInt8], _ message: [UInt8], _ algorithm: String, _ key: [UInt8]) -> Bool

  package init(
    digest: @escaping @Sendable ([UInt8]) -> [UInt8],
    authenticationCode: @escaping @Sendable (_ message: [UInt8], _ key: [UInt8]) -> [UInt8],
    isValid: @escaping @Sendable (_ code: [UInt8], _ message: [UInt8], _ key: [UInt8]) -> Bool,
    verifies:
      @escaping @Sendable (
        _ signature: [UInt8], _ message: [UInt8], _ algorithm: String, _ key: [UInt8]
      ) -> Bool
  ) {
    self.digest = digest
    self.authenticationCode = authenticationCode
    self.isValid = isValid
    self.verifies = verifies
  }
}
