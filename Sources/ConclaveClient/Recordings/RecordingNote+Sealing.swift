import Contract
import MediaModel
import Octets
import Recording

extension RecordingNote {
  private static let info = "conclave-note-v1"
  static let maximumBytes = 2_048
  static let maximumCount: UInt32 = 1_000
  private static let block = 256

  /// `json` as note `number`, padded with spaces so that its length says little; nil if it is longer than 2 KiB.
  static func sealing(
    _ json: [UInt8], number: UInt32, of statement: SignedStatement, by identity: DeviceIdentity
  ) -> RecordingNote? {
    guard !json.isEmpty, json.count <= maximumBytes, number < maximumCount else { return nil }
    let padding = [UInt8](repeating: UInt8(ascii: " "), count: (block - json.count % block) % block)
    guard
      let ciphertext = RecordingKey.seal(
        json + padding, to: statement.publicKey, info: info,
        authenticating: .noteContext(statement: statement.hash, number: number))
    else { return nil }
    let sealed = Base64Bytes(ciphertext)
    let transcript = Transcript.note(statement: statement.hash, number: number, ciphertextHash: sealed.sha256)
    return RecordingNote(
      number: number, ciphertext: sealed, sigAlg: SignAlgorithm.es256.rawValue,
      signature: Base64Bytes(identity.sign(transcript.bytes)))
  }

  /// The JSON, without its padding; nil if the starter's device has not signed it, or it does not open.
  func opened(of statement: SignedStatement, with key: RecordingKey, from signer: RecordingSigner) -> [UInt8]? {
    let transcript = Transcript.note(statement: statement.hash, number: number, ciphertextHash: ciphertext.sha256)
    guard number < Self.maximumCount, signer.signed(transcript.bytes, sigAlg, signature),
      let padded = key.open(
        ciphertext.bytes, info: Self.info,
        authenticating: .noteContext(statement: statement.hash, number: number))
    else { return nil }
    let end = padded.lastIndex { $0 != UInt8(ascii: " ") }.map { $0 + 1 } ?? 0
    return Array(padded[..<end])
  }
}
