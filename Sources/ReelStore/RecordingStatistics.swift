package import Recording

/// Counts of a store of recordings since the start, for the metrics.
package struct RecordingCounts: Sendable {
  package var segments: UInt64 = 0
  package var bytes: UInt64 = 0
  /// Files of the last run that continued their reels.
  package var adopted: UInt64 = 0
  /// Folders that no row named.
  package var orphans: UInt64 = 0
  package var expired: UInt64 = 0
  /// The disk or the database refused.
  package var failures: UInt64 = 0
  package private(set) var refusals: [Refusal: UInt64] = [:]

  /// `RecordingRefusal` without its values.
  package enum Refusal: String, CaseIterable, Sendable {
    case unsigned, notFound, taken, invalid, conflict, tooLarge, tooLong, quota, drafts, grants, unopened, diskFull,
      busy,
      unavailable
  }

  mutating func stored(_ byteCount: Int) {
    segments &+= 1
    bytes &+= UInt64(byteCount)
  }

  mutating func refused(_ refusal: RecordingRefusal) { refusals[Refusal(refusal), default: 0] &+= 1 }
}

extension RecordingCounts.Refusal {
  package init(_ refusal: RecordingRefusal) {
    self =
      switch refusal {
      case .unsigned: .unsigned
      case .notFound: .notFound
      case .taken: .taken
      case .invalid: .invalid
      case .conflict: .conflict
      case .tooLarge: .tooLarge
      case .tooLong: .tooLong
      case .quota: .quota
      case .drafts: .drafts
      case .grants: .grants
      case .unopened: .unopened
      case .diskFull: .diskFull
      case .busy: .busy
      case .unavailable: .unavailable
      }
  }
}

/// The state of a store of recordings, for the metrics.
package struct RecordingStatistics: Sendable {
  package var recordings: Int
  /// Recordings that take segments.
  package var running: Int
  /// Recordings that nobody can open yet.
  package var drafts: Int
  /// The sum of all recordings.
  package var bytes: Int64
  /// The sum of the uploads that are under way.
  package var uploadBytes: Int64
  /// The disk does not answer.
  package var isStuck: Bool
  package var counts: RecordingCounts
}
