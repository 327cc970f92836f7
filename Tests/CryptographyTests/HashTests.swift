import Cryptography
import Testing

struct HashTests {
  /// RFC 1321 appendix A.5 and the examples of FIPS 180-4.
  @Test(
    arguments: [
      (.md5, "d41d8cd98f00b204e9800998ecf8427e", "900150983cd24fb0d6963f7d28e17f72"),
      (.sha1, "da39a3ee5e6b4b0d3255bfef95601890afd80709", "a9993e364706816aba3e25717850c26c9cd0d89d"),
      (
        .sha256, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
      ),
      (
        .sha384, "38b060a751ac96384cd9327eb1b1e36a21fdb71114be07434c0cc7bf63f6e1da274edebfe76f65fbd51ad2f14898b95b",
        "cb00753f45a35e8bb5a03d699ac65007272c32ab0eded1631a8b605a43ff5bed8086072ba1e7cc2358baeca134c825a7"
      ),
      (
        .sha512,
        "cf83e1357eefb8bdf1542850d66d8007d620e4050b5715dc83f4a921d36ce9ce47d0d13c5d85f2b0ff8318d2877eec2f63b931bd47417a81a538327af927da3e",
        "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f"
      ),
    ] as [(HashAlgorithm, String, String)])
  func digestsAreThoseOfTheStandards(hash: HashAlgorithm, empty: String, abc: String) {
    #expect(hex(hash.digest(of: [])) == empty)
    #expect(hex(hash.digest(of: "abc".utf8)) == abc)
    // A collection whose bytes are not contiguous.
    #expect(hex(hash.digest(of: ([96, 97, 98] as [UInt8]).lazy.map { $0 + 1 })) == abc)
    #expect(hash.byteCount == abc.utf8.count / 2)
  }

  struct CodeVector: Sendable {
    var key: [UInt8]
    var message: [UInt8]
    var sha256, sha384, sha512: String
  }

  /// RFC 4231 section 4, the cases 1 to 4, 6 and 7.
  static let codeVectors = [
    CodeVector(
      key: [UInt8](repeating: 0x0b, count: 20), message: Array("Hi There".utf8),
      sha256: "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7",
      sha384: "afd03944d84895626b0825f4ab46907f15f9dadbe4101ec682aa034c7cebc59cfaea9ea9076ede7f4af152e8b2fa9cb6",
      sha512:
        "87aa7cdea5ef619d4ff0b4241a1d6cb02379f4e2ce4ec2787ad0b30545e17cdedaa833b7d6b8a702038b274eaea3f4e4be9d914eeb61f1702e696c203a126854"
    ),
    CodeVector(
      key: Array("Jefe".utf8), message: Array("what do ya want for nothing?".utf8),
      sha256: "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
      sha384: "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e8e2240ca5e69e2c78b3239ecfab21649",
      sha512:
        "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea2505549758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
    ),
    CodeVector(
      key: [UInt8](repeating: 0xaa, count: 20), message: [UInt8](repeating: 0xdd, count: 50),
      sha256: "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe",
      sha384: "88062608d3e6ad8a0aa2ace014c8a86f0aa635d947ac9febe83ef4e55966144b2a5ab39dc13814b94e3ab6e101a34f27",
      sha512:
        "fa73b0089d56a284efb0f0756c890be9b1b5dbdd8ee81a3655f83e33b2279d39bf3e848279a722c806b485a47e67c807b946a337bee8942674278859e13292fb"
    ),
    CodeVector(
      key: Array(1...25), message: [UInt8](repeating: 0xcd, count: 50),
      sha256: "82558a389a443c0ea4cc819899f2083a85f0faa3e578f8077a2e3ff46729665b",
      sha384: "3e8a69b7783c25851933ab6290af6ca77a9981480850009cc5577c6e1f573b4e6801dd23c4a7d679ccf8a386c674cffb",
      sha512:
        "b0ba465637458c6990e5a8c5f61d4af7e576d97ff94b872de76f8050361ee3dba91ca5c11aa25eb4d679275cc5788063a5f19741120c4f2de2adebeb10a298dd"
    ),
    CodeVector(
      key: [UInt8](repeating: 0xaa, count: 131),
      message: Array("Test Using Larger Than Block-Size Key - Hash Key First".utf8),
      sha256: "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54",
      sha384: "4ece084485813e9088d2c63a041bc5b44f9ef1012a2b588f3cd11f05033ac4c60c2ef6ab4030fe8296248df163f44952",
      sha512:
        "80b24263c7c1a3ebb71493c1dd7be8b49b46d1f41b4aeec1121b013783f8f3526b56d037e05f2598bd0fd2215d6a1e5295e64f73f63f0aec8b915a985d786598"
    ),
    CodeVector(
      key: [UInt8](repeating: 0xaa, count: 131),
      message: Array(
        "This is a test using a larger than block-size key and a larger than block-size data. The key needs to be hashed before being used by the HMAC algorithm."
          .utf8),
      sha256: "9b09ffa71b942fcb27635fbcd5b0e944bfdc63644f0713938a7f51535c3a35e2",
      sha384: "6617178e941f020d351e2f254e8fd32c602420feb0b8fb9adccebb82461e99c5a678cc31e799176d3860e6110c46523e",
      sha512:
        "e37b6a775dc87dbaa4dfa9f96e5e3ffddebd71f8867289865df5a32d20cdc944b6022cac3c4982b10d5eeb55c3e4de15134676fb6de0446065c97440fa8c6a58"
    ),
  ]

  @Test(arguments: codeVectors.indices) func codesAreThoseOfTheRFC(_ index: Int) {
    let vector = Self.codeVectors[index]
    let key = SecretKey(vector.key)
    for (hash, expected) in [
      (HashAlgorithm.sha256, vector.sha256), (.sha384, vector.sha384), (.sha512, vector.sha512),
    ] {
      let code = hash.authenticationCode(of: vector.message, key: key)
      #expect(hex(code) == expected)
      #expect(hash.isAuthenticationCode(code, of: vector.message, key: key))
      for bit in 0..<8 * code.count {
        var changed = code
        changed[bit / 8] ^= 1 << UInt8(bit % 8)
        #expect(!hash.isAuthenticationCode(changed, of: vector.message, key: key), "bit \(bit)")
      }
      // RFC 4231 also has a truncated code. Here only the whole code is valid.
      for count in 0..<code.count {
        #expect(!hash.isAuthenticationCode(Array(code.prefix(count)), of: vector.message, key: key))
      }
      #expect(!hash.isAuthenticationCode(code + [0], of: vector.message, key: key))
    }
  }

  /// RFC 2202 section 3, the cases 1, 2 and 6.
  @Test func codesBySHA1AreThoseOfTheRFC() {
    let vectors: [([UInt8], String, String)] = [
      ([UInt8](repeating: 0x0b, count: 20), "Hi There", "b617318655057264e28bc0b6fb378c8ef146be00"),
      (Array("Jefe".utf8), "what do ya want for nothing?", "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79"),
      (
        [UInt8](repeating: 0xaa, count: 80), "Test Using Larger Than Block-Size Key - Hash Key First",
        "aa4ae5e15272d00e95705637ce8a3b55ed402112"
      ),
    ]
    for (key, message, code) in vectors {
      #expect(hex(HashAlgorithm.sha1.authenticationCode(of: message.utf8, key: SecretKey(key))) == code)
    }
  }

  /// RFC 7515 appendix A.1.
  @Test func theSignatureOfATokenIsThatOfTheRFC() {
    let key = SecretKey(
      bytes(base64URL: "AyM1SysPpbyDfgZld3umj1qzKObwVMkoqQ-EstJQLr_T-1qS0gZH75aKtMN3Yj0iPS4hcgUuTwjAzZr1Z9CAow"))
    let signed =
      "eyJ0eXAiOiJKV1QiLA0KICJhbGciOiJIUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
    let code = bytes(base64URL: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk")
    #expect(HashAlgorithm.sha256.isAuthenticationCode(code, of: signed.utf8, key: key))
    #expect(!HashAlgorithm.sha256.isAuthenticationCode(code, of: (signed + "A").utf8, key: key))
  }

  /// The key and the message may be empty: the code is still the HMAC.
  @Test func anEmptyKeyHasACode() {
    let code = HashAlgorithm.sha256.authenticationCode(of: [], key: SecretKey([]))
    #expect(hex(code) == "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad")
  }
}
