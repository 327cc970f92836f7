package import Contract
package import MediaModel

/// A pending question; numbers are never reused.
package struct QuestionID: CountedID {
  package var rawValue: UInt64
  package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// A decision that the state machine cannot make itself. The answer is the subset of `to` for which it is yes.
package enum Question: Hashable, Sendable {
  package enum Action: String, Sendable, Hashable { case ring, watch, devices, message }
  /// The app's back end is asked which users `from` may reach (protocol section 7, `authorize`). `call` is that of a ring, for the log.
  case authorize(Action, from: UserID, to: [UserID], call: CallID? = nil)
  /// The disk is asked with which users `from` has had a call.
  case acquainted(from: UserID, to: [UserID])
}

/// A request about recordings, and who makes it.
package struct RecordingQuery: Sendable, Hashable {
  package var device: Device
  /// As others last saw it.
  package var name: String?
  /// The device's keys as registered; nil without any.
  package var entry: DeviceEntry?
  /// The request's recipients without a device that has keys.
  package var keyless: Set<UserID> = []
  /// The recipients that it may reach, by the app's back end; nil: those with whom the user has a call, or history, in common.
  package var allowed: Set<UserID>?
  package var request: RecordingsRequest

  package init(device: Device, name: String?, entry: DeviceEntry?, request: RecordingsRequest) {
    self.device = device
    self.name = name
    self.entry = entry
    self.request = request
  }
}

/// A query that the shell runs on a user's history (protocol section 8).
package enum HistoryQuery: Hashable, Codable, Sendable {
  /// `before` and `limit` are filled in. `rejoinable`: the calls among these that the user may rejoin now.
  case list(UserID, before: Timestamp, limit: Int, rejoinable: Set<CallID>)
  /// nil for all.
  case delete(UserID, calls: [CallID]?)
  case totals(UserID, with: UserID)
}
