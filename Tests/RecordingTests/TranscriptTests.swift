import Contract
import Crypto
import MediaModel
import Octets
import Recording
import Testing

/// The signed and sealed bytes, against another implementation.
struct TranscriptTests {
  private let vectors = Vectors.all
  private var fingerprint: [UInt8] { vectors.devices[0].fingerprint.bytes }
  private var statement: [UInt8] { vectors.statements[0].statementHash.bytes }

  @Test func aStatementIsLaidOut() throws {
    #expect(Set(vectors.statements.map(\.statement.kind)) == Set(RecordingKind.allCases))
    for vector in vectors.statements {
      let transcript = Transcript.recording(vector.statement, fingerprint: fingerprint)
      #expect(transcript.bytes == vector.signed.bytes && sha256(transcript.bytes) == vector.statementHash.bytes)
      try expectSignature(vector.statement.signature, of: transcript)
    }
  }

  /// The order of the readers, and of the media, is the list's on the wire only.
  @Test func aStatementsListsHaveNoOrder() {
    for vector in vectors.statements {
      var statement = vector.statement
      statement.readers.reverse()
      statement.media.reverse()
      #expect(Transcript.recording(statement, fingerprint: fingerprint).bytes == vector.signed.bytes)
    }
  }

  @Test func eachMemberOfAStatementIsSigned() throws {
    let signed = vectors.statements[0].signed.bytes
    let changes: [(inout RecordingStatement) -> Void] = [
      { $0.kind = .own }, { $0.call = nil }, { $0.publicKey.bytes[80] ^= 1 }, { $0.media = [.audio] },
      { $0.readers.append(UserID("carol")!) }, { $0.at.milliseconds += 1 }, { $0.by.user = UserID("bob")! },
      { $0.by.device = DeviceID("laptop")! }, { $0.id = RecordingID([UInt8](repeating: 1, count: 16))! },
    ]
    for (place, change) in changes.enumerated() {
      var statement = vectors.statements[0].statement
      change(&statement)
      #expect(Transcript.recording(statement, fingerprint: fingerprint).bytes != signed, "change \(place)")
    }
    #expect(Transcript.recording(vectors.statements[0].statement, fingerprint: statement).bytes != signed)
  }

  @Test func aReelKeyIsLaidOut() throws {
    let vector = vectors.reelKey
    let context = Transcript.reelKeyContext(statement: statement, reel: vector.reel, fingerprint: fingerprint)
    let transcript = Transcript.reelKey(
      statement: statement, reel: vector.reel, fingerprint: fingerprint,
      ciphertextHash: sha256(vector.reelKey.ciphertext.bytes))
    #expect(context.bytes == vector.aad.bytes && transcript.bytes == vector.signed.bytes)
    try expectSignature(vector.reelKey.signature, of: transcript)
  }

  @Test func aGrantIsLaidOut() throws {
    #expect(vectors.grants.map { $0.grant.to.device == nil } == [false, true])
    for vector in vectors.grants {
      let transcript = Transcript.grant(
        vector.grant, statement: statement, ciphertextHash: sha256(vector.grant.ciphertext.bytes))
      #expect(transcript.bytes == vector.signed.bytes)
      try expectSignature(vector.grant.signature, of: transcript)
    }
  }

  @Test func aWitnessIsLaidOut() throws {
    #expect(vectors.witnesses.map(\.witness.isEnd) == [false, true])
    for vector in vectors.witnesses {
      let transcript = Transcript.witness(vector.witness, statement: statement)
      #expect(transcript.bytes == vector.signed.bytes)
      try expectSignature(vector.witness.signature, of: transcript)
    }
  }

  @Test func aNoteIsLaidOut() throws {
    #expect(vectors.notes.count == 2)
    for vector in vectors.notes {
      let context = Transcript.noteContext(statement: statement, number: vector.note.number)
      let transcript = Transcript.note(
        statement: statement, number: vector.note.number, ciphertextHash: sha256(vector.note.ciphertext.bytes))
      #expect(context.bytes == vector.aad.bytes && transcript.bytes == vector.signed.bytes)
      try expectSignature(vector.note.signature, of: transcript)
    }
  }

  @Test func trackKeysAreLaidOut() throws {
    let call = CallVectors.all
    let keys = try #require(call.manifest.trackKeys)
    let transcript = Transcript.recording(call.manifest.statement, fingerprint: fingerprint)
    #expect(keys.count == 3 && keys.count == call.contexts.count)
    for (keys, (context, signed)) in zip(keys, zip(call.contexts, call.signed)) {
      let person = try #require(call.manifest.people.first { $0.participant == keys.participant })
      let laidOut = Transcript.trackKeyContext(
        statement: sha256(transcript.bytes), epoch: keys.epoch, listHash: keys.listHash.bytes,
        participant: keys.participant, fingerprint: person.fingerprint.bytes, joinId: try #require(person.joinId).bytes,
        tracks: keys.tracks)
      #expect(laidOut.bytes == context.bytes)
      let all = Transcript.trackKeys(context: laidOut, ciphertextHash: sha256(keys.ciphertext.bytes))
      #expect(all.bytes == signed.bytes)
    }
  }

  private func expectSignature(_ signature: Base64Bytes, of transcript: Transcript) throws {
    let key = try #require(vectors.devices[0].keys.first { $0.use == .sign })
    let publicKey = try P256.Signing.PublicKey(derRepresentation: key.publicKey.bytes)
    let signature = try P256.Signing.ECDSASignature(rawRepresentation: signature.bytes)
    #expect(publicKey.isValidSignature(signature, for: transcript.bytes))
  }
}
