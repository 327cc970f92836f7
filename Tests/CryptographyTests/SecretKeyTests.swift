import Cryptography
import Testing

/// Tests identify a key by an HMAC under it: no test reads its bytes.
private func isKey(_ key: SecretKey, _ expected: String) -> Bool {
  let code = HashAlgorithm.sha256.authenticationCode(of: [1], key: SecretKey(bytes(hex: expected)))
  return key.byteCount == expected.utf8.count / 2
    && HashAlgorithm.sha256.isAuthenticationCode(code, of: [1], key: key)
}

struct SecretKeyTests {
  /// RFC 5869 appendices A.1 to A.3.
  @Test func derivedKeysAreThoseOfTheRFC() {
    let short = SecretKey([UInt8](repeating: 0x0b, count: 22))
    #expect(
      isKey(
        short.derived(by: .sha256, salt: Array(0...12), info: Array(0xf0...0xf9), byteCount: 42),
        "3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf34007208d5b887185865"))
    #expect(
      isKey(
        SecretKey(Array(0x00...0x4f)).derived(
          by: .sha256, salt: Array(0x60...0xaf), info: Array(0xb0...0xff), byteCount: 82),
        "b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71cc30c58179ec3e87c14c01d5c1f3434f1d87"
      ))
    #expect(
      isKey(
        short.derived(by: .sha256, salt: [], info: [], byteCount: 42),
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"))
    #expect(short.derived(by: .sha256, salt: [], info: [], byteCount: 255 * 32).byteCount == 255 * 32)
  }

  /// The test cases 1 to 3 of the GCM specification (McGrew, Viega), which have no additional data.
  @Test(arguments: [
    ("00000000000000000000000000000000", "000000000000000000000000", "", "58e2fccefa7e3061367f1d57a4e7455a"),
    (
      "00000000000000000000000000000000", "000000000000000000000000", "00000000000000000000000000000000",
      "0388dace60b6a392f328c2b971b2fe78ab6e47d42cec13bdf53a67b21257bddf"
    ),
    (
      "feffe9928665731c6d6a8f9467308308", "cafebabefacedbaddecaf888",
      "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a721c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b391aafd255",
      "42831ec2217774244b7221b784d0d49ce3aa212f2c02a4e035c17e2329aca12e21d514b25466931c7d8f6a5aac84aa051ba30b396a0aac973d58e091473f59854d5c2af327cd64a62cf35abd2ba6fab4"
    ),
  ])
  func ciphertextsAreThoseOfTheSpecification(key: String, nonce: String, plaintext: String, sealed: String) {
    let key = SecretKey(bytes(hex: key))
    #expect(hex(key.seal(bytes(hex: plaintext), nonce: SecretKey(bytes(hex: nonce)))) == sealed)
  }

  @Test func aKeyIsNotPrinted() {
    let key = SecretKey(Array("open sesame".utf8))
    var text = "\(key) \(String(reflecting: key))"
    dump(key, to: &text)
    #expect(!text.contains("open") && !text.contains("111") && text.contains("11 bytes"))
  }

  @Test func aKeyOfTheWrongSizeIsAMistakeOfOurs() async {
    await #expect(processExitsWith: .failure) {
      _ = SecretKey([UInt8](repeating: 1, count: 15)).seal([], nonce: SecretKey([UInt8](repeating: 1, count: 12)))
    }
    await #expect(processExitsWith: .failure) {
      _ = SecretKey([1]).derived(by: .sha256, salt: [], info: [], byteCount: 255 * 32 + 1)
    }
  }
}
