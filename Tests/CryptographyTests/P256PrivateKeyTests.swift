import Cryptography
import Foundation
import Testing

struct P256PrivateKeyTests {
  @Test func aSignatureIsOfTheKeyAndTheMessage() throws {
    let key = P256PrivateKey()
    let publicKey = try #require(ECPublicKey(.p256, point: key.publicKey))
    let signatures = (0..<200).map { _ in key.signature(of: "sample".utf8) }
    // Some have a leading zero in r or s.
    #expect(signatures.allSatisfy { $0.count == 64 } && Set(signatures).count == 200)
    #expect(signatures.allSatisfy { publicKey.isSignature($0, of: "sample".utf8, hash: .sha256) })
    #expect(!publicKey.isSignature(signatures[0], of: "Sample".utf8, hash: .sha256))
    let other = try #require(ECPublicKey(.p256, point: P256PrivateKey().publicKey))
    #expect(!other.isSignature(signatures[0], of: "sample".utf8, hash: .sha256) && hasNoErrors)
  }

  @Test func aKeyIsReadAsItWasWritten() throws {
    let key = P256PrivateKey()
    let text = String(decoding: key.pem, as: UTF8.self)
    #expect(text.hasPrefix("-----BEGIN PRIVATE KEY-----\n") && text.hasSuffix("\n-----END PRIVATE KEY-----\n"))
    let again = try #require(P256PrivateKey(pem: key.pem))
    #expect(again.publicKey == key.publicKey && again.pem == key.pem && hasNoErrors)
  }

  /// The forms of one key, written by `openssl ecparam -genkey`, `pkcs8`, and `ec` with `-conv_form compressed` and `-no_public`.
  @Test(arguments: [
    """
    -----BEGIN EC PARAMETERS-----
    BggqhkjOPQMBBw==
    -----END EC PARAMETERS-----
    -----BEGIN EC PRIVATE KEY-----
    MHcCAQEEIMMjYIb7Qm5osKm/zCboWeuV73S8ymINZUXlDT4vC8qRoAoGCCqGSM49
    AwEHoUQDQgAES3AzxWMsqZndzy5otA6GecHWqFsvv4QLS2ILm78JWicGxrnu6yle
    ke6VvMKZLdhDL7iW9my4wOR88h4TYnDmyA==
    -----END EC PRIVATE KEY-----
    """,
    """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgwyNghvtCbmiwqb/M
    JuhZ65XvdLzKYg1lReUNPi8LypGhRANCAARLcDPFYyypmd3PLmi0DoZ5wdaoWy+/
    hAtLYgubvwlaJwbGue7rKV6R7pW8wpkt2EMvuJb2bLjA5HzyHhNicObI
    -----END PRIVATE KEY-----
    """,
    """
    -----BEGIN EC PRIVATE KEY-----
    MFcCAQEEIMMjYIb7Qm5osKm/zCboWeuV73S8ymINZUXlDT4vC8qRoAoGCCqGSM49
    AwEHoSQDIgACS3AzxWMsqZndzy5otA6GecHWqFsvv4QLS2ILm78JWic=
    -----END EC PRIVATE KEY-----
    """,
    """
    -----BEGIN EC PRIVATE KEY-----
    MDECAQEEIMMjYIb7Qm5osKm/zCboWeuV73S8ymINZUXlDT4vC8qRoAoGCCqGSM49
    AwEH
    -----END EC PRIVATE KEY-----
    """,
  ])
  func aKeyIsReadInEachForm(text: String) throws {
    let key = try #require(P256PrivateKey(pem: Array(text.utf8)))
    #expect(
      hex(key.publicKey)
        == "044b7033c5632ca999ddcf2e68b40e8679c1d6a85b2fbf840b4b620b9bbf095a2706c6b9eeeb295e91ee95bcc2992dd8432fb896f66cb8c0e47cf21e136270e6c8"
    )
    let publicKey = try #require(ECPublicKey(.p256, point: key.publicKey))
    #expect(publicKey.isSignature(key.signature(of: [1]), of: [1], hash: .sha256) && hasNoErrors)
  }

  /// With a password, for P-384, for Ed25519, with the public half of another key, with the private key 0.
  @Test(arguments: [
    """
    -----BEGIN ENCRYPTED PRIVATE KEY-----
    MIHsMFcGCSqGSIb3DQEFDTBKMCkGCSqGSIb3DQEFDDAcBAivh2zLKgauwgICCAAw
    DAYIKoZIhvcNAgkFADAdBglghkgBZQMEASoEEFE5GhoBm0W1DErhOG7Pub0EgZBL
    uQL0OwZchD81qopXvTvhH2K772XyflWKnaKnj65DiAF8anzD/n879GAnsPJuKf1f
    0FbBpntPBIQl01yPd7VxSsZxfyKV32mZEBOO9YRVLS3VouIkHYDSbOI/cM9fa+X4
    8w/WBYonrRbLPlBQfg8x0fkoB6J52OJrD2ldLxYijYXBqBfG7/VSYbWocbGT4JU=
    -----END ENCRYPTED PRIVATE KEY-----
    """,
    """
    -----BEGIN PRIVATE KEY-----
    MIG2AgEAMBAGByqGSM49AgEGBSuBBAAiBIGeMIGbAgEBBDBtpLdz6LSLvp/sPX+F
    3O8ASoYccICz4gG2Hv7z+xIJz6F9+5lnqobX1tpokSO/cpihZANiAAQWHFylv0mg
    nHcatYYNKGNxDL9zjeckSEN3SJrOE3VLpCcqqCVxsmM0LCz7r5mbXInbc9OFfyui
    Bc34BgwDqUmpk9kFGDA+evhMvxtiucUOIky8yeK0j1TNiWcY3PNbPmE=
    -----END PRIVATE KEY-----
    """,
    """
    -----BEGIN PRIVATE KEY-----
    MC4CAQAwBQYDK2VwBCIEIA/XcNXxlfp63gnBZgAw9SDRmtF2NXU+8LRx3ei0VetX
    -----END PRIVATE KEY-----
    """,
    """
    -----BEGIN EC PRIVATE KEY-----
    MHcCAQEEIMMjYIb7Qm5osKm/zCboWeuV73S8ymINZUXlDT4vC8qRoAoGCCqGSM49
    AwEHoUQDQgAEaxfR8uEsQkf4vOblY6RA8ncDfYEt6zOg9KE5RdiYwpZP40Li/hp/
    m47n60p8D54WK84zV2sxXs7LtkBoN79R9Q==
    -----END EC PRIVATE KEY-----
    """,
    """
    -----BEGIN EC PRIVATE KEY-----
    MDECAQEEIAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAoAoGCCqGSM49
    AwEH
    -----END EC PRIVATE KEY-----
    """,
    """
    -----BEGIN PRIVATE KEY-----
    MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgwyNghvtCbmiwqb/M
    -----END PRIVATE KEY-----
    """,
    "", "no key", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----\n-----END PRIVATE KEY-----\n", "\u{0}",
  ])
  func anythingElseIsNone(text: String) {
    #expect(P256PrivateKey(pem: Array(text.utf8)) == nil && hasNoErrors)
  }

  @Test func aHugeTextIsNone() {
    let key = P256PrivateKey().pem
    #expect(P256PrivateKey(pem: [UInt8](repeating: 10, count: 1_000) + key) != nil)
    #expect(P256PrivateKey(pem: [UInt8](repeating: 10, count: 64 << 10) + key) == nil && hasNoErrors)
  }

  @Test func aSecretIsSharedByBothSides() throws {
    let (alice, bob) = (P256PrivateKey(), P256PrivateKey())
    let ours = try #require(ECPublicKey(.p256, point: bob.publicKey).flatMap { alice.sharedSecret(with: $0) })
    let theirs = try #require(ECPublicKey(.p256, point: alice.publicKey).flatMap { bob.sharedSecret(with: $0) })
    let code = HashAlgorithm.sha256.authenticationCode(of: [1], key: ours)
    #expect(HashAlgorithm.sha256.isAuthenticationCode(code, of: [1], key: theirs))
    let other = try #require(ECPublicKey(.p384, point: ECDSATests.vectors[1].point))
    #expect(alice.sharedSecret(with: other) == nil && hasNoErrors)
  }
}

/// ECDH with Wycheproof's cases: points at which arithmetic goes wrong, and pairs of numbers that are not on the curve.
struct ECDHTests {
  private struct Vectors: Decodable {
    struct Group: Decodable { var tests: [Test] }
    struct Test: Decodable {
      var tcId: Int
      var `public`, `private`, shared, result: String
    }
    var testGroups: [Group]
  }

  /// SEC 1's private key with its curve, without the public half (RFC 5915 section 3).
  private func key(_ scalar: [UInt8]) -> P256PrivateKey? {
    let digits = Array(scalar.drop { $0 == 0 })
    let padded = [UInt8](repeating: 0, count: 32 - digits.count) + digits
    let der = bytes(hex: "30310201010420") + padded + bytes(hex: "a00a06082a8648ce3d030107")
    let text = Data(der).base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
    return P256PrivateKey(pem: Array("-----BEGIN EC PRIVATE KEY-----\n\(text)\n-----END EC PRIVATE KEY-----\n".utf8))
  }

  @Test func secretsAreThoseOfTheVectors() throws {
    let folder = URL(filePath: #filePath).deletingLastPathComponent()
    let file = folder.appending(path: "Vectors/ecdh_secp256r1_ecpoint_subset.json")
    let vectors = try JSONDecoder().decode(Vectors.self, from: Data(contentsOf: file)).testGroups.flatMap(\.tests)
    var (shared, refused) = (0, 0)
    for vector in vectors {
      let own = try #require(key(bytes(hex: vector.private)), "case \(vector.tcId)")
      guard vector.result == "valid" else {
        // Compressed points are "acceptable"; here they are refused.
        #expect(ECPublicKey(.p256, point: bytes(hex: vector.public)) == nil && hasNoErrors, "case \(vector.tcId)")
        refused += 1
        continue
      }
      let peer = try #require(ECPublicKey(.p256, point: bytes(hex: vector.public)), "case \(vector.tcId)")
      let secret = try #require(own.sharedSecret(with: peer), "case \(vector.tcId)")
      let code = HashAlgorithm.sha256.authenticationCode(of: [1], key: SecretKey(bytes(hex: vector.shared)))
      #expect(HashAlgorithm.sha256.isAuthenticationCode(code, of: [1], key: secret), "case \(vector.tcId)")
      shared += 1
    }
    #expect(shared == 11 && refused == 7)
  }
}
