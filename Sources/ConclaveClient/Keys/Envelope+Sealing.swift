import Contract
import Crypto
import MediaModel
import Octets

/// Where an envelope belongs: the values that its signature binds in addition to the ciphertext (protocol section 5,
/// "Envelope").
struct EnvelopeContext {
  var call: CallID
  var epoch: UInt32
  var listHash: [UInt8]
}

extension Envelope {
  /// Wraps `secret` for a device, to one of its public keys, and signs it; nil if the algorithm is unknown here, the key is invalid or the secret is zeros.
  static func sealing(
    _ secret: SymmetricKey, for device: Device, alg: String, publicKey: [UInt8], in context: EnvelopeContext,
    from identity: DeviceIdentity
  ) -> Envelope? {
    let bytes = secret.withUnsafeBytes { Array($0) }
    guard bytes.contains(where: { $0 != 0 }),
      let ciphertext = try? WrapAlgorithm(rawValue: alg)?.seal(bytes, to: publicKey)
    else {
      return nil
    }
    var envelope = Envelope(
      epoch: context.epoch, to: device, from: identity.address,
      key: Base64Bytes(Array(SHA256.hash(data: publicKey))), alg: alg, ciphertext: Base64Bytes(ciphertext),
      sigAlg: SignAlgorithm.es256.rawValue, signature: nil)
    envelope.signature = Base64Bytes(identity.sign(envelope.transcript(from: identity.address, in: context)))
    return envelope
  }

  /// Whether `sender` signed the envelope for exactly this place and recipient.
  func isAuthentic(for recipient: Device, from sender: DeviceKeys, in context: EnvelopeContext) -> Bool {
    guard to == recipient, epoch == context.epoch, sigAlg == sender.sign.alg, let signature else { return false }
    return sender.signed(transcript(from: sender.address, in: context), signature.bytes)
  }

  /// The secret inside; `privateKey` is the private half of the key that it names.
  func opened(with privateKey: P256.KeyAgreement.PrivateKey) throws(KeyRefusal) -> SymmetricKey {
    guard alg == WrapAlgorithm.hpke.rawValue,
      let secret = try? WrapAlgorithm.open(ciphertext.bytes, with: privateKey),
      Epoch.isSecret(secret)
    else { throw .envelopeNotReadable }
    return SymmetricKey(data: secret)
  }

  func transcript(from sender: Device, in context: EnvelopeContext) -> [UInt8] {
    var transcript = Transcript("conclave-envelope-v2")
    transcript.appendPrefixed(context.call.text)
    transcript.append(epoch)
    transcript.appendPrefixed(sender.user.text)
    transcript.appendPrefixed(sender.device.text)
    transcript.appendPrefixed(to.user.text)
    transcript.appendPrefixed(to.device.text)
    transcript.appendPrefixed(alg)
    transcript.append(key.bytes)
    transcript.append(SHA256.hash(data: ciphertext.bytes))
    transcript.append(context.listHash)
    return transcript.bytes
  }
}
