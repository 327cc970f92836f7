import Contract
import Foundation
import MediaModel
import Recording

@testable import ConclaveClient

/// `recordings.json`, made by an implementation that is none of ours (`Tests/Vectors/recordings.py`): what this client needs of it.
struct RecordingVectors: Decodable {
  struct SignedDevice: Decodable {
    var user: String
    var device: String
    var fingerprint: Base64Bytes
    var wrapScalar: Base64Bytes
    var signScalar: Base64Bytes
    var keys: [DeviceKey]

    var identity: DeviceIdentity {
      DeviceIdentity(
        user: user, device: device, wrapKeyBytes: wrapScalar.bytes, signKeyBytes: signScalar.bytes)!
    }
  }
  struct Key: Decodable {
    var privateScalar: Base64Bytes
    var publicKey: Base64Bytes
  }
  struct StatementVector: Decodable {
    var statement: RecordingStatement
    var statementHash: Base64Bytes
  }
  struct ReelKeyVector: Decodable {
    var reel: UInt32
    var reelKey: ReelKey
  }
  struct GrantVector: Decodable {
    var holderScalar: Base64Bytes
    var grant: RecordingGrant
  }
  struct WitnessVector: Decodable { var witness: ReelWitness }
  struct NoteVector: Decodable {
    var text: String
    var note: RecordingNote
  }
  struct Record: Decodable {
    var type: String
    var index: UInt8?
    var time: Int64?
    var data: Base64Bytes?
  }
  struct SealedVector: Decodable {
    var number: UInt32
    var start: Int64
    var previous: Base64Bytes
    var nonce: Base64Bytes
    var chainKey: Base64Bytes
    var file: Base64Bytes
    var hash: Base64Bytes
    var contents: Base64Bytes
    var records: [Record]
  }

  var devices: [SignedDevice]
  var recordingKey: Key
  var statements: [StatementVector]
  var firstChainKey: Base64Bytes
  var reelKey: ReelKeyVector
  var grants: [GrantVector]
  var witnesses: [WitnessVector]
  var notes: [NoteVector]
  var sealed: [SealedVector]

  static let all: RecordingVectors = golden("recordings")

  static func golden<Content: Decodable>(_ name: String) -> Content {
    let url = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "RecordingTests/Golden/\(name).json")
    return try! JSONDecoder().decode(Content.self, from: Data(contentsOf: url))
  }

  var alice: DeviceIdentity { devices[0].identity }
  var bob: DeviceIdentity { devices[1].identity }
  var statement: RecordingStatement { statements[0].statement }
  var now: Timestamp { statement.at }

  func signed() throws -> SignedStatement {
    try SignedStatement(checking: statement, by: RecordingSigner(alice), now: now)
  }

  func key() -> RecordingKey {
    RecordingKey(scalar: recordingKey.privateScalar.bytes, publicKey: recordingKey.publicKey.bytes)!
  }

  /// The whole recording as Bob's laptop gets it.
  var manifest: RecordingManifest {
    let segments = sealed.map {
      ReelPage.Segment(byteCount: $0.file.bytes.count, hash: $0.hash, start: $0.start)
    }
    return RecordingManifest(
      statement: statement, state: .finished, bytes: segments.reduce(0) { $0 + $1.byteCount },
      people: [
        RecordedPerson(
          participant: 1, user: alice.address.user, device: alice.address.device, name: "Alice",
          fingerprint: devices[0].fingerprint, keys: devices[0].keys)
      ],
      reelKeys: [RecordingManifest.Key(reel: reelKey.reel, reelKey.reelKey)],
      reels: [ReelPage(participant: 1, from: 0, segments: segments)], grants: grants.map(\.grant),
      notes: notes.map(\.note), witnesses: witnesses.map(\.witness))
  }
}

/// `call.json`, by `Tests/Vectors/call_recordings.py`.
struct CallVector: Decodable {
  struct Frame: Decodable {
    var n: UInt8
    var time: Int64
    var isKey: Bool
    var data: Base64Bytes
  }

  var manifest: RecordingManifest
  var files: [String: [Base64Bytes]]
  var frames: [String: [Frame]]

  static let all: CallVector = RecordingVectors.golden("call")
}

/// A recording in memory. Tests change what its server says.
struct StoredFiles: RecordingSource {
  var manifest: RecordingManifest
  var files: [UInt32: [Int: [UInt8]]]
  /// Segments of a reel in a page.
  var page = 1_000

  func manifest(of id: String, fromSegment segment: Int, fromNote note: Int) async throws -> RecordingManifestPage {
    var page = manifest
    page.reels = manifest.reels.map { reel in
      let segments = reel.segments.dropFirst(segment).prefix(self.page)
      return ReelPage(
        participant: reel.participant, from: reel.from + UInt32(segment), segments: Array(segments))
    }
    if segment > 0 { page.trackKeys = nil }
    page.notes = manifest.notes.filter { $0.number >= note }
    return RecordingManifestPage(page)
  }

  func segment(_ number: Int, ofReel reel: UInt32, in id: String) async throws -> [UInt8]? { files[reel]?[number] }

  init(_ manifest: RecordingManifest, files: [UInt32: [Int: [UInt8]]]) {
    self.manifest = manifest
    self.files = files
  }

  init(_ vectors: RecordingVectors) {
    let files = Dictionary(vectors.sealed.map { (Int($0.number), $0.file.bytes) }) { first, _ in first }
    self.init(vectors.manifest, files: [1: files])
  }

  init(_ call: CallVector) {
    var files: [UInt32: [Int: [UInt8]]] = [:]
    for (reel, list) in call.files {
      for (number, file) in list.enumerated() { files[UInt32(reel)!, default: [:]][number] = file.bytes }
    }
    self.init(call.manifest, files: files)
  }
}
