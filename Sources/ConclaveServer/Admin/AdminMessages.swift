package import Calls
import Contract
package import MediaModel

/// A request on the admin socket: one JSON object and a line end. One connection carries one request and one reply.
package struct AdminRequest: Codable, Sendable, Hashable {
  package enum Command: String, Codable, Sendable {
    case status, calls, call, users, reports, report, end, disconnect, drain, recordings, rooms
    case deleteRecording = "delete-recording"
  }

  static let maximumBytes = 4_096

  package var command: Command
  /// Required by `call` and `end`.
  package var call: CallID?
  /// Required by `disconnect`; `recordings` lists only this user's.
  package var user: UserID?
  /// Required by `report`.
  package var report: ReportID?
  /// `reports` omits older ones.
  package var since: Timestamp?
  /// Required by `delete-recording`.
  package var recording: RecordingID?

  package init(
    _ command: Command, call: CallID? = nil, user: UserID? = nil, report: ReportID? = nil, since: Timestamp? = nil,
    recording: RecordingID? = nil
  ) {
    self.command = command
    self.call = call
    self.user = user
    self.report = report
    self.since = since
    self.recording = recording
  }
}

/// The rooms, at most `AdminCommands.maximumRows`.
struct AdminRooms: Codable {
  struct Row: Codable {
    /// As `conclave end` takes it.
    var room: String
    var isPreset: Bool
    var participants: Int
    var publishers: Int
    var subscribers: Int
    var peers: Int
  }

  var rooms: [Row]
  var total: Int
}

/// The answer to a refused request.
struct AdminFailure: Codable, Error {
  var error: String
}

struct AdminStatus: Codable {
  struct WorkerStatus: Codable {
    var peers: Int
    var connected: Int
  }

  var version: String
  var process: Int32
  var seconds: Int
  /// Why `/readyz` is 503.
  var notReady: String?
  /// Remarks on the database's server; nil for a file.
  var warnings: [String]?
  var isDraining: Bool
  var calls: Int
  var participants: Int
  var connections: Int
  var sessions: Int
  var workers: [WorkerStatus]
}

/// The newest calls, at most `AdminCommands.maximumRows`; `total` is how many there are.
struct AdminCalls: Codable {
  var calls: [CallSummary]
  var total: Int

  /// The only call whose id begins like this.
  /// - Throws: `ConfigurationError` if there is none, there are several, or some are not listed.
  func call(beginningWith text: String) throws(ConfigurationError) -> CallID {
    let found = text.isEmpty ? [] : calls.filter { $0.call.text.hasPrefix(text) }
    guard let call = found.first?.call else {
      throw ConfigurationError("no running call's id begins with \(text): `conclave calls` lists them")
    }
    guard found.count == 1, calls.count == total else {
      throw ConfigurationError("several calls' ids may begin with \(text): give the whole id")
    }
    return call
  }
}

struct AdminUsers: Codable {
  var users: [ConnectedUser]
  var total: Int
}

/// As `AdminCalls`.
struct AdminReports: Codable {
  var reports: [StoredReport]
  var total: Int
}

/// The newest recordings, at most `AdminCommands.maximumRows`; `total` is how many there are of all users.
struct AdminRecordings: Codable {
  struct Row: Codable {
    var recording: RecordingID
    var kind: RecordingKind
    var owner: UserID
    var state: RecordingState
    /// It has no grant yet, so that nobody can open it.
    var isDraft: Bool
    var startedAt: Timestamp
    var seconds: Int
    var bytes: Int64
    var expiresAt: Timestamp
  }

  var recordings: [Row]
  var total: Int
  /// The bytes of all users.
  var bytes: Int64
}

/// The effect of `end`, `disconnect`, `drain` and `delete-recording`.
struct AdminDone: Codable {
  var done: String
}
