import Contract
import Crypto
import MediaModel
import Octets
import Recording
import SFrame

/// The keys of some of one sender's tracks in one epoch: where they belong.
struct TrackKeyScope: Sendable {
  var epoch: UInt32
  /// The epoch's, 32 bytes.
  var listHash: [UInt8]
  var participant: ParticipantNumber
  /// The fingerprint of the sender's device, 32 bytes.
  var fingerprint: [UInt8]
  /// The sender's stay, 16 bytes.
  var joinId: [UInt8]

  fileprivate func context(of statement: [UInt8], _ tracks: [UInt8]) -> Transcript {
    .trackKeyContext(
      statement: statement, epoch: epoch, listHash: listHash, participant: participant, fingerprint: fingerprint,
      joinId: joinId, tracks: tracks)
  }
}

extension ExportTrackKeys {
  fileprivate static let info = "conclave-track-key-v1"

  /// Seals the keys of `tracks`, n by n, to the recording's key, and signs them; none is allowed.
  static func sealing(
    _ secrets: [UInt8: FrameSecret], _ scope: TrackKeyScope, of statement: SignedStatement,
    by identity: DeviceIdentity
  ) -> ExportTrackKeys? {
    let tracks = secrets.keys.sorted()
    var plaintext: [UInt8] = []
    for (n, secret) in secrets.sorted(by: { $0.key < $1.key }) {
      plaintext.append(n)
      secret.key.withUnsafeBytes { plaintext += $0 }
      secret.salt.withUnsafeBytes { plaintext += $0 }
    }
    let context = scope.context(of: statement.hash, tracks)
    guard !tracks.contains(0),
      let ciphertext = RecordingKey.seal(
        plaintext, to: statement.publicKey, info: info, authenticating: context)
    else { return nil }
    let sealed = Base64Bytes(ciphertext)
    let transcript = Transcript.trackKeys(context: context, ciphertextHash: sealed.sha256)
    return ExportTrackKeys(
      recording: statement.id, epoch: scope.epoch, tracks: tracks, ciphertext: sealed,
      sigAlg: SignAlgorithm.es256.rawValue, signature: Base64Bytes(identity.sign(transcript.bytes)))
  }
}

extension RecordingRuns {
  /// Whether `signer`, the starter's device in the place `scope`, has signed that it goes on recording. The keys in it are for readers.
  func isWord(_ scope: TrackKeyScope, of statement: SignedStatement, from signer: RecordingSigner) -> Bool {
    guard recording == statement.id, epoch == scope.epoch, participant == scope.participant else { return false }
    let transcript = Transcript.trackKeys(
      context: scope.context(of: statement.hash, tracks), ciphertextHash: ciphertext.sha256)
    return signer.signed(transcript.bytes, sigAlg, signature)
  }
}

extension TrackKeys {
  private static let entryBytes = 1 + FrameSecret.byteCount

  /// The secrets by n; nil if they are not signed by this sender for this place, or do not open.
  func opened(
    _ scope: TrackKeyScope, of statement: SignedStatement, with key: RecordingKey, from signer: RecordingSigner
  ) -> [UInt8: FrameSecret]? {
    let context = scope.context(of: statement.hash, tracks)
    let transcript = Transcript.trackKeys(context: context, ciphertextHash: ciphertext.sha256)
    guard zip(tracks, tracks.dropFirst()).allSatisfy({ $0 < $1 }), !tracks.contains(0),
      signer.signed(transcript.bytes, sigAlg, signature),
      let plaintext = key.open(ciphertext.bytes, info: ExportTrackKeys.info, authenticating: context),
      plaintext.count == tracks.count * Self.entryBytes
    else { return nil }
    var secrets: [UInt8: FrameSecret] = [:]
    for (place, n) in tracks.enumerated() {
      let entry = plaintext[place * Self.entryBytes..<(place + 1) * Self.entryBytes]
      guard entry.first == n, let secret = FrameSecret(entry.dropFirst()) else { return nil }
      secrets[n] = secret
    }
    return secrets
  }
}

extension FrameSecret {
  /// Bytes of key and salt, as they are handed out.
  static var byteCount: Int { Epoch.suite.keyByteCount + CipherSuite.nonceByteCount }

  /// key ‖ salt.
  init?(_ bytes: some Collection<UInt8>) {
    self.init(
      suite: Epoch.suite, key: SymmetricKey(data: Array(bytes.prefix(Epoch.suite.keyByteCount))),
      salt: SymmetricKey(data: Array(bytes.dropFirst(Epoch.suite.keyByteCount))))
  }
}
