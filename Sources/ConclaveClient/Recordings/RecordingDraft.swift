package import Contract
import Foundation
import MediaModel
import Recording

/// A recording that this device makes, between two segments: what is needed to go on with it, to send it and to share it. Contains the key of what is recorded
/// next, and no key of what was recorded: keep it where the device's keys are.
///
/// Store it together with each segment before the segment leaves the device.
public struct RecordingDraft: Sendable, Hashable, Codable {
  /// Its id, a UUID in lower case.
  public var id: String { statement.id.text }
  /// The kind of recording.
  public var kind: RecordingInfo.Kind { RecordingInfo.Kind(statement.kind) }
  /// The users who are meant to open it, this one included.
  public var readers: [String] { statement.readers.map(\.text) }
  /// The tracks, in the order of their streams.
  public let tracks: [RecordingTrack]
  /// How many segments were sealed: the number of the next one.
  public internal(set) var segments: UInt32 = 0

  package let statement: RecordingStatement
  package let reelKey: ReelKey
  /// The recording's key, sealed for only this device.
  let grant: RecordingGrant
  /// The chain key of the next segment. Secret.
  var chain: Base64Bytes
  /// The hash of the newest segment.
  var head: Base64Bytes
  /// When the newest segment ends, in microseconds since 1970; nil if there is none.
  var end: Int64?
  /// Whether the reel is complete.
  public internal(set) var isEnded = false

  init(
    _ statement: RecordingStatement, reelKey: ReelKey, grant: RecordingGrant, chain: ReelChain, tracks: [RecordingTrack]
  ) {
    self.statement = statement
    self.reelKey = reelKey
    self.grant = grant
    self.tracks = tracks
    self.chain = Base64Bytes(chain.bytes)
    head = Base64Bytes(SegmentHash.zeros.bytes)
  }

  /// A draft that was stored as `json`; nil if it is none.
  public init?(json: [UInt8]) {
    guard let draft = try? JSONDecoder().decode(Self.self, from: Data(json)) else { return nil }
    self = draft
  }

  /// The draft, to be stored. Secret.
  public var json: [UInt8] {
    // Its values are numbers, texts and arrays of them.
    Array(try! JSONEncoder().encode(self))
  }

  /// The body of `recordings/start`.
  package var registration: StartRecording { StartRecording(statement: statement, reelKey: reelKey) }

  /// The body of `recordings/finish`; nil before the end, and for another device.
  package func finish(by identity: DeviceIdentity) -> FinishRecording? {
    guard isEnded, let statement = signed(by: identity), let hash = SegmentHash(head.bytes) else { return nil }
    let witness = ReelWitness.signing(
      reel: RecordingWriter.reel, segments: segments, head: hash, at: RecordingWriter.milliseconds(end ?? 0),
      isEnd: true, of: statement, by: identity)
    let reel = FinishRecording.Reel(
      reel: witness.reel, segments: witness.segments, head: witness.head, at: witness.at, sigAlg: witness.sigAlg,
      signature: witness.signature)
    return FinishRecording(id: statement.id, reels: [reel])
  }

  /// The manifest that a server has of this recording once it is finished, with a grant for this device alone: to keep a recording as files, without a server. nil
  /// before the end, for another device, and if `segments` are not all of it.
  public func manifest(_ segments: [SealedSegment], by identity: DeviceIdentity) -> RecordingManifestPage? {
    guard let end = finish(by: identity)?.reels.first, segments.count == Int(self.segments) else { return nil }
    let listed = segments.map {
      ReelPage.Segment(byteCount: $0.file.count, hash: Base64Bytes($0.hash.bytes), start: $0.header.start)
    }
    let person = RecordedPerson(
      participant: end.reel, user: identity.address.user, device: identity.address.device, name: nil,
      fingerprint: Base64Bytes(identity.fingerprint), keys: identity.registration)
    let witness = ReelWitness(
      reel: end.reel, segments: end.segments, head: end.head, at: end.at, isEnd: true, by: identity.address,
      sigAlg: end.sigAlg, signature: end.signature)
    return RecordingManifestPage(
      RecordingManifest(
        statement: statement, state: .finished, bytes: listed.reduce(0) { $0 + $1.byteCount }, people: [person],
        reelKeys: [RecordingManifest.Key(reel: end.reel, reelKey)],
        reels: [ReelPage(participant: end.reel, from: 0, segments: listed)], grants: [grant], notes: [],
        witnesses: [witness]))
  }

  /// The recording's key for `devices`, and for the device of `identity`, which has made it; those to whose key nothing can be sealed here are left out.
  func grants(to devices: [DeviceKeys], at: Timestamp, by identity: DeviceIdentity) -> [RecordingGrant]? {
    guard let statement = signed(by: identity),
      let key = try? RecordingKey(opening: grant, of: statement, as: identity, from: RecordingSigner(identity))
    else { return nil }
    return [grant]
      + devices.filter { $0.address != identity.address }.compactMap {
        key.grant(to: $0, of: statement, at: at, by: identity)
      }
  }

  /// The statement, which the device of `identity` has signed; nil if it is another device.
  func signed(by identity: DeviceIdentity) -> SignedStatement? {
    try? SignedStatement(checking: statement, by: RecordingSigner(identity), now: statement.at)
  }
}

extension RecordingDraft: CustomStringConvertible {
  /// Contains nothing of it.
  public var description: String { "recording draft" }
}
