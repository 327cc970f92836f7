package import Contract
import Foundation
import MediaModel
import Recording

/// Where a `RecordingReader` gets a recording from: the server (`CallClient.source(_:)`), or files. It is not trusted: whatever it answers is checked.
public protocol RecordingSource: Sendable {
  /// A page of the manifest of the recording `id`: the segments of each reel from number `segment` on, and the notes from number `note` on. Throws what its
  /// network or disk throws.
  func manifest(of id: String, fromSegment segment: Int, fromNote note: Int) async throws -> RecordingManifestPage

  /// The file of segment `number` of a reel, at most 8 MiB; nil if there is none. Throws what its network or disk throws: the segment can then be asked for
  /// again.
  func segment(_ number: Int, ofReel reel: UInt32, in id: String) async throws -> [UInt8]?
}

/// A page of a recording's manifest, as the server sends it (protocol section 13.3).
public struct RecordingManifestPage: Sendable, Hashable {
  package var manifest: RecordingManifest

  package init(_ manifest: RecordingManifest) { self.manifest = manifest }

  /// Reads JSON that `json` wrote, or the server did. Throws `UnreadableRecording.malformed` for anything else.
  public init(json: [UInt8]) throws(UnreadableRecording) {
    guard let manifest = try? JSONDecoder().decode(RecordingManifest.self, from: Data(json)) else { throw .malformed }
    self.manifest = manifest
  }

  /// The page as JSON, to be kept with the files of the segments.
  public var json: [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Its values are numbers, texts and arrays of them.
    return Array(try! encoder.encode(manifest))
  }

  /// The reels on this page, and how many segments of each: what to fetch.
  public var reels: [(reel: UInt32, from: Int, count: Int)] {
    manifest.reels.map { ($0.participant, Int($0.from), $0.segments.count) }
  }
}

/// A recording in this user's list, as the server says. A `RecordingReader` knows who has signed it.
public struct RecordingEntryInfo: Sendable, Hashable {
  /// Its id, a UUID in lower case.
  public var id: String
  /// The kind of recording.
  public var kind: RecordingInfo.Kind
  /// Whether this user began it; otherwise it was shared with this user.
  public var isOwn: Bool
  /// The user whose device began it.
  public var user: String
  /// When it began, in milliseconds since 1970.
  public var startedAt: Int64
  /// From the start of its first segment to that of its last one.
  public var seconds: Int
  /// The bytes of all its segments.
  public var bytes: Int
  /// `running`, `silent`, `finished` or `cut-off`.
  public var state: String
  /// When the server deletes it, in milliseconds since 1970.
  public var expiresAt: Int64
  /// When this user said that it was seen, or of an own one, when the first other reader did, in milliseconds since 1970.
  public var seenAt: Int64?

  init(_ entry: RecordingEntry) {
    id = entry.id.text
    kind = RecordingInfo.Kind(entry.kind)
    isOwn = entry.role == .owner
    user = entry.by.user.text
    startedAt = entry.startedAt.milliseconds
    seconds = entry.seconds
    bytes = entry.bytes
    state = entry.state.rawValue
    expiresAt = entry.expiresAt.milliseconds
    seenAt = entry.seenAt?.milliseconds
  }
}

/// The contents of a recording's statement: its signature was found good.
public struct RecordingInfo: Sendable, Hashable {
  /// The kind of recording.
  public enum Kind: String, Sendable, Hashable, Codable {
    /// The server stores what the participants of a call sent, each under its own keys.
    case call
    /// A device recorded for somebody who was not reached.
    case message
    /// A device recorded for its own person.
    case own

    init(_ kind: RecordingKind) {
      self =
        switch kind {
        case .call: .call
        case .message: .message
        case .own: .own
        }
    }

    var contract: RecordingKind {
      switch self {
      case .call: .call
      case .message: .message
      case .own: .own
      }
    }
  }

  /// Its id, a UUID in lower case.
  public var id: String
  /// The kind of recording.
  public var kind: Kind
  /// The call that was recorded, or that was not answered.
  public var call: String?
  /// The user whose device signed the statement.
  public var user: String
  /// That device.
  public var device: String
  /// How certain it is that the device is its user's.
  public var trust: TrustLevel
  /// The users who were meant to open it.
  public var readers: [String]
  /// When it was signed, by the device's clock, in milliseconds since 1970.
  public var at: Int64

  init(_ statement: RecordingStatement, trust: TrustLevel) {
    id = statement.id.text
    kind = Kind(statement.kind)
    call = statement.call?.text
    user = statement.by.user.text
    device = statement.by.device.text
    self.trust = trust
    readers = statement.readers.map(\.text).sorted()
    at = statement.at.milliseconds
  }
}

/// A reel: what one device wrote, or what the server kept of one participant's stay.
public struct ReelInfo: Sendable, Hashable {
  /// The worth of a reel.
  public enum State: String, Sendable, Hashable {
    /// All that its device made, as that device has signed.
    case complete
    /// No signature says that this is the end. The reels of a call have none.
    case unfinished
    /// It was longer.
    case cutOff = "cut off"
    /// It is not what its device made, or not what was seen here before.
    case changed
    /// No key of it counts, so nothing of it can be opened.
    case closed

    init(_ finding: ReelIndex.Finding) {
      self =
        switch finding {
        case .complete: .complete
        case .unfinished: .unfinished
        case .cutOff: .cutOff
        case .changed: .changed
        }
    }
  }

  /// Its number: the participant's in a call, 1 for what a device wrote.
  public var number: UInt32
  /// The user who is heard or seen in it.
  public var user: String
  /// That user's device.
  public var device: String
  /// The name to show, if the server knows one.
  public var name: String?
  /// How certain it is that the device is its user's.
  public var trust: TrustLevel
  /// How many segments are listed.
  public var segments: Int
  /// How many there were at some time, by a signature or by what was seen here before; more than `segments` if it was cut off.
  public var knownSegments: Int
  /// The numbers of segments that the server lacks.
  public var missing: [Int]
  /// The segments that were refused, and why.
  public var refused: [Int: SegmentRefusal]
  /// Its worth, as far as its segments were opened.
  public var state: State
  /// Whether its last record says that nothing more follows. In a call's recording that is the server's word.
  public var isEnded: Bool
  /// When it begins, in microseconds since 1970.
  public var start: Int64
  /// When it ends, in microseconds since 1970, as far as that is known.
  public var end: Int64
}

/// How far a reel went when it was seen here. Keep it, and pass it to the next `RecordingReader`: a server may show an older state.
public struct SeenReel: Sendable, Hashable, Codable {
  /// The reel's number.
  public var reel: UInt32
  /// How many segments there were.
  public var segments: UInt32
  /// The hash of the last of them, 32 bytes.
  public var head: [UInt8]

  /// A value that was kept.
  public init(reel: UInt32, segments: UInt32, head: [UInt8]) {
    self.reel = reel
    self.segments = segments
    self.head = head
  }
}
