import Contract
import Crypto
import MediaModel
import Octets
import Recording
import Testing

@testable import ConclaveClient

/// Everything that is signed, sealed and stored, against an implementation that is none of ours: it opens here, and what is made here has the same bytes.
struct RecordingVectorTests {
  private let vectors = RecordingVectors.all

  @Test func statementsAreTheirSigners() throws {
    for vector in vectors.statements {
      let signed = try SignedStatement(
        checking: vector.statement, by: RecordingSigner(vectors.alice), now: vectors.now)
      #expect(signed.hash == vector.statementHash.bytes)
      #expect(SignedStatement(signing: vector.statement, by: vectors.alice).hash == vector.statementHash.bytes)
      #expect(throws: UnreadableRecording.notSigned) {
        try SignedStatement(checking: vector.statement, by: RecordingSigner(vectors.bob), now: vectors.now)
      }
    }
  }

  @Test func aStatementOfATimeToComeIsRefused() throws {
    let signer = RecordingSigner(vectors.alice)
    let early = Timestamp(milliseconds: vectors.now.milliseconds - 600_000)
    #expect(throws: Never.self) { try SignedStatement(checking: vectors.statement, by: signer, now: early) }
    #expect(throws: UnreadableRecording.notSigned) {
      try SignedStatement(
        checking: vectors.statement, by: signer, now: Timestamp(milliseconds: early.milliseconds - 1))
    }
  }

  @Test func aGrantOpensForItsHolderAlone() throws {
    let statement = try vectors.signed()
    let grant = vectors.grants[0].grant
    let key = try RecordingKey(
      opening: grant, of: statement, as: vectors.bob, from: RecordingSigner(vectors.alice))
    #expect(Array(key.privateKey.rawRepresentation) == vectors.recordingKey.privateScalar.bytes)
    for (reader, signer) in [(vectors.alice, vectors.alice), (vectors.bob, vectors.bob)] {
      #expect(throws: UnreadableRecording.noKey) {
        try RecordingKey(opening: grant, of: statement, as: reader, from: RecordingSigner(signer))
      }
    }
    // A grant that is made here opens there.
    let own = try #require(key.grant(to: vectors.alice.publicKeys, of: statement, at: vectors.now, by: vectors.bob))
    let reopened = try RecordingKey(
      opening: own, of: statement, as: vectors.alice, from: RecordingSigner(vectors.bob))
    #expect(reopened.publicKey == vectors.recordingKey.publicKey.bytes)
  }

  @Test func theReelsKeyOpensAndIsSealed() throws {
    let statement = try vectors.signed()
    let signer = RecordingSigner(vectors.alice)
    let sealed = RecordingManifest.Key(reel: 1, vectors.reelKey.reelKey)
    let chain = try #require(ReelChain(opening: sealed, of: statement, with: vectors.key(), from: signer))
    #expect(chain.bytes == vectors.firstChainKey.bytes)
    let own = try #require(chain.sealed(for: statement, by: vectors.alice))
    let reopened = ReelChain(
      opening: RecordingManifest.Key(reel: 1, own), of: statement, with: vectors.key(), from: signer)
    #expect(reopened?.bytes == chain.bytes)
    #expect(
      ReelChain(
        opening: RecordingManifest.Key(reel: 2, own), of: statement, with: vectors.key(), from: signer) == nil)
  }

  /// The files byte for byte, and the chain of keys.
  @Test func segmentsAreSealedToTheSameBytes() throws {
    var chain = try #require(
      ReelChain(vectors.firstChainKey.bytes, of: vectors.statement.id, reel: 1))
    for vector in vectors.sealed {
      #expect(chain.bytes == vector.chainKey.bytes && chain.number == vector.number)
      let header = SegmentHeader(
        recording: vectors.statement.id, reel: 1, number: vector.number, start: vector.start,
        previous: try #require(SegmentHash(vector.previous.bytes)), nonce: vector.nonce.bytes)
      let file = try #require(SegmentSealing.seal(vector.contents.bytes, under: chain, header))
      #expect(file == vector.file.bytes && SegmentHash(of: file).bytes == vector.hash.bytes)
      #expect(SegmentSealing.open(file, under: chain, header) == vector.contents.bytes)
      var changed = file
      changed[file.count - 20] ^= 1
      #expect(SegmentSealing.open(changed, under: chain, header) == nil)
      chain.advance()
      #expect(SegmentSealing.open(file, under: chain, header) == nil)
    }
  }

  @Test func witnessesAndNotesCountByTheirSignature() throws {
    let statement = try vectors.signed()
    let signer = RecordingSigner(vectors.alice)
    for vector in vectors.witnesses {
      var witness = vector.witness
      let head = try #require(witness.head(of: statement, from: signer))
      #expect(head.segments == witness.segments && head.isEnd == witness.isEnd)
      let own = ReelWitness.signing(
        reel: witness.reel, segments: witness.segments, head: head.hash, at: witness.at, isEnd: witness.isEnd,
        of: statement, by: vectors.alice)
      #expect(own.head(of: statement, from: signer) == head)
      witness.isEnd.toggle()
      #expect(witness.head(of: statement, from: signer) == nil)
    }
    for vector in vectors.notes {
      let text = Array(vector.text.utf8).prefix { $0 != 0 }
      let trimmed = String(decoding: text, as: UTF8.self).trimmed
      let opened = try #require(vector.note.opened(of: statement, with: vectors.key(), from: signer))
      #expect(String(decoding: opened, as: UTF8.self) == trimmed)
      var moved = vector.note
      moved.number += 1
      #expect(moved.opened(of: statement, with: vectors.key(), from: signer) == nil)
      let own = try #require(
        RecordingNote.sealing(opened, number: 7, of: statement, by: vectors.alice))
      #expect(own.opened(of: statement, with: vectors.key(), from: signer) == opened)
      #expect((own.ciphertext.bytes.count - SingleShotHPKE.overhead) % 256 == 0)
    }
    #expect(
      RecordingNote.sealing([UInt8](repeating: 65, count: 2_049), number: 0, of: statement, by: vectors.alice) == nil)
  }

  /// The whole message, as Bob's device reads it.
  @Test func theMessageOpens() async throws {
    let reader = try await RecordingReader(
      vectors.statement.id.text, from: StoredFiles(vectors), as: vectors.bob, now: vectors.now.milliseconds)
    #expect(reader.info.user == "alice" && reader.info.readers == ["alice", "bob"] && reader.info.trust == .new)
    var all: [(RecordingFrame, Int64)] = []
    for vector in vectors.sealed {
      let segment = try #require(try await reader.segment(Int(vector.number), ofReel: 1))
      let expected = vector.records.filter { $0.type == "frame" }.sorted { ($0.time ?? 0) < ($1.time ?? 0) }
      #expect(segment.frames.map(\.bytes) == expected.map { $0.data?.bytes })
      #expect(segment.frames.map(\.time) == expected.map { $0.time })
      #expect(segment.tracks.map(\.codec) == [.opus, .vp8] && segment.tracks.map(\.source) == [.microphone, .camera])
      all += segment.frames.map { ($0, segment.start) }
    }
    let reel = try #require(await reader.reels.first)
    #expect(reel.state == .complete && reel.isEnded && reel.segments == 3 && reel.missing.isEmpty)
    #expect(await reader.notes.missing.isEmpty)
    #expect(await reader.notes.notes.count == vectors.notes.count)
    // The same by time, with the pause and the gap in it.
    var moments: [RecordingMoments.Moment] = []
    for try await moment in await reader.moments() { moments.append(moment) }
    let frames = moments.filter { if case .frame = $0.content { true } else { false } }
    #expect(frames.count == all.count && zip(moments, moments.dropFirst()).allSatisfy { $0.time <= $1.time })
    #expect(moments.contains { if case .mark(let mark) = $0.content { mark.event == .paused } else { false } })
    #expect(
      moments.contains {
        if case .gap(let gap) = $0.content { gap.reason == .network && gap.track == 1 } else { false }
      })
  }

  /// A call's recording with keys of two participants and of two epochs with the same low byte.
  @Test func theCallOpens() async throws {
    let call = CallVector.all
    let reader = try await RecordingReader(
      call.manifest.statement.id.text, from: StoredFiles(call), as: vectors.bob, now: vectors.now.milliseconds)
    #expect(reader.info.kind == .call && reader.info.call == call.manifest.statement.call?.text)
    for reel in await reader.reels {
      let expected = try #require(call.frames[String(reel.number)])
      var frames: [RecordingFrame] = []
      for number in 0..<reel.segments {
        let segment = try #require(try await reader.segment(number, ofReel: reel.number))
        #expect(segment.gaps.isEmpty)
        frames += segment.frames
      }
      let sorted = expected.enumerated().sorted { ($0.element.time, $0.offset) < ($1.element.time, $1.offset) }
        .map(\.element)
      #expect(frames.map(\.bytes) == sorted.map(\.data.bytes) && frames.map(\.time) == sorted.map(\.time))
      #expect(frames.map(\.track) == sorted.map(\.n) && frames.map(\.isKeyFrame) == sorted.map(\.isKey))
    }
    let reels = await reader.reels
    #expect(reels.map(\.user) == ["alice", "bob"] && reels.map(\.state) == [.unfinished, .unfinished])
    #expect(reels.allSatisfy(\.isEnded) && reels[1].trust == .verified)
  }
}

extension String {
  fileprivate var trimmed: String { String(reversed().drop { $0 == " " }.reversed()) }
}
