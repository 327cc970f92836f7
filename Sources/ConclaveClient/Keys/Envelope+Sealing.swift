import Contract
import Crypto
import MediaModel

/// Where an envelope belongs: what its signature binds beside the ciphertext (protocol section 5, "Envelope").
struct EnvelopeContext {
  /// Empty for an envelope that goes with a ring: the call has no id yet.
  var call: CallID
  var epoch: UInt32
  var listHash: [UInt8]
}

extension Envelope {
  /// Wraps `secret` for the device of `entry`, to its join key if there is one, else to its wrap key, and signs it; nil when the device's algorithm is
  /// not known here or its key is none.
  static func sealing(
    _ secret: SymmetricKey, for entry: ListEntry, keys: DeviceKeys, in context: EnvelopeContext,
    from identity: DeviceIdentity
  ) -> Envelope? {
    let alg = context.epoch >= 2 ? entry.joinKey?.alg ?? keys.wrap.alg : keys.wrap.alg
    let publicKey = context.epoch >= 2 ? entry.joinKey?.publicKey ?? keys.wrap.publicKey : keys.wrap.publicKey
    let bytes = secret.withUnsafeBytes { Array($0) }
    guard let ciphertext = try? WrapAlgorithm(rawValue: alg)?.seal(bytes, to: publicKey.bytes) else { return nil }
    var envelope = Envelope(
      epoch: context.epoch, to: entry.address, from: identity.address,
      key: Base64Bytes(Array(SHA256.hash(data: publicKey.bytes))), alg: alg, ciphertext: Base64Bytes(ciphertext),
      sigAlg: SignAlgorithm.es256.rawValue, signature: nil)
    envelope.signature = Base64Bytes(identity.sign(envelope.transcript(from: identity.address, in: context)))
    return envelope
  }

  /// The secret within, if `sender` signed the envelope for just this place. `privateKey` is the half of the key that it should be wrapped to.
  func opened(
    by recipient: Device, with privateKey: P256.KeyAgreement.PrivateKey, from sender: DeviceKeys,
    in context: EnvelopeContext
  ) throws(KeyRefusal) -> SymmetricKey {
    guard to == recipient, epoch == context.epoch, sigAlg == sender.sign.alg, let signature,
      sender.signed(transcript(from: sender.address, in: context), signature.bytes)
    else { throw .envelopeNotAuthentic }
    guard alg == WrapAlgorithm.hpke.rawValue,
      let secret = try? WrapAlgorithm.open(ciphertext.bytes, with: privateKey),
      secret.count == Epoch.secretByteCount
    else { throw .envelopeNotReadable }
    return SymmetricKey(data: secret)
  }

  private func transcript(from sender: Device, in context: EnvelopeContext) -> [UInt8] {
    var transcript = Transcript("conclave-envelope-v1")
    transcript.appendPrefixed(context.call.text)
    transcript.append(epoch)
    transcript.appendPrefixed(sender.user.text)
    transcript.appendPrefixed(sender.device.text)
    transcript.appendPrefixed(to.user.text)
    transcript.appendPrefixed(to.device.text)
    transcript.appendPrefixed(alg)
    transcript.append(SHA256.hash(data: ciphertext.bytes))
    transcript.append(context.listHash)
    return transcript.bytes
  }
}
