import Contract
import Crypto
import CryptoExtras
import MediaModel
import Testing

@testable import ConclaveClient

/// Envelopes for devices of other makes: which key they are wrapped to, and by which algorithm.
struct EnvelopeTests {
  private let sender = DeviceIdentity(user: "alice", device: "phone")!
  private let rsa = try! _RSA.Encryption.PrivateKey(keySize: .bits2048)
  private let ecies = P256.KeyAgreement.PrivateKey()
  private let secret = SymmetricKey(size: .bits256)

  /// A device whose wrap key is RSA and whose join key is ECIES.
  private var receiver: (entry: ListEntry, keys: DeviceKeys) {
    let address = Device(user: UserID("bob")!, device: DeviceID("browser")!)
    let keys = DeviceKeys(
      address,
      keys: [
        DeviceKey(use: .wrap, alg: "RSA-OAEP-256", publicKey: Base64Bytes(Array(rsa.publicKey.derRepresentation))),
        sender.publicKeys.sign,
      ])!
    let joinKey = JoinKey(
      alg: "ECIES-P256-X963-SHA256-AESGCM", publicKey: Base64Bytes(Array(ecies.publicKey.derRepresentation)),
      at: Timestamp(milliseconds: 0), signature: Base64Bytes([]))
    let entry = ListEntry(
      user: address.user, device: address.device, participant: 2, joinId: Base64Bytes(Array(0..<16)), joinKey: joinKey,
      fingerprint: Base64Bytes(keys.fingerprint))
    return (entry, keys)
  }

  private func envelope(epoch: UInt32, for entry: ListEntry) -> Envelope? {
    .sealing(
      secret, for: entry, keys: receiver.keys,
      in: EnvelopeContext(call: CallID("c")!, epoch: epoch, listHash: [1]), from: sender)
  }

  @Test func epochOneGoesToTheDevicesKey() throws {
    let envelope = try #require(self.envelope(epoch: 1, for: receiver.entry))
    #expect(envelope.alg == "RSA-OAEP-256")
    let opened = try rsa.decrypt(envelope.ciphertext.bytes, padding: .PKCS1_OAEP_SHA256)
    #expect(SymmetricKey(data: opened) == secret)
  }

  @Test func laterEpochsGoToTheJoinKey() throws {
    let envelope = try #require(self.envelope(epoch: 2, for: receiver.entry))
    #expect(envelope.alg == "ECIES-P256-X963-SHA256-AESGCM")
    #expect(SymmetricKey(data: try ECIES.open(envelope.ciphertext.bytes, with: ecies)) == secret)
  }

  @Test func withoutAJoinKeyTheDevicesKeyHasToDo() throws {
    var entry = receiver.entry
    entry.joinKey = nil
    #expect(envelope(epoch: 2, for: entry)?.alg == "RSA-OAEP-256")
  }

  @Test func anUnknownAlgorithmGetsNone() throws {
    var entry = receiver.entry
    entry.joinKey?.alg = "ML-KEM-768"
    #expect(envelope(epoch: 2, for: entry) == nil)
  }
}
