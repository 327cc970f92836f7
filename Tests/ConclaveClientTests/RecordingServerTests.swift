import ConclaveServer
import Foundation
import MediaModel
import Octets
import Testing

@testable import ConclaveClient

/// Recordings between clients of this library and a real server.
@Suite(.timeLimit(.minutes(2))) struct RecordingServerTests {
  private let tracks = RecordingWorld.tracks

  /// A message for Bob: sealed, uploaded over one connection, finished, read, deleted.
  @Test func aMessageGoesFromOneDeviceToAnother() async throws {
    let house = try await House()
    let (alice, bob) = (try await house.client("alice"), try await house.client("bob"))
    // Bob takes recordings of those with whom he has a call in common.
    let call = try await alice.client.start(callees: ["bob"], media: .audio)
    let joined = try await bob.client.accept(bob.ring())
    try await call.end()
    _ = joined

    var generator = SystemRandomNumberGenerator()
    let start = Int64(Date().timeIntervalSince1970) * 1_000_000
    var writer = try #require(
      RecordingWriter(
        alice.identity, kind: .message, readers: ["bob"], tracks: tracks, at: start / 1_000, using: &generator))
    let files = house.files
    let draft = writer.draft
    let uploader = try #require(
      SegmentUploader(draft, over: files) { await alice.client.registration(of: draft) })
    for step in 0..<450 {
      let frame = RecordingFrame(
        track: 1, time: start + Int64(step) * 20_000, isKeyFrame: true, bytes: [UInt8](repeating: 9, count: 100))
      if let segment = writer.add(frame, using: &generator) { #expect(await uploader.add(segment)) }
    }
    let last = try #require(writer.end(at: start + 9_000_000, using: &generator))
    #expect(await uploader.add(last))
    #expect(await uploader.settle() == .stored)
    let devices = try await alice.client.finishRecording(writer.draft)
    #expect(devices == ["alice": 1, "bob": 1])
    #expect(try await alice.client.finishRecording(writer.draft) == devices, "an answer may be lost")
    #expect(await alice.client.registration(of: draft) == .ended)

    let listed = try await bob.client.recordings()
    #expect(listed.map(\.id) == [draft.id] && listed[0].user == "alice" && listed[0].state == "finished")
    let reader = try await bob.client.openRecording(draft.id, over: files)
    var frames = 0
    for try await moment in await reader.moments() { if case .frame = moment.content { frames += 1 } }
    #expect(frames == 450)
    #expect(await reader.reels.map(\.state) == [.complete] && reader.info.trust == .known)
    try await bob.client.markRecordingSeen(draft.id)
    #expect(try await alice.client.recordings()[0].seenAt != nil)

    try await alice.client.deleteRecordings([draft.id])
    #expect(try await bob.client.recordings().isEmpty)
    await #expect(throws: SignalingError.self) { try await bob.client.openRecording(draft.id, over: files) }
    await files.close()
    await house.close()
  }

  /// A recording of a call: Bob agrees to his voice, and withdraws; what he hands out is what the server may keep.
  @Test func aCallIsRecordedByConsent() async throws {
    let house = try await House()
    let (alice, bob) = (try await house.client("alice"), try await house.client("bob"))
    let call = try await alice.client.start(callees: ["bob"], media: .audio)
    let joined = try await bob.client.accept(bob.ring())
    try await expectAgreement([call, joined])
    let id = try await call.startRecording([.audio], readers: ["alice", "bob"])
    try await eventually { await joined.recording?.id == id }
    #expect(await joined.recording?.user == "alice" && joined.recording?.answer == nil)
    #expect(await call.recording?.answer == [.audio])
    let before = joined.cipher.sendingEpoch ?? 0
    try await joined.agreeToRecording(id, [.audio])
    try await eventually { (joined.cipher.sendingEpoch ?? 0) > before }
    try await eventually { await call.recording?.consents[joined.participant] == [.audio] }
    await #expect(throws: SignalingError.self) { try await joined.agreeToRecording(id, [.video]) }
    try await joined.declineRecording(id)
    try await eventually { await call.recording?.consents[joined.participant] == [] }
    #expect(await joined.recording?.answer == [])
    try await call.stopRecording(id)
    try await eventually { await joined.recording == nil }
    await house.close()
  }

  /// The server closes an idle connection: the next request goes over a new one.
  @Test func aClosedConnectionIsReplaced() async throws {
    let house = try await House()
    let files = house.files
    let request = SegmentRequest(.get, "/recordings/0d6f3a1c-5b2e-4f7a-9c8d-1e2f3a4b5c6d", bearer: "nobody")
    #expect(await files.send(request)?.status == 404)
    let first = try #require(await files.channel)
    #expect(await files.send(request)?.status == 404)
    #expect(await files.channel === first, "one connection for all")
    try await first.close()
    #expect(await files.send(request)?.status == 404)
    #expect(await files.channel !== first)
    #expect(RecordingHTTP(url: "ftp://example.org") == nil && RecordingHTTP(url: "https://example.org/x") == nil)
    await files.close()
    #expect(await files.send(request) == nil)
    await house.close()
  }
}
