import Contract
package import MediaModel

/// The reels of calls, which the server writes: no upload is admitted for them.
extension RecordingLedger {
  /// Where a reel continues; nil if the recording does not run, or has no such reel.
  package func position(of id: RecordingID, reel: UInt32) -> ReelPosition? {
    running[id]?.recording.reels.first { $0.number == reel }?.position
  }

  /// A reel begins.
  /// - Returns: false if the recording does not run.
  @discardableResult package mutating func add(_ reel: StoredReel, to id: RecordingID) -> Bool {
    guard let recording = running[id]?.recording else { return false }
    guard !recording.reels.contains(where: { $0.number == reel.number }) else { return true }
    running[id]?.recording.reels.append(reel)
    return true
  }

  /// Whether the owner of a running recording has room for more.
  package func hasRoom(for id: RecordingID) -> Bool {
    guard let owner = running[id]?.recording.owner.user else { return false }
    return room(of: owner) > 0
  }

  /// A segment's file and its row are on the disk.
  /// - Returns: false if recording or reel went meanwhile; then its file goes, too.
  package mutating func append(_ segment: StoredSegment, to id: RecordingID, reel: UInt32) -> Bool {
    guard let entry = running[id], let place = entry.recording.reels.firstIndex(where: { $0.number == reel }),
      entry.recording.reels[place].position.next == segment.number
    else { return false }
    running[id]?.recording.reels[place].position.append(segment)
    usage[entry.recording.owner.user, default: Usage()].stored.bytes += Int64(segment.byteCount)
    bytes += Int64(segment.byteCount)
    return true
  }
}
