import Contract
import Crypto
import CryptoExtras
import MediaModel
import Testing

@testable import ConclaveClient

/// Envelopes for devices with other clients: which key they are wrapped to, and by which algorithm.
struct EnvelopeTests {
  private let sender = DeviceIdentity(user: "alice", device: "phone")!
  private let rsa = try! _RSA.Encryption.PrivateKey(keySize: .bits2048)
  private let ecies = P256.KeyAgreement.PrivateKey()
  private let secret = SymmetricKey(size: .bits256)

  private func envelope(_ alg: String, _ publicKey: [UInt8]) -> Envelope? {
    .sealing(
      secret, for: Device(user: UserID("bob")!, device: DeviceID("browser")!), alg: alg, publicKey: publicKey,
      in: EnvelopeContext(call: KeyWorld.call, epoch: 2, listHash: [1]), from: sender)
  }

  @Test func aKeyOfRSAIsSealedTo() throws {
    let envelope = try #require(self.envelope("RSA-OAEP-256", Array(rsa.publicKey.derRepresentation)))
    #expect(envelope.alg == "RSA-OAEP-256")
    #expect(envelope.key.bytes == Array(SHA256.hash(data: rsa.publicKey.derRepresentation)))
    let opened = try rsa.decrypt(envelope.ciphertext.bytes, padding: .PKCS1_OAEP_SHA256)
    #expect(SymmetricKey(data: opened) == secret)
  }

  @Test func aKeyOfAnIPhoneIsSealedTo() throws {
    let alg = "ECIES-P256-X963-SHA256-AESGCM"
    let envelope = try #require(self.envelope(alg, Array(ecies.publicKey.derRepresentation)))
    #expect(envelope.alg == alg)
    #expect(SymmetricKey(data: try ECIES.open(envelope.ciphertext.bytes, with: ecies)) == secret)
  }

  @Test func anUnknownAlgorithmGetsNone() {
    #expect(envelope("ML-KEM-768", Array(ecies.publicKey.derRepresentation)) == nil)
  }
}
