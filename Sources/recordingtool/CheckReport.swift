import ConclaveClient
import Foundation

/// The words of `check` about a recording, and whether everything is there.
struct CheckReport {
  /// A reel, and what was found in its segments.
  struct Reel {
    var info: ReelInfo
    var gaps: [RecordingGap]
  }

  private static let shownGaps = 20

  let info: RecordingInfo
  let reels: [Reel]
  /// The numbers of notes that the server has left out or changed.
  let missingNotes: [Int]

  init(info: RecordingInfo, reels: [Reel], missingNotes: [Int]) {
    self.info = info
    self.reels = reels
    self.missingNotes = missingNotes
  }

  /// Reads all of a recording.
  init(reading reader: RecordingReader) async throws {
    var gaps: [UInt32: [RecordingGap]] = [:]
    for reel in await reader.reels {
      for number in 0..<reel.segments {
        guard let segment = try await reader.segment(number, ofReel: reel.number) else { break }
        gaps[reel.number, default: []] += segment.gaps
      }
    }
    self.init(
      info: reader.info, reels: await reader.reels.map { Reel(info: $0, gaps: gaps[$0.number] ?? []) },
      missingNotes: await reader.notes.missing)
  }

  /// Nothing is missing, changed, refused or closed. A call's reels have no signed end: the server's word counts there.
  var isGood: Bool { !reels.isEmpty && missingNotes.isEmpty && reels.allSatisfy { isGood($0.info) } }

  private func isGood(_ reel: ReelInfo) -> Bool {
    guard reel.missing.isEmpty, reel.refused.isEmpty else { return false }
    switch reel.state {
    case .complete: return true
    case .unfinished: return info.kind == .call && reel.isEnded
    case .cutOff, .changed, .closed: return false
    }
  }

  var lines: [String] {
    var lines = [
      "\(info.id): \(kind), signed by \(info.user) on \(info.device) (\(Self.words(info.trust)))"
        + " at \(Self.date(info.at))",
      "for \(info.readers.joined(separator: ", "))",
    ]
    for reel in reels { lines += self.lines(reel) }
    if reels.isEmpty { lines.append("no reel: nothing was recorded, or all of it was erased") }
    if !missingNotes.isEmpty { lines.append("notes that are missing or changed: \(Self.numbers(missingNotes))") }
    lines.append(isGood ? "good: everything that is listed is there, and as it was made" : "NOT GOOD: see above")
    return lines
  }

  private var kind: String {
    switch info.kind {
    case .call: "a call"
    case .message: "a message"
    case .own: "an own recording"
    }
  }

  private func lines(_ reel: Reel) -> [String] {
    let about = reel.info
    var lines = [
      "reel \(about.number), \(about.user) on \(about.device) (\(Self.words(about.trust))): "
        + "\(about.segments) segments, \(Self.clock(about.end - about.start)), \(state(about))"
    ]
    if about.knownSegments > about.segments {
      let lost = about.knownSegments - about.segments
      lines.append("  it had \(about.knownSegments) segments: the last \(lost) are missing")
    }
    if !about.missing.isEmpty { lines.append("  segments that the server lacks: \(Self.numbers(about.missing))") }
    for (number, refusal) in about.refused.sorted(by: { $0.key < $1.key }) {
      lines.append("  segment \(number): \(Self.words(refusal))")
    }
    for gap in reel.gaps.prefix(Self.shownGaps) {
      let track = gap.track.map { "track \($0)" } ?? "all tracks"
      let (from, to) = (Self.clock(gap.from - about.start), Self.clock(gap.to - about.start))
      lines.append("  \(from) to \(to), \(track): \(Self.words(gap.reason))")
    }
    if reel.gaps.count > Self.shownGaps { lines.append("  and \(reel.gaps.count - Self.shownGaps) further gaps") }
    return lines
  }

  private func state(_ reel: ReelInfo) -> String {
    switch reel.state {
    case .complete: "complete"
    case .unfinished where reel.isEnded: "ended, as the server says"
    case .unfinished: "not finished"
    case .cutOff: "CUT OFF"
    case .changed: "CHANGED"
    case .closed: "CLOSED: no key of it counts"
    }
  }

  // MARK: words

  static func words(_ trust: TrustLevel) -> String {
    switch trust {
    case .new: "not seen before"
    case .known: "known, not compared"
    case .vouched: "vouched for"
    case .verified: "verified"
    }
  }

  static func words(_ refusal: SegmentRefusal) -> String {
    switch refusal {
    case .malformed: "is no segment"
    case .notListed: "is not the one that is listed, or does not follow the one before"
    case .notSealed: "does not open under the reel's key"
    }
  }

  static func words(_ reason: RecordingGap.Reason) -> String {
    switch reason {
    case .network: "lost on the sender's way to the server"
    case .serverLate: "the server was late"
    case .disk: "the disk was slow or full"
    case .restart: "a restart"
    case .keyNotAdmitted: "the sender's key had not arrived"
    case .recorderAway: "the recorder was away"
    case .unknown: "for an unknown reason"
    case .missing: "the server has no such segment"
    case .refused(let refusal): "the segment " + words(refusal)
    case .cutShort: "the segment was not finished, or is damaged"
    case .noKey: "no key was handed out"
    case .foreignFrame: "frames that do not belong there"
    case .unsupportedCodec: "a codec that is not opened here"
    }
  }

  /// Numbers with their ranges: 1, 3-5.
  static func numbers(_ numbers: [Int]) -> String {
    var ranges: [ClosedRange<Int>] = []
    for number in numbers.sorted() {
      if let last = ranges.last, last.upperBound + 1 == number {
        ranges[ranges.count - 1] = last.lowerBound...number
      } else {
        ranges.append(number...number)
      }
    }
    return ranges.map { $0.count == 1 ? "\($0.lowerBound)" : "\($0.lowerBound)-\($0.upperBound)" }
      .joined(separator: ", ")
  }

  /// Microseconds as hours, minutes and seconds.
  static func clock(_ microseconds: Int64) -> String {
    let seconds = max(0, microseconds) / 1_000_000
    let (hours, minutes, rest) = (seconds / 3_600, seconds / 60 % 60, seconds % 60)
    let end = (minutes < 10 && hours > 0 ? "0" : "") + "\(minutes):" + (rest < 10 ? "0" : "") + "\(rest)"
    return hours > 0 ? "\(hours):\(end)" : end
  }

  /// Milliseconds since 1970, in UTC; years with four digits.
  static func date(_ milliseconds: Int64) -> String {
    let known = max(0, min(milliseconds, 253_402_300_799_000))
    return Date(timeIntervalSince1970: Double(known) / 1_000).formatted(.iso8601)
  }
}
