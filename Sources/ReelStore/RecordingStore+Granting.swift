import CallMessages
package import Contract
package import MediaModel
package import Recording
import Synchronization

/// Grants of a recording that are to be stored, and alerts about it.
package struct Granting: Sendable {
  package var grants: [RecordingGrant]
  package var notes: [RecordingNote]
  /// The user whose device made the grants.
  package var author: UserID
  /// When a recording that was a draft expires from now on.
  package var expiresAt: Timestamp
  /// Users who are alerted of it.
  package var alerts: [UserID] = []
  /// The time of the alerts.
  package var at: Timestamp
  /// Grants to users who have not opened the sender's last recordings are left out. Otherwise they refuse everything.
  package var leavesOut = false

  package init(
    grants: [RecordingGrant], notes: [RecordingNote] = [], author: UserID, expiresAt: Timestamp, at: Timestamp
  ) {
    self.grants = grants
    self.notes = notes
    self.author = author
    self.expiresAt = expiresAt
    self.at = at
  }
}

/// The part of a `Granting` that was stored and is new.
package struct NewGrants: Hashable, Sendable {
  package var grants: [RecordingGrant] = []
  /// The users among their holders who could not open the recording before.
  package var newcomers: Set<UserID> = []
  /// The users who were alerted just now.
  package var alerted: [UserID] = []
  /// The users whose grants were left out.
  package var leftOut: Set<UserID> = []

  package init() {}
}

extension RecordingStore {
  /// The most users who can open a recording.
  package static let maximumReaders = 64
  /// The most grants of one user.
  package static let maximumGrants = 32
  /// The most recordings of one sender that a user has not opened, before the sender has to wait.
  package static let maximumUnopened = 10

  /// Stores grants and notes of a recording.
  /// - Returns: which of the grants are new.
  package func grant(_ granting: Granting, of id: RecordingID) async throws(RecordingRefusal) -> NewGrants {
    try await counting { [self] () async throws(RecordingRefusal) in
      try await lanes.run(on: .rows) { [self] () throws(RecordingRefusal) in
        guard let known = try reading({ store throws(StoreError) in try store.recording(id) }) else { throw .notFound }
        let (granted, facts) = try checked(granting, for: known, isNew: false)
        try write(facts)
        keep(known, granting, granted)
        return granted
      }
    }
  }

  /// On the lane of rows, so that no other grants come between.
  func checked(
    _ granting: Granting, for recording: StoredRecording, isNew: Bool
  ) throws(RecordingRefusal) -> (NewGrants, [RecordingFact]) {
    let id = recording.id
    var known: [StoredReader] = []
    if !isNew { known = try reading { store throws(StoreError) in try store.readers(of: id) } }
    let readers = Dictionary(known.map { ($0.user, $0) }) { first, _ in first }
    var granted = NewGrants()
    for (user, grants) in Dictionary(grouping: granting.grants, by: \.to.user).sorted(by: { $0.key < $1.key }) {
      var stored: [RecordingGrant] = []
      if let reader = readers[user], reader.grants > 0 {
        stored = try reading { store throws(StoreError) in try store.grants(of: id, to: user) }
      } else if user != granting.author, !granting.alerts.contains(user), !recording.isOfRunningCall {
        let unopened = try reading { store throws(StoreError) in try store.unopened(from: granting.author, by: user) }
        guard unopened < Self.maximumUnopened else {
          guard granting.leavesOut else { throw .unopened }
          granted.leftOut.insert(user)
          continue
        }
      }
      let new = grants.filter { !stored.contains($0) }
      guard Set((stored + new).map(\.to)).count <= Self.maximumGrants else { throw .grants }
      granted.grants += new
      if stored.isEmpty, user != granting.author { granted.newcomers.insert(user) }
    }
    let holders = Set(known.filter { $0.grants > 0 }.map(\.user)).union(granted.grants.map(\.to.user))
    guard holders.count <= Self.maximumReaders else { throw .grants }
    granted.alerted = granting.alerts.filter { readers[$0]?.alertedAt == nil }
    var facts = granted.grants.map { RecordingFact.grant($0) }
    if recording.isDraft, !granted.grants.isEmpty { facts.append(.kept(id, until: granting.expiresAt)) }
    facts += granted.alerted.map { .reader(id, $0, .alerted(granting.at)) }
    facts += granting.notes.map { .note(id, $0) }
    return (granted, facts)
  }

  /// The facts are on the disk.
  func keep(_ recording: StoredRecording, _ granting: Granting, _ granted: NewGrants) {
    guard !granted.grants.isEmpty else { return }
    ledger.withLock { $0.keep(recording, until: granting.expiresAt) }
  }
}
