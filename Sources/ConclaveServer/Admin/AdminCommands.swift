import Calls
import Contract
import Forwarding
import JSON
import JanusAPI
import LinuxIO
import Listening
import Logging
import MediaModel
import MediaPlane
import Recording
import ReelStore

/// Carries out the commands of the admin socket. Each change is logged with the user id of the process that asked, and without the person concerned.
struct AdminCommands: Sendable {
  /// The most rows of a reply.
  static let maximumRows = 1_000

  let control: ControlPlane
  let archive: Archive
  let health: StoreHealth
  /// nil if the server stores no recordings.
  let recordings: RecordingService?
  let media: MediaWorkers
  let logger: Logger
  let startedAt: Instant
  let signaling: @Sendable () -> SignalingStatistics?
  let unready: @Sendable () -> String?
  let isDraining: @Sendable () -> Bool
  /// Begins to drain, unless the server drains already.
  let drain: @Sendable () -> Void
  /// nil without rooms.
  let rooms: @Sendable () -> RoomPlane?

  func answer(_ request: AdminRequest, from user: UInt32) async -> [UInt8] {
    do {
      return try await perform(request, from: user)
    } catch {
      return (try? JSONCoding.encode(error as? AdminFailure ?? AdminFailure(error: "\(error)"))) ?? []
    }
  }

  private func perform(_ request: AdminRequest, from user: UInt32) async throws -> [UInt8] {
    switch request.command {
    case .status: return try JSONCoding.encode(await status())
    case .calls:
      let calls = await control.callSummaries().sorted { ($1.startedAt, $1.call) < ($0.startedAt, $0.call) }
      return try JSONCoding.encode(AdminCalls(calls: Array(calls.prefix(Self.maximumRows)), total: calls.count))
    case .users:
      let users = await control.connectedUsers().sorted { $0.user < $1.user }
      return try JSONCoding.encode(AdminUsers(users: Array(users.prefix(Self.maximumRows)), total: users.count))
    case .call: return try JSONCoding.encode(try await inspection(of: request.call))
    case .reports:
      let since = request.since ?? Timestamp(milliseconds: .min)
      let (reports, total) = try await archive.reports(since: since, limit: Self.maximumRows)
      return try JSONCoding.encode(AdminReports(reports: reports, total: total))
    case .report:
      guard let id = request.report, let report = try await archive.report(id) else {
        throw AdminFailure(error: "there is no report of this id: it was kept long enough, or forgotten with a user")
      }
      return try JSONCoding.encode(report)
    case .rooms: return try JSONCoding.encode(try await listRooms())
    case .end where request.call?.isOfRoom ?? false:
      guard let room = request.call, await rooms()?.end(room) ?? false else {
        throw AdminFailure(error: "there is no such room: `conclave rooms` lists them")
      }
      note("an operator ended a room", ["room": "\(room.text)", "uid": "\(user)"])
      return try JSONCoding.encode(AdminDone(done: "the room is ended"))
    case .end:
      guard let call = request.call, try await inspection(of: call).ended == nil else {
        throw AdminFailure(error: "this call has ended already")
      }
      note("an operator ended a call", ["call": "\(call.text)", "uid": "\(user)"])
      control.submit(.end(call))
      return try JSONCoding.encode(AdminDone(done: "the call is ended"))
    case .disconnect:
      guard let named = request.user, await control.isPresent(named) else {
        throw AdminFailure(error: "this user has no connection, and is in no call")
      }
      note("an operator disconnected a user", ["uid": "\(user)"])
      control.submit(.disconnectUser(named))
      return try JSONCoding.encode(AdminDone(done: "the user's connections are closed"))
    case .recordings: return try JSONCoding.encode(try await listRecordings(of: request.user))
    case .deleteRecording:
      guard let recording = request.recording, try await deleteRecording(recording) else {
        throw AdminFailure(error: "there is no recording of this id: `conclave recordings` lists them")
      }
      note("an operator deleted a recording", ["uid": "\(user)"])
      return try JSONCoding.encode(AdminDone(done: "the recording is deleted for everybody"))
    case .drain:
      note("an operator drains the server", ["uid": "\(user)"])
      drain()
      return try JSONCoding.encode(AdminDone(done: "no new calls; the server ends with the last call"))
    }
  }

  private func listRooms() async throws(AdminFailure) -> AdminRooms {
    guard let rooms = rooms() else {
      throw AdminFailure(error: "this server has no rooms: its configuration has no `janus`")
    }
    let summaries = await rooms.summaries
    let rows = summaries.prefix(Self.maximumRows).map { room in
      AdminRooms.Row(
        room: "room~" + room.id.description, isPreset: room.isPreset, participants: room.participants,
        publishers: room.publishers, subscribers: room.subscribers, peers: room.peers)
    }
    return AdminRooms(rooms: rows, total: summaries.count)
  }

  private func inspection(of call: CallID?) async throws -> CallInspection {
    guard let call, let found = await control.inspection(of: call) else {
      throw AdminFailure(error: "no call with this id runs, or was among the last that ended")
    }
    return found
  }

  private var store: RecordingService {
    get throws(AdminFailure) {
      guard let recordings else {
        throw AdminFailure(error: "this server stores no recordings: its configuration has no `recordings`")
      }
      return recordings
    }
  }

  private func listRecordings(of user: UserID?) async throws(AdminFailure) -> AdminRecordings {
    let service = try store
    let lag = control.lag
    let found: [StoredRecording]
    do throws(RequestError) {
      found = try await service.recordings(of: user, limit: Self.maximumRows)
    } catch {
      throw AdminFailure(error: error.message)
    }
    let statistics = service.store.statistics
    let rows = found.map {
      AdminRecordings.Row(
        recording: $0.id, kind: $0.kind, owner: $0.owner.user, state: $0.state, isDraft: $0.isDraft,
        startedAt: $0.startedAt + lag, seconds: $0.seconds, bytes: $0.byteCount, expiresAt: $0.expiresAt + lag)
    }
    return AdminRecordings(recordings: rows, total: statistics.recordings, bytes: statistics.bytes)
  }

  private func deleteRecording(_ id: RecordingID) async throws(AdminFailure) -> Bool {
    let service = try store
    do throws(RequestError) {
      return try await service.delete(id)
    } catch {
      throw AdminFailure(error: error.message)
    }
  }

  private func status() async -> AdminStatus {
    let counts = await control.counts()
    let signaling = signaling()
    return AdminStatus(
      version: Server.version, process: ProcessFacts.id,
      seconds: Int(startedAt.duration(to: MonotonicClock.now()).nanoseconds / 1_000_000_000),
      notReady: unready(), warnings: health.statistics.condition?.warnings, isDraining: isDraining(),
      calls: counts.calls, participants: counts.participants,
      connections: signaling?.connections ?? 0, sessions: signaling?.sessions ?? 0,
      workers: media.statistics().map { .init(peers: $0.forwarding.peers, connected: $0.forwarding.connected) })
  }

  private func note(_ message: Logger.Message, _ metadata: Logger.Metadata) {
    logger.notice(message, metadata: metadata)
  }
}
