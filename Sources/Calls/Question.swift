package import MediaModel

/// A question under way; never used twice.
package struct QuestionID: Hashable, Sendable {
  package var rawValue: UInt64
  package init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// A decision that the state machine can't make by itself. The answer is the subset of `to` for which it is yes.
package enum Question: Hashable, Sendable {
  package enum Action: String, Sendable, Hashable { case ring, watch, devices }
  /// The app's back end says whom `from` may reach (protocol section 7, `authorize`).
  case authorize(Action, from: UserID, to: [UserID])
  /// The disk says with whom `from` has had a call.
  case acquainted(from: UserID, to: [UserID])
}

/// A query that the shell runs on a user's history (protocol section 8).
package enum HistoryQuery: Hashable, Sendable {
  /// `before` and `limit` are filled in. `rejoinable`: calls of these that the user may rejoin now.
  case list(UserID, before: Timestamp, limit: Int, rejoinable: Set<CallID>)
  /// nil for all.
  case delete(UserID, calls: [CallID]?)
  case totals(UserID, with: UserID)
}
