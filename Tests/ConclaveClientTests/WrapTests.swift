import Crypto
import CryptoExtras
import Foundation
import Testing

@testable import ConclaveClient

struct WrapTests {
  struct HPKEVector: Decodable {
    var kemId: Int
    var aeadId: Int
    var mode: Int
    var skR: String?
    var skRm: String?
    var info: String
    var enc: String
    var aad: String?
    var pt: String?
    var ct: String?
    var encryptions: [Message]?
    struct Message: Decodable {
      var pt: String
      var aad: String
      var ct: String
    }
  }

  @Test func theEnvelopeSuiteOpensTheVector() throws {
    let vector = try vectors("p256-sha256-aes256gcm-base", as: HPKEVector.self)
    let key = try P256.KeyAgreement.PrivateKey(rawRepresentation: bytes(#require(vector.skR)))
    var recipient = try HPKE.Recipient(
      privateKey: key, ciphersuite: SingleShotHPKE.suite, info: Data(bytes(vector.info)),
      encapsulatedKey: Data(bytes(vector.enc)))
    let opened = try recipient.open(bytes(#require(vector.ct)), authenticating: bytes(#require(vector.aad)))
    #expect(hex(opened) == vector.pt)
  }

  /// RFC 9180 appendix A.3 and similar vectors, base mode: the library that the envelopes use.
  @Test func theBaseModeVectorsForP256Open() throws {
    let all = try vectors("rfc9180-subset", as: [HPKEVector].self).filter { $0.kemId == 0x10 && $0.mode == 0 }
    #expect(all.count == 2)
    for vector in all {
      let key = try P256.KeyAgreement.PrivateKey(rawRepresentation: bytes(#require(vector.skRm)))
      var recipient = try HPKE.Recipient(
        privateKey: key,
        ciphersuite: .init(
          kem: .P256_HKDF_SHA256, kdf: .HKDF_SHA256, aead: vector.aeadId == 1 ? .AES_GCM_128 : .chaChaPoly),
        info: Data(bytes(vector.info)), encapsulatedKey: Data(bytes(vector.enc)))
      let first = try #require(vector.encryptions?.first)
      #expect(hex(try recipient.open(bytes(first.ct), authenticating: bytes(first.aad))) == first.pt)
    }
  }

  @Test func hpkeSealsForItsOwnKeyOnly() throws {
    let key = P256.KeyAgreement.PrivateKey()
    let secret = [UInt8](repeating: 9, count: 32)
    var sealed = try WrapAlgorithm.hpke.seal(secret, to: Array(key.publicKey.derRepresentation))
    #expect(sealed.count == 65 + 32 + 16)
    #expect(try WrapAlgorithm.open(sealed, with: key) == secret)
    #expect(throws: (any Error).self) { try WrapAlgorithm.open(sealed, with: P256.KeyAgreement.PrivateKey()) }
    sealed[70] ^= 1
    #expect(throws: (any Error).self) { try WrapAlgorithm.open(sealed, with: key) }
    for count in 0..<sealed.count {
      #expect(throws: (any Error).self) { try WrapAlgorithm.open(Array(sealed.prefix(count)), with: key) }
    }
  }

  struct ECIESFile: Decodable {
    struct Vector: Decodable {
      var skR: String
      var msg: String
      var pt: String?
      var ptUtf8: String?
    }
    var vectors: [Vector]
  }

  @Test func eciesOpensWhatAnIPhoneMade() throws {
    let all = try vectors("apple-ecies-p256-variableiv", as: ECIESFile.self).vectors
    #expect(all.count == 2)
    for vector in all {
      let key = try P256.KeyAgreement.PrivateKey(rawRepresentation: bytes(vector.skR))
      let expected = vector.pt.map(bytes) ?? Array(vector.ptUtf8!.utf8)
      #expect(try ECIES.open(bytes(vector.msg), with: key) == expected)
    }
  }

  @Test func eciesSealsWhatItOpens() throws {
    let key = P256.KeyAgreement.PrivateKey()
    let sealed = try WrapAlgorithm.ecies.seal([1, 2, 3], to: Array(key.publicKey.derRepresentation))
    #expect(sealed.count == 65 + 3 + 16)
    #expect(try ECIES.open(sealed, with: key) == [1, 2, 3])
    #expect(throws: (any Error).self) { try ECIES.open(Array(sealed.prefix(80)), with: key) }
  }

  struct RSAFile: Decodable {
    var pem: String
    var spkiHex: String
    var pt: String
    var ctPython: String
    var ctChrome: String
  }

  @Test func rsaSealsForTheVectorsKey() throws {
    let file = try vectors("rsa-oaep-aeskw-interop", as: RSAFile.self)
    let key = try _RSA.Encryption.PrivateKey(pemRepresentation: file.pem)
    for ciphertext in [file.ctPython, file.ctChrome] {
      #expect(hex(try key.decrypt(bytes(ciphertext), padding: .PKCS1_OAEP_SHA256)) == file.pt)
    }
    let sealed = try WrapAlgorithm.rsa.seal(bytes(file.pt), to: bytes(file.spkiHex))
    #expect(hex(try key.decrypt(sealed, padding: .PKCS1_OAEP_SHA256)) == file.pt)
  }

  @Test(arguments: [WrapAlgorithm.hpke, .rsa, .ecies])
  func aKeyThatIsNoneIsRefused(_ algorithm: WrapAlgorithm) {
    #expect(throws: (any Error).self) { try algorithm.seal([1], to: [1, 2, 3]) }
  }
}
