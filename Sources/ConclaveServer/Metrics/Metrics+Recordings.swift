import CallMessages
import MediaPlane
import ReelStore
import Reels

extension Metrics.Page {
  mutating func add(_ recordings: RecordingStatistics, _ alerts: AlertCounts) {
    let counts = recordings.counts
    gauge("conclave_recordings", "Recordings.", recordings.recordings)
    gauge("conclave_recording_drafts", "Recordings that nobody can open yet.", recordings.drafts)
    gauge("conclave_recordings_running", "Recordings that take segments.", recordings.running)
    gauge("conclave_recording_stored_bytes", "Bytes of all recordings.", Int(recordings.bytes))
    gauge("conclave_recording_upload_bytes", "Bytes of uploads that are under way.", Int(recordings.uploadBytes))
    gauge(
      "conclave_recording_store_stuck", "1 while the disk or the database does not answer the store of recordings.",
      recordings.isStuck ? 1 : 0)
    counter("conclave_recording_segments_total", "Segments stored.", counts.segments)
    counter("conclave_recorded_bytes_total", "Bytes of segments stored.", counts.bytes)
    counter("conclave_recording_adopted_total", "Segments that a start found without a row.", counts.adopted)
    counter("conclave_recording_orphans_total", "Folders without a row that were removed.", counts.orphans)
    counter("conclave_recordings_expired_total", "Recordings deleted when their time was over.", counts.expired)
    counter(
      "conclave_recording_failures_total", "Times that the disk or the database failed the store of recordings.",
      counts.failures)
    counter(
      "conclave_recording_refused_total", "Recordings and segments refused, by reason.",
      RecordingCounts.Refusal.allCases.map { ("reason=\"\($0.rawValue)\"", counts.refusals[$0, default: 0]) })
    gauge("conclave_recording_alerts_waiting", "Users whom an alert has not reached yet.", alerts.waiting)
    counter(
      "conclave_recording_alerts_total", "Users alerted, and what became of it.",
      [
        ("result=\"raised\"", alerts.raised), ("result=\"reached\"", alerts.reached),
        ("result=\"givenUp\"", alerts.givenUp),
      ])
  }

  /// The thread that makes reels of calls.
  mutating func add(_ reels: ReelStatistics) {
    let counts = reels.counts
    gauge(
      "conclave_recording_backlog_bytes", "Bytes of calls' recordings that wait for the disk.", reels.backlog)
    counter("conclave_recorded_frames_total", "Frames of calls that were stored.", counts.frames)
    counter(
      "conclave_recording_gaps_total", "Parts of calls' recordings that are missing, by reason.",
      GapReason.allCases.map { ("why=\"\($0)\"", counts.gaps[$0, default: 0]) })
    counter(
      "conclave_recording_dropped_frames_total", "Frames of recorded participants that were not stored, by reason.",
      ReelCounts.Drop.allCases.map { ("reason=\"\($0.rawValue)\"", counts.drops[$0, default: 0]) })
    counter(
      "conclave_recording_key_frame_requests_total", "Key frames that were asked for, for recordings.",
      counts.keyFrameRequests)
  }
}
