import Crypto
import CryptoExtras
import Foundation
import Testing

@testable import ConclaveServer

private let message = Array("conclave-admission-v1".utf8)

/// Words of devices, signed with swift-crypto like clients do (protocol section 5.13).
struct DeviceSignatureTests {
  private func isValid(_ algorithm: String, _ key: some Collection<UInt8>, _ signature: some Collection<UInt8>) -> Bool
  {
    DeviceSignature(bytes: Array(signature), message: message).isValid(algorithm: algorithm, publicKey: Array(key))
  }

  private func pss(_ key: _RSA.Signing.PrivateKey) throws -> Data {
    try key.signature(for: SHA256.hash(data: message), padding: .PSS).rawRepresentation
  }

  @Test func eachAlgorithmChecksSignaturesOfItsOwnKeysAlone() throws {
    let p256 = P256.Signing.PrivateKey()
    let rsa = try _RSA.Signing.PrivateKey(keySize: .bits2048)
    let ed25519 = Curve25519.Signing.PrivateKey()
    let ed25519Prefix: [UInt8] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00]
    let keys = [
      ("ES256", Array(p256.publicKey.derRepresentation), try p256.signature(for: message).rawRepresentation),
      ("PS256", Array(rsa.publicKey.derRepresentation), try pss(rsa)),
      ("EdDSA", ed25519Prefix + ed25519.publicKey.rawRepresentation, try ed25519.signature(for: message)),
    ]
    for (algorithm, key, signature) in keys {
      #expect(isValid(algorithm, key, signature), "\(algorithm)")
      for (other, otherKey, otherSignature) in keys where other != algorithm {
        #expect(!isValid(algorithm, otherKey, signature) && !isValid(algorithm, key, otherSignature))
        #expect(!isValid(other, key, signature))
      }
      for unknown in ["", "none", "RS256", algorithm.lowercased()] { #expect(!isValid(unknown, key, signature)) }
      for index in [0, signature.count / 2, signature.count - 1] {
        var changed = signature
        changed[index] ^= 1
        #expect(!isValid(algorithm, key, changed), "\(algorithm), byte \(index)")
      }
      // Bytes are missing, or follow the key or the signature.
      #expect(!isValid(algorithm, key.dropLast(), signature) && !isValid(algorithm, key + [0], signature))
      #expect(!isValid(algorithm, key, signature.dropLast()) && !isValid(algorithm, key, signature + [0]))
      #expect(!isValid(algorithm, [], signature) && !isValid(algorithm, key, []))
    }
  }

  @Test func theSizeOfAnRSAKeyHasBounds() throws {
    for (bits, isAllowed) in [(1_024, false), (2_048, true), (4_096, true)] {
      let key = try _RSA.Signing.PrivateKey(unsafeKeySize: .init(bitCount: bits))
      #expect(try isValid("PS256", key.publicKey.derRepresentation, pss(key)) == isAllowed, "\(bits) bits")
    }
    // One bit more than 4,096; no signature is needed.
    let longer = try _RSA.Signing.PublicKey(n: [1] + [UInt8](repeating: 0xff, count: 512), e: [1, 0, 1])
    #expect(!isValid("PS256", longer.derRepresentation, [UInt8](repeating: 1, count: 513)))
  }

  /// A signature by PKCS #1 v1.5 has another algorithm.
  @Test func otherFormsOfASignatureAreRefused() throws {
    let rsa = try _RSA.Signing.PrivateKey(keySize: .bits2048)
    let pkcs1 = try rsa.signature(for: SHA256.hash(data: message), padding: .insecurePKCS1v1_5).rawRepresentation
    #expect(!isValid("PS256", rsa.publicKey.derRepresentation, pkcs1))
    // PKCS #1's own form of a key, without the algorithm.
    #expect(try !isValid("PS256", rsa.publicKey.pkcs1DERRepresentation, pss(rsa)))
  }
}
