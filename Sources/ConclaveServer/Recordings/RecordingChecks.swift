import CallMessages
import Contract
import Cryptography
import MediaModel
import Octets
import Recording
import ReelStore

/// Checks the statements of a device about recordings with the keys that it registered (protocol section 13.1). The server opens none of it.
struct RecordingChecks {
  static let maximumNotes: UInt32 = 1_000
  /// HPKE's key, the longest padded text and the tag.
  static let maximumNoteBytes = 65 + 2_048 + 16
  private static let maximumSealedKey = 1_024
  /// Bytes of an algorithm's name, as of registered keys.
  private static let maximumName = 64

  /// The signing device.
  let device: Device
  let fingerprint: [UInt8]
  let signKey: DeviceKey

  /// nil if the device has no key for signatures.
  init?(_ device: Device, fingerprint: Base64Bytes, keys: [DeviceKey]) {
    guard let key = keys.first(where: { $0.use == .sign }) else { return nil }
    self.device = device
    self.fingerprint = fingerprint.bytes
    signKey = key
  }

  static func hash(of statement: RecordingStatement, fingerprint: [UInt8]) -> [UInt8] {
    HashAlgorithm.sha256.digest(of: Transcript.recording(statement, fingerprint: fingerprint).bytes)
  }

  func hash(of statement: RecordingStatement) -> [UInt8] { Self.hash(of: statement, fingerprint: fingerprint) }

  private func isSigned(_ transcript: Transcript, _ algorithm: String, _ signature: Base64Bytes) -> Bool {
    algorithm == signKey.alg
      && DeviceSignature(bytes: signature.bytes, message: transcript.bytes)
        .isValid(algorithm: algorithm, publicKey: signKey.publicKey.bytes)
  }

  func check(_ statement: RecordingStatement) throws(RequestError) {
    func require(_ holds: Bool, _ field: String, _ rule: String) throws(RequestError) {
      guard holds else { throw RequestError(.requestInvalid, rule, field: "statement.\(field)") }
    }
    try require(statement.kind != .call, "kind", "a device records a message, or for itself (own)")
    try require(statement.by == device, "by", "the device that sends the statement signs it")
    try require(
      !statement.media.isEmpty && Set(statement.media).count == statement.media.count, "media",
      "name what is recorded, each medium once")
    try require(
      statement.readers.count <= RecordingStore.maximumReaders
        && Set(statement.readers).count == statement.readers.count,
      "readers", "at most \(RecordingStore.maximumReaders) readers, each once")
    try require(
      ECPublicKey(p256SPKI: statement.publicKey.bytes) != nil, "publicKey", "take a P-256 key as SPKI (RFC 5480)")
    try require(
      isSigned(.recording(statement, fingerprint: fingerprint), statement.sigAlg, statement.signature), "signature",
      "it is not this device's signature over the statement")
  }

  /// - Parameter hash: the statement's.
  func check(_ key: ReelKey, reel: UInt32, statement hash: [UInt8]) throws(RequestError) {
    guard key.ciphertext.bytes.count <= Self.maximumSealedKey,
      isSigned(
        .reelKey(
          statement: hash, reel: reel, fingerprint: fingerprint, ciphertextHash: digest(key.ciphertext)),
        key.sigAlg, key.signature)
    else {
      throw RequestError(.requestInvalid, "it is not signed by this device for this statement", field: "reelKey")
    }
  }

  /// - Parameter hash: the statement's.
  func check(_ grants: [RecordingGrant], of id: RecordingID, statement hash: [UInt8]) throws(RequestError) {
    var counts: [UserID: Int] = [:]
    for grant in grants {
      counts[grant.to.user, default: 0] += 1
      guard grant.recording == id, grant.from == device, grant.key.bytes.count == 32,
        grant.ciphertext.bytes.count <= Self.maximumSealedKey, grant.alg.utf8.count <= Self.maximumName,
        isSigned(
          .grant(grant, statement: hash, ciphertextHash: digest(grant.ciphertext)), grant.sigAlg, grant.signature)
      else { throw RequestError(.requestInvalid, "a grant is signed by the device that sends it", field: "grants") }
    }
    guard counts.count <= RecordingStore.maximumReaders,
      counts.values.allSatisfy({ $0 <= RecordingStore.maximumGrants })
    else { throw RequestError(RecordingRefusal.grants) }
  }

  /// - Parameter hash: the statement's.
  func check(_ note: RecordingNote, statement hash: [UInt8], field: String) throws(RequestError) {
    guard note.number < Self.maximumNotes, note.ciphertext.bytes.count <= Self.maximumNoteBytes,
      isSigned(
        .note(statement: hash, number: note.number, ciphertextHash: digest(note.ciphertext)), note.sigAlg,
        note.signature)
    else {
      throw RequestError(
        .requestInvalid, "a note is numbered below \(Self.maximumNotes) and signed by the recording's device",
        field: field)
    }
  }

  /// - Parameter hash: the statement's.
  func isSigned(_ witness: ReelWitness, statement hash: [UInt8]) -> Bool {
    isSigned(.witness(witness, statement: hash), witness.sigAlg, witness.signature)
  }

  private func digest(_ ciphertext: Base64Bytes) -> [UInt8] { HashAlgorithm.sha256.digest(of: ciphertext.bytes) }
}

extension RecordingChecks {
  /// The device that began the recording, with the keys that it had then.
  init?(author record: RecordingRecord) {
    self.init(
      record.statement.by, fingerprint: record.author.fingerprint, keys: record.author.keys)
  }
}
