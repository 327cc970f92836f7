import CallMessages
import Contract
import MediaModel
import Octets

/// Alerts of recordings that no device of their users has acknowledged yet (protocol section 13.6).
struct Alerts {
  /// One recording for one user.
  struct Alert {
    var recording: RecordingID
    var kind: RecordingKind
    /// The device that records.
    var by: Device
    /// The user's.
    var grants: [RecordingGrant]
    var since: Timestamp
    /// How many pushes are sent, or were due before a restart.
    fileprivate var pushes = 0

    init(_ alert: RecordingAlert, grants: [RecordingGrant]) {
      recording = alert.recording
      kind = alert.kind
      by = alert.by
      since = alert.at
      self.grants = grants
    }

    /// When the next push is due, or the alert is given up.
    fileprivate var due: Timestamp {
      pushes < Alerts.pushes ? since + Alerts.pause * pushes : since + RecordingAlert.lifetime
    }
  }

  /// How often a browser that is not open is told.
  static let pushes = 3
  static let pause = Duration.seconds(60)
  /// The most recordings of one owner whose alerts wait; the oldest is given up for a new one.
  static let maximumOfOwner = 8

  private(set) var counts = AlertCounts()
  private var ofUser: [UserID: [Alert]] = [:]
  /// The users who have not been reached.
  private var users: [RecordingID: Set<UserID>] = [:]
  /// The recordings whose alerts wait, by owner, the oldest first.
  private var owned: [UserID: [RecordingID]] = [:]
  /// When something is due; also of alerts that are gone.
  private var due = Heap<Timestamp, Place>()

  private struct Place {
    var recording: RecordingID
    var user: UserID
  }

  /// Not after the first that is due.
  var next: Timestamp? { due.first?.key }

  func of(_ user: UserID) -> [Alert] { ofUser[user] ?? [] }

  /// - Parameter isRestored: the alert is from before a restart.
  /// - Returns: false if the user is alerted of it already.
  mutating func add(_ alert: Alert, to user: UserID, isRestored: Bool, now: Timestamp) -> Bool {
    guard users[alert.recording]?.contains(user) != true else { return false }
    var alert = alert
    while isRestored, alert.pushes < Self.pushes, alert.due < now { alert.pushes += 1 }
    let owner = alert.by.user
    if users[alert.recording] == nil {
      owned[owner, default: []].append(alert.recording)
      if let waiting = owned[owner], waiting.count > Self.maximumOfOwner { giveUp(waiting[0]) }
    }
    users[alert.recording, default: []].insert(user)
    ofUser[user, default: []].append(alert)
    due.add(Place(recording: alert.recording, user: user), key: alert.due)
    counts.waiting += 1
    if !isRestored { counts.raised &+= 1 }
    return true
  }

  /// - Returns: the alert, unless it was reached before.
  mutating func reach(_ recording: RecordingID, _ user: UserID) -> Alert? {
    guard let alert = take(recording, of: user) else { return nil }
    counts.reached &+= 1
    return alert
  }

  /// The user may not open the recording any more.
  mutating func drop(_ recording: RecordingID, of user: UserID) { _ = take(recording, of: user) }

  /// Alerts of the user, and of its recordings.
  mutating func forget(_ user: UserID) {
    for alert in of(user) { drop(alert.recording, of: user) }
    for recording in owned[user] ?? [] {
      for other in users[recording] ?? [] { drop(recording, of: other) }
    }
  }

  /// The users to whom a push is due.
  mutating func takeDue(now: Timestamp) -> [(user: UserID, alert: Alert)] {
    var pushes: [(UserID, Alert)] = []
    while let first = due.first, first.key <= now, let place = due.removeFirst() {
      guard let index = ofUser[place.user]?.firstIndex(where: { $0.recording == place.recording }),
        var alert = ofUser[place.user]?[index], alert.due <= now
      else { continue }
      guard alert.pushes < Self.pushes else {
        counts.givenUp &+= 1
        drop(place.recording, of: place.user)
        continue
      }
      pushes.append((place.user, alert))
      alert.pushes += 1
      ofUser[place.user]?[index] = alert
      due.add(place, key: alert.due)
    }
    return pushes
  }

  private mutating func giveUp(_ recording: RecordingID) {
    for user in users[recording] ?? [] {
      counts.givenUp &+= 1
      drop(recording, of: user)
    }
  }

  private mutating func take(_ recording: RecordingID, of user: UserID) -> Alert? {
    guard let place = ofUser[user]?.firstIndex(where: { $0.recording == recording }),
      let alert = ofUser[user]?.remove(at: place)
    else { return nil }
    if ofUser[user]?.isEmpty == true { ofUser[user] = nil }
    counts.waiting -= 1
    if due.count > 64 + 2 * counts.waiting {
      due.removeAll { [users] in users[$0.recording]?.contains($0.user) != true }
    }
    users[recording]?.remove(user)
    guard users[recording]?.isEmpty == true else { return alert }
    users[recording] = nil
    let owner = alert.by.user
    owned[owner]?.removeAll { $0 == recording }
    if owned[owner]?.isEmpty == true { owned[owner] = nil }
    return alert
  }
}
