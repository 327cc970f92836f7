import CallMessages
import Contract
import MediaModel
import Recording

/// Rows about recordings, for the tests that write them.
protocol RecordingSamples {}

extension RecordingSamples {
  var recorder: Device { Device(user: alice, device: DeviceID(unchecked: "phone")) }

  func id(_ number: UInt8) -> RecordingID { RecordingID([UInt8](repeating: number, count: 16))! }

  func recording(
    _ number: UInt8, of owner: UserID = alice, reels: [(UInt32, UserID)] = [(1, alice)], expiresAt: Int = 100
  ) -> StoredRecording {
    StoredRecording(
      id: id(number), kind: .message, owner: Device(user: owner, device: DeviceID(unchecked: "phone")),
      startedAt: second(0), expiresAt: second(expiresAt), reels: reels.map { StoredReel(number: $0, user: $1) })
  }

  func segment(_ number: UInt32, bytes: Int = 1_000) -> StoredSegment {
    StoredSegment(
      number: number, byteCount: bytes,
      hash: SegmentHash([UInt8](repeating: UInt8(truncatingIfNeeded: number + 1), count: 32))!,
      start: 7 + Int64(number))
  }

  func record(_ number: UInt8, ticket: UInt8 = 1) -> RecordingRecord {
    let nothing = Base64Bytes([])
    return RecordingRecord(
      statement: RecordingStatement(
        id: id(number), kind: .message, call: CallID(unchecked: "c1"), publicKey: Base64Bytes([9]), media: [.audio],
        readers: [bob], at: second(1), by: recorder, sigAlg: "ES256", signature: Base64Bytes([8])),
      author: RecordedPerson(
        participant: 1, user: alice, device: recorder.device, name: "Al\"ice", fingerprint: nothing,
        keys: [DeviceKey(use: .sign, alg: "ES256", publicKey: Base64Bytes([7]))]),
      reelKey: ReelKey(ciphertext: nothing, sigAlg: "ES256", signature: nothing), ticket: Base64Bytes([ticket]))
  }

  func grant(
    _ number: UInt8, to user: UserID, _ device: String? = "tablet", by author: UserID = alice, at: Int = 1
  ) -> RecordingGrant {
    RecordingGrant(
      recording: id(number), to: .init(user: user, device: device.map(DeviceID.init(unchecked:))),
      from: Device(user: author, device: recorder.device), key: Base64Bytes([1]), alg: "X",
      ciphertext: Base64Bytes([2]),
      at: second(at), sigAlg: "ES256", signature: Base64Bytes([3]))
  }

  func note(_ number: UInt32, _ byte: UInt8 = 1) -> RecordingNote {
    RecordingNote(number: number, ciphertext: Base64Bytes([byte]), sigAlg: "ES256", signature: Base64Bytes([3]))
  }

  func witness(_ segments: UInt32) -> ReelWitness {
    ReelWitness(
      reel: 1, segments: segments, head: Base64Bytes([4]), at: second(2), isEnd: false, by: recorder, sigAlg: "ES256",
      signature: Base64Bytes([5]))
  }

  func person(_ reel: UInt32, _ name: String = "Bob") -> RecordedPerson {
    RecordedPerson(
      participant: reel, user: bob, device: recorder.device, name: name, fingerprint: Base64Bytes([1]), keys: [],
      joinId: Base64Bytes([6]))
  }

  func trackKeys(_ reel: UInt32, _ epoch: UInt32, _ tracks: [UInt8], _ byte: UInt8 = 1, of number: UInt8 = 1)
    -> TrackKeys
  {
    TrackKeys(
      ExportTrackKeys(
        recording: id(number), epoch: epoch, tracks: tracks, ciphertext: Base64Bytes([byte]), sigAlg: "ES256",
        signature: Base64Bytes([5])), of: reel, listHash: Base64Bytes([2]))
  }
}
