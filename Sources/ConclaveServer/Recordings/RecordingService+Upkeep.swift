import CallMessages
import Contract
import Listening
import Logging
import MediaModel
import Recording
import ReelStore
import Synchronization

/// The service at work without a request, and for the operator.
extension RecordingService {
  /// Seconds between two looks at recordings whose time is over.
  private static let expiryPause = 60

  /// Goes on with alerts of the last run. Then, each second, tells devices of recordings that they have open, and each minute deletes what has expired, until it
  /// is cancelled.
  func run(log: LimitedLog) -> Task<Void, Never> {
    Task {
      do throws(RecordingRefusal) {
        try await restoreAlerts()
      } catch {
        log.log(.recordings, .error, "alerts from before the start were not read; nobody is told of them again", [:])
      }
      var seconds = 0
      while !Task.isCancelled {
        if seconds % Self.expiryPause == 0 { await expire(log) }
        await tellFollowers()
        seconds += 1
        try? await Task.sleep(for: .seconds(1))
      }
    }
  }

  private func expire(_ log: LimitedLog) async {
    do throws(RecordingRefusal) {
      while try await store.expire(now: clock.now()) {}
    } catch {
      log.log(.recordings, .error, "expired recordings were not deleted; the next try is in a minute", [:])
    }
  }

  func tellFollowers() async {
    for id in followers.withLock({ $0.recordings }) {
      let recording: StoredRecording?
      do throws(RecordingRefusal) {
        recording = try await store.recording(id)
      } catch {
        // A database that does not answer delays the news.
        continue
      }
      let state = recording.map(catalogue.change)
      let due = followers.withLock { $0.compare(state, of: id, now: clock.now()) }
      if let due { tell(.changed(due.change, to: due.devices, owner: due.owner)) }
    }
  }

  func restoreAlerts() async throws(RecordingRefusal) {
    let oldest = clock.now() - RecordingAlert.lifetime
    let alerts = try await store.ask { storage throws(StoreError) in
      var alerts: [RecordingAlert] = []
      let waiting = try storage.alerts().filter { $0.at > oldest }
      for (id, those) in Dictionary(grouping: waiting, by: \.recording).sorted(by: { $0.key < $1.key }) {
        guard let recording = try storage.recording(id), let at = those.first?.at else { continue }
        var users: [UserID: [RecordingGrant]] = [:]
        for alert in those { users[alert.user] = try storage.grants(of: id, to: alert.user) }
        alerts.append(
          RecordingAlert(
            recording: id, kind: recording.kind, by: recording.owner, at: at, users: users, isRestored: true))
      }
      return alerts
    }
    for alert in alerts { tell(.alert(alert)) }
  }

  // MARK: the operator

  /// Newest first.
  /// - Parameter owner: nil for those of all users.
  func recordings(of owner: UserID?, limit: Int) async throws(RequestError) -> [StoredRecording] {
    let filter = RecordingFilter(before: Timestamp(milliseconds: .max), limit: limit, role: .owner)
    return try await ask { storage throws(StoreError) in try storage.recordings(of: owner, filter) }
  }

  /// Deletes a recording for everybody.
  /// - Returns: whether there was one.
  func delete(_ id: RecordingID) async throws(RequestError) -> Bool {
    guard let gone = try await remove(id, of: nil, by: nil) else { return false }
    tell(gone)
    return true
  }
}
