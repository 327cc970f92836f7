import Contract
import Crypto
import MediaModel
import Octets
import Recording

/// A recording's statement whose signature was found good, or was made here. Its hash is in everything else that is signed about the recording.
struct SignedStatement: Sendable {
  static let maximumReaders = 64
  private static let maximumPublicKey = 256
  /// How far the signer's clock may be ahead of this one.
  private static let ahead: Int64 = 10 * 60_000

  let statement: RecordingStatement
  /// 32 bytes.
  let hash: [UInt8]
  /// The fingerprint of the device that signed.
  let fingerprint: [UInt8]

  var id: RecordingID { statement.id }
  /// SPKI.
  var publicKey: [UInt8] { statement.publicKey.bytes }

  /// Signs a new one. `statement.signature` is filled in.
  init(signing statement: RecordingStatement, by identity: DeviceIdentity) {
    var statement = statement
    statement.sigAlg = SignAlgorithm.es256.rawValue
    let transcript = Transcript.recording(statement, fingerprint: identity.fingerprint)
    statement.signature = Base64Bytes(identity.sign(transcript.bytes))
    self.statement = statement
    hash = transcript.sha256
    fingerprint = identity.fingerprint
  }

  /// Checks one that the server passed on. `now` is this device's clock.
  init(checking statement: RecordingStatement, by signer: RecordingSigner, now: Timestamp) throws(UnreadableRecording) {
    guard statement.isWellFormed, statement.publicKey.bytes.count <= Self.maximumPublicKey,
      (try? P256.KeyAgreement.PublicKey(derRepresentation: statement.publicKey.bytes)) != nil
    else { throw .malformed }
    let (latest, overflow) = now.milliseconds.addingReportingOverflow(Self.ahead)
    let transcript = Transcript.recording(statement, fingerprint: signer.fingerprint)
    guard statement.by == signer.address, !overflow, (0...max(0, latest)).contains(statement.at.milliseconds),
      signer.signed(transcript.bytes, statement.sigAlg, statement.signature)
    else { throw .notSigned }
    self.statement = statement
    hash = transcript.sha256
    fingerprint = signer.fingerprint
  }
}

extension RecordingStatement {
  fileprivate var isWellFormed: Bool {
    switch kind {
    case .call: guard call != nil else { return false }
    case .own: guard call == nil else { return false }
    case .message: break
    }
    return !media.isEmpty && Set(media).count == media.count
      && (1...SignedStatement.maximumReaders).contains(readers.count) && Set(readers).count == readers.count
  }
}
