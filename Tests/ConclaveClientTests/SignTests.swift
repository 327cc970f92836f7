import Crypto
import CryptoExtras
import Testing

@testable import ConclaveClient

struct SignTests {
  static let message: [UInt8] = [1, 2, 3]

  @Test func es256IsVerified() throws {
    let key = P256.Signing.PrivateKey()
    let signature = Array(try key.signature(for: SHA256.hash(data: Self.message)).rawRepresentation)
    #expect(signature.count == 64)
    expectVerified(.es256, signature, Array(key.publicKey.derRepresentation))
  }

  @Test func ps256IsVerified() throws {
    let key = try _RSA.Signing.PrivateKey(keySize: .bits2048)
    let signature = Array(try key.signature(for: SHA256.hash(data: Self.message), padding: .PSS).rawRepresentation)
    expectVerified(.ps256, signature, Array(key.publicKey.derRepresentation))
  }

  @Test func edDSAIsVerified() throws {
    let key = Curve25519.Signing.PrivateKey()
    let prefix = bytes("302a300506032b6570032100")
    expectVerified(.edDSA, Array(try key.signature(for: Self.message)), prefix + key.publicKey.rawRepresentation)
  }

  private func expectVerified(_ algorithm: SignAlgorithm, _ signature: [UInt8], _ publicKey: [UInt8]) {
    #expect(algorithm.verifies(signature, of: Self.message, by: publicKey))
    #expect(!algorithm.verifies(signature, of: [1, 2, 4], by: publicKey))
    #expect(!algorithm.verifies(Array(signature.dropLast()), of: Self.message, by: publicKey))
    var altered = signature
    altered[10] ^= 1
    #expect(!algorithm.verifies(altered, of: Self.message, by: publicKey))
    for other in [SignAlgorithm.es256, .ps256, .edDSA] where other != algorithm {
      #expect(!other.verifies(signature, of: Self.message, by: publicKey))
    }
    #expect(!algorithm.verifies(signature, of: Self.message, by: Array(publicKey.dropLast())))
  }
}
