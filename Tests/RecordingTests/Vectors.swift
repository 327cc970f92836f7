import Contract
import Crypto
import Foundation
import MediaModel

/// `Golden/recordings.json`, made by an implementation that is none of ours (`Tests/Vectors/recordings.py`).
struct Vectors: Decodable {
  struct Identifier: Decodable {
    var text: String
    var bytes: Base64Bytes
    var refused: [String]
  }
  struct SignedDevice: Decodable {
    var user: UserID
    var device: DeviceID
    var fingerprint: Base64Bytes
    var keys: [DeviceKey]
  }
  struct StatementVector: Decodable {
    var statement: RecordingStatement
    var statementHash: Base64Bytes
    var signed: Base64Bytes
  }
  struct ReelKeyVector: Decodable {
    var reel: UInt32
    var aad: Base64Bytes
    var reelKey: ReelKey
    var signed: Base64Bytes
  }
  struct GrantVector: Decodable {
    var grant: RecordingGrant
    var signed: Base64Bytes
  }
  struct WitnessVector: Decodable {
    var witness: ReelWitness
    var signed: Base64Bytes
  }
  struct NoteVector: Decodable {
    var note: RecordingNote
    var aad: Base64Bytes
    var signed: Base64Bytes
  }
  struct Headers: Decodable {
    var accepted: [Base64Bytes]
    var refused: [String: Base64Bytes]
  }
  /// A record of any type; its members are those of the type.
  struct Record: Decodable, Hashable {
    var type: String
    var index: UInt8?
    var n: UInt8?
    var source: UInt8?
    var codec: UInt8?
    var layer: UInt8?
    var clockRate: UInt32?
    var epoch: UInt32?
    var flags: UInt8?
    var timestamp: UInt32?
    var arrival: UInt32?
    var data: Base64Bytes?
    var time: Int64?
    var how: UInt8?
    var why: UInt8?
    var from: UInt32?
    var to: UInt32?
    var missing: UInt32?
    var what: UInt8?
    var at: UInt32?
    /// How many are before the end, those of unknown types included.
    var records: Int?

    init(_ type: String) { self.type = type }
  }
  struct SealedSegment: Decodable {
    var number: UInt32
    var start: Int64
    var previous: Base64Bytes
    var nonce: Base64Bytes
    var file: Base64Bytes
    var hash: Base64Bytes
    var contents: Base64Bytes
    var records: [Record]
    var closed: UInt8
  }
  struct ClearSegment: Decodable {
    var file: Base64Bytes
    var hash: Base64Bytes
    var records: [Record]
    var closed: UInt8
  }
  struct Contents: Decodable {
    var name: String
    var kept: Int
    var state: String
    var contents: Base64Bytes
    var repeated: Base64Bytes?
    var times: Int?

    var bytes: [UInt8] {
      contents.bytes + (0..<(times ?? 0)).flatMap { _ in repeated?.bytes ?? [] }
    }
  }
  struct Head: Decodable {
    var segments: UInt32
    var head: Base64Bytes
    var isEnd: Bool?
  }
  struct Checked: Decodable {
    var name: String
    var finding: String
    var reel: ReelPage
    var witnesses: [Head]
    var remembered: Head?
  }
  struct Refused: Decodable {
    var name: String
    var reel: ReelPage
  }
  struct Manifests: Decodable {
    var checked: [Checked]
    var refused: [Refused]
  }

  var id: Identifier
  var devices: [SignedDevice]
  var statements: [StatementVector]
  var reelKey: ReelKeyVector
  var grants: [GrantVector]
  var witnesses: [WitnessVector]
  var notes: [NoteVector]
  var headers: Headers
  var sealed: [SealedSegment]
  var clear: ClearSegment
  var contents: [Contents]
  var manifests: Manifests

  static let all: Vectors = golden("recordings")

  static func golden<Content: Decodable>(_ name: String) -> Content {
    let url = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "Golden/\(name).json")
    return try! JSONDecoder().decode(Content.self, from: Data(contentsOf: url))
  }

  var recording: RecordingID { RecordingID(id.text)! }
}

/// `Golden/call.json`, by `Tests/Vectors/call_recordings.py`: the layouts of track keys.
struct CallVectors: Decodable {
  var manifest: RecordingManifest
  var contexts: [Base64Bytes]
  var signed: [Base64Bytes]

  static let all: CallVectors = Vectors.golden("call")
}

func sha256(_ bytes: [UInt8]) -> [UInt8] { Array(SHA256.hash(data: bytes)) }
