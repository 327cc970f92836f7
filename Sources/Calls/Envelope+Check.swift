import Contract
import MediaModel

extension Envelope {
  /// - Throws: `keys.too-large` over 4 KiB (protocol section 5, "Envelope"), `request.invalid` for another epoch, a key hash of another size, or an
  ///   algorithm name over 64 bytes.
  func check(epoch: UInt32, field: String) throws(RequestError) {
    guard self.epoch == epoch else {
      throw RequestError(.requestInvalid, "an envelope is of another epoch", field: "\(field).epoch")
    }
    guard ciphertext.bytes.count + (signature?.bytes.count ?? 0) <= 4_096 else {
      throw RequestError(.keysTooLarge, "an envelope has at most 4 KiB", field: field)
    }
    guard key.bytes.count == 32 else {
      throw RequestError(.requestInvalid, "key is the SHA-256 of a public key, 32 bytes", field: "\(field).key")
    }
    guard (1...64).contains(alg.utf8.count), (sigAlg?.utf8.count ?? 1) <= 64 else {
      throw RequestError(.requestInvalid, "an algorithm's name has 1 to 64 bytes", field: "\(field).alg")
    }
  }
}
