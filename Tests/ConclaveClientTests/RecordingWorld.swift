import Contract
import Crypto
import MediaModel
import Octets
import Recording

@testable import ConclaveClient

/// An honest recording of Alice's phone, with everything that a server has of it and what only the device had. Tests let the server lie.
struct RecordingWorld {
  static let start: Int64 = 1_790_000_000_000_000
  static let now = Timestamp(milliseconds: start / 1_000)
  static let tracks = [
    RecordingTrack(number: 1, source: .microphone, codec: .opus, clockRate: 48_000),
    RecordingTrack(number: 2, source: .camera, codec: .vp8, clockRate: 90_000),
  ]

  let alice = DeviceIdentity(user: "alice", device: "phone")!
  let bob = DeviceIdentity(user: "bob", device: "laptop")!
  let mallory = DeviceIdentity(user: "mallory", device: "d")!
  var generator = SplitMix64(seed: 7)
  var draft: RecordingDraft
  var segments: [SealedSegment] = []
  /// As Bob's device gets it.
  var files: StoredFiles
  /// The devices that Bob has seen.
  var pins: [PinnedDevice] = []
  /// The key that Alice's device no longer has.
  let key: RecordingKey
  let firstChain: [UInt8]

  /// Four segments of 4 s: sound every 20 ms, a picture every 100 ms.
  init(isEnded: Bool = true, seed: UInt64 = 7) {
    generator = SplitMix64(seed: seed)
    var writer = RecordingWriter(
      alice, kind: .message, readers: ["bob"], tracks: Self.tracks, at: Self.now.milliseconds, using: &generator)!
    let statement = writer.draft.signed(by: alice)!
    key = try! RecordingKey(
      opening: writer.draft.grant, of: statement, as: alice, from: RecordingSigner(alice))
    firstChain = writer.draft.chain.bytes
    for step in 0..<800 {
      let time = Self.start + Int64(step) * 20_000
      if step % 5 == 0, let segment = writer.add(Self.picture(step, time), using: &generator) {
        segments.append(segment)
      }
      let sound = RecordingFrame(track: 1, time: time, isKeyFrame: true, bytes: [UInt8(step & 255), 1, 2, 3])
      if let segment = writer.add(sound, using: &generator) { segments.append(segment) }
    }
    if isEnded, let segment = writer.end(at: Self.start + 16_000_000, using: &generator) { segments.append(segment) }
    draft = writer.draft
    let newest = segments.last!
    let grants = draft.grants(to: [bob.publicKeys], at: Self.now, by: alice)!
    let notes = (0..<3).map {
      RecordingNote.sealing(Array(#"{"kind":"text"}"#.utf8), number: UInt32($0), of: statement, by: alice)!
    }
    let manifest = RecordingManifest(
      statement: draft.statement, state: isEnded ? .finished : .running,
      bytes: segments.reduce(0) { $0 + $1.file.count },
      people: [
        RecordedPerson(
          participant: 1, user: alice.address.user, device: alice.address.device, name: nil,
          fingerprint: Base64Bytes(alice.fingerprint), keys: alice.registration)
      ],
      reelKeys: [RecordingManifest.Key(reel: 1, draft.reelKey)], reels: [], grants: grants, notes: notes,
      witnesses: [
        ReelWitness.signing(
          reel: 1, segments: newest.number + 1, head: newest.hash,
          at: Timestamp(milliseconds: Self.start / 1_000 + 4_000 * Int64(segments.count)), isEnd: isEnded,
          of: statement, by: alice)
      ])
    files = StoredFiles(manifest, files: [:])
    for segment in segments { files.files[1, default: [:]][Int(segment.number)] = segment.file }
    relist()
    for identity in [alice, bob, mallory] {
      pins.append(
        PinnedDevice(
          user: identity.user, device: identity.device, fingerprint: identity.fingerprint, isVerified: true,
          signAlgorithm: "ES256", signKey: identity.publicKeys.sign.publicKey.bytes))
    }
  }

  private static func picture(_ step: Int, _ time: Int64) -> RecordingFrame {
    RecordingFrame(
      track: 2, time: time, isKeyFrame: step % 100 == 0, bytes: [UInt8](repeating: UInt8(step & 255), count: 100))
  }

  var statement: SignedStatement { draft.signed(by: alice)! }
  var id: String { draft.id }

  /// The list of segments as an honest server makes it from the files.
  mutating func relist() {
    let sorted = (files.files[1] ?? [:]).sorted { $0.key < $1.key }
    let segments = sorted.map { _, file in
      let header = try! SegmentHeader(parsing: file.span.bytes)
      return ReelPage.Segment(
        byteCount: file.count, hash: Base64Bytes(SegmentHash(of: file).bytes), start: header.start)
    }
    files.manifest.reels = [ReelPage(participant: 1, from: 0, segments: segments)]
  }

  /// A reader's words.
  struct Outcome {
    var refusal: UnreadableRecording?
    var state: ReelInfo.State?
    /// Segments that play.
    var plays: [Int] = []
    var missing: [Int] = []
    var refused: [Int: SegmentRefusal] = [:]
    var known = 0
    var notes: [Int] = []
    var by: String?
    var seen: [SeenReel] = []
  }

  func read(as reader: DeviceIdentity? = nil, seen: [SeenReel] = []) async throws -> Outcome {
    var outcome = Outcome()
    do {
      let recording = try await RecordingReader(
        id, from: files, as: reader ?? bob, pins: pins, seen: seen, now: Self.now.milliseconds)
      outcome.by = recording.info.user
      outcome.notes = await recording.notes.missing
      for reel in await recording.reels {
        for number in 0..<reel.segments {
          guard let segment = try await recording.segment(number, ofReel: reel.number) else { continue }
          if !segment.frames.isEmpty { outcome.plays.append(number) }
        }
      }
      if let reel = await recording.reels.first {
        outcome.state = reel.state
        outcome.missing = reel.missing
        outcome.refused = reel.refused
        outcome.known = reel.knownSegments
      }
      outcome.seen = await recording.seen
    } catch let refusal as UnreadableRecording {
      outcome.refusal = refusal
    }
    return outcome
  }
}
