package import Contract
package import MediaModel
package import Octets

/// The layouts of recordings (docs/e2ee.md, "Recordings"). A statement's hash is in each of the others, so each binds the key, the readers, the starter and the
/// call.
extension Transcript {
  /// Its hash is the statement's: label ‖ id ‖ u8(kind) ‖ lp(call, or nothing) ‖ lp(user) ‖ lp(device) ‖ fingerprint ‖ u64(at) ‖ u8(media) ‖ lp(SPKI) ‖
  /// u16(count) ‖ lp(reader) of each, ascending as bytes.
  /// - Parameter fingerprint: the signing device's, 32 bytes.
  package static func recording(_ statement: RecordingStatement, fingerprint: [UInt8]) -> Transcript {
    var transcript = Transcript("conclave-recording-v1")
    transcript.append(statement.id.bytes)
    transcript.append([statement.kind.code])
    transcript.appendPrefixed(statement.call?.text ?? "")
    transcript.appendPrefixed(statement.by.user.text)
    transcript.appendPrefixed(statement.by.device.text)
    transcript.append(fingerprint)
    transcript.append(UInt64(bitPattern: statement.at.milliseconds))
    transcript.append([statement.media.reduce(0) { $0 | $1.bit }])
    transcript.appendPrefixed(statement.publicKey.bytes)
    transcript.append(UInt16(truncatingIfNeeded: statement.readers.count).networkOrderBytes)
    for reader in statement.readers.sorted() { transcript.appendPrefixed(reader.text) }
    return transcript
  }

  /// The context in which a reel's first chain key is sealed: statement ‖ u32(reel) ‖ fingerprint.
  /// - Parameters:
  ///   - statement: its hash, 32 bytes.
  ///   - fingerprint: of the device that writes the reel, 32 bytes.
  package static func reelKeyContext(statement: [UInt8], reel: UInt32, fingerprint: [UInt8]) -> Transcript {
    var transcript = Transcript()
    transcript.append(statement)
    transcript.append(reel)
    transcript.append(fingerprint)
    return transcript
  }

  /// label ‖ context ‖ H(ciphertext).
  package static func reelKey(
    statement: [UInt8], reel: UInt32, fingerprint: [UInt8], ciphertextHash: [UInt8]
  ) -> Transcript {
    var transcript = Transcript("conclave-reel-key-v1")
    transcript.append(reelKeyContext(statement: statement, reel: reel, fingerprint: fingerprint).bytes)
    transcript.append(ciphertextHash)
    return transcript
  }

  /// label ‖ statement ‖ lp(from's user) ‖ lp(from's device) ‖ lp(to's user) ‖ lp(to's device, or nothing) ‖ lp(alg) ‖ key ‖ u64(at) ‖ H(ciphertext).
  /// - Parameter statement: its hash, 32 bytes.
  package static func grant(_ grant: RecordingGrant, statement: [UInt8], ciphertextHash: [UInt8]) -> Transcript {
    var transcript = Transcript("conclave-grant-v1")
    transcript.append(statement)
    transcript.appendPrefixed(grant.from.user.text)
    transcript.appendPrefixed(grant.from.device.text)
    transcript.appendPrefixed(grant.to.user.text)
    transcript.appendPrefixed(grant.to.device?.text ?? "")
    transcript.appendPrefixed(grant.alg)
    transcript.append(grant.key.bytes)
    transcript.append(UInt64(bitPattern: grant.at.milliseconds))
    transcript.append(ciphertextHash)
    return transcript
  }

  /// label ‖ statement ‖ u32(reel) ‖ u32(segments) ‖ head ‖ u64(at) ‖ u8(1 at the end).
  /// - Parameter statement: its hash, 32 bytes.
  package static func witness(_ witness: ReelWitness, statement: [UInt8]) -> Transcript {
    var transcript = Transcript("conclave-witness-v1")
    transcript.append(statement)
    transcript.append(witness.reel)
    transcript.append(witness.segments)
    transcript.append(witness.head.bytes)
    transcript.append(UInt64(bitPattern: witness.at.milliseconds))
    transcript.append([witness.isEnd ? 1 : 0])
    return transcript
  }

  /// The context in which a sender's track keys are sealed: statement ‖ u32(epoch) ‖ listHash ‖ u32(participant) ‖ fingerprint ‖ joinId ‖ u8(count) ‖ u8(n) of
  /// each.
  /// - Parameters:
  ///   - statement: its hash, 32 bytes.
  ///   - listHash: the epoch's, 32 bytes.
  ///   - participant: the sender's number, with the fingerprint of its device (32 bytes) and its stay (16 bytes).
  ///   - tracks: n of each, ascending.
  package static func trackKeyContext(
    statement: [UInt8], epoch: UInt32, listHash: [UInt8], participant: ParticipantNumber, fingerprint: [UInt8],
    joinId: [UInt8], tracks: [UInt8]
  ) -> Transcript {
    var transcript = Transcript()
    transcript.append(statement)
    transcript.append(epoch)
    transcript.append(listHash)
    transcript.append(participant)
    transcript.append(fingerprint)
    transcript.append(joinId)
    transcript.append([UInt8(truncatingIfNeeded: tracks.count)])
    transcript.append(tracks)
    return transcript
  }

  /// label ‖ context ‖ H(ciphertext).
  package static func trackKeys(context: Transcript, ciphertextHash: [UInt8]) -> Transcript {
    var transcript = Transcript("conclave-track-key-v1")
    transcript.append(context.bytes)
    transcript.append(ciphertextHash)
    return transcript
  }

  /// The context in which a note is sealed: statement ‖ u32(number).
  /// - Parameter statement: its hash, 32 bytes.
  package static func noteContext(statement: [UInt8], number: UInt32) -> Transcript {
    var transcript = Transcript()
    transcript.append(statement)
    transcript.append(number)
    return transcript
  }

  /// label ‖ context ‖ H(ciphertext).
  package static func note(statement: [UInt8], number: UInt32, ciphertextHash: [UInt8]) -> Transcript {
    var transcript = Transcript("conclave-note-v1")
    transcript.append(noteContext(statement: statement, number: number).bytes)
    transcript.append(ciphertextHash)
    return transcript
  }
}

extension RecordingKind {
  fileprivate var code: UInt8 {
    switch self {
    case .call: 1
    case .message: 2
    case .own: 3
    }
  }
}

extension RecordedMedium {
  fileprivate var bit: UInt8 {
    switch self {
    case .audio: 1
    case .video: 2
    case .screen: 4
    }
  }
}
