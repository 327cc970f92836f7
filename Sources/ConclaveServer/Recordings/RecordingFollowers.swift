import Contract
import MediaModel
import Recording

/// The devices that have a running recording open, and what they were told of it last (protocol section 13.6). Pure: times are arguments.
struct RecordingFollowers {
  /// How long a device counts as having it open after it asked for the manifest.
  static let time = Duration.seconds(60)
  /// Between two events about one recording, unless its state changes.
  static let pause = Duration.seconds(5)
  static let maximumOfRecording = 256
  static let maximumRecordings = 10_000

  private struct Followed {
    let owner: UserID
    var devices: [Device: Timestamp] = [:]
    var told: RecordingChanged
    var toldAt: Timestamp
    var newNote: UInt32?
  }

  private var followed: [RecordingID: Followed] = [:]

  /// Those of which the state has to be compared.
  var recordings: [RecordingID] { Array(followed.keys) }

  /// - Parameter state: as in the manifest that the device gets.
  mutating func follow(_ device: Device, _ state: RecordingChanged, owner: UserID, now: Timestamp) {
    let id = state.recording
    if followed[id] == nil {
      guard followed.count < Self.maximumRecordings else { return }
      // The first change is told at once.
      followed[id] = Followed(owner: owner, told: state, toldAt: now - Self.pause)
    }
    guard let devices = followed[id]?.devices, devices[device] != nil || devices.count < Self.maximumOfRecording else {
      return
    }
    followed[id]?.devices[device] = now + Self.time
  }

  mutating func note(_ number: UInt32, of id: RecordingID) {
    guard let last = followed[id]?.newNote else {
      followed[id]?.newNote = number
      return
    }
    followed[id]?.newNote = max(last, number)
  }

  /// - Parameter state: as it is now; nil if the recording is gone.
  /// - Returns: what to tell whom.
  mutating func compare(
    _ state: RecordingChanged?, of id: RecordingID, now: Timestamp
  ) -> (change: RecordingChanged, devices: [Device], owner: UserID)? {
    guard var entry = followed[id] else { return nil }
    entry.devices = entry.devices.filter { $0.value > now }
    guard let state, !entry.devices.isEmpty else {
      followed[id] = nil
      return nil
    }
    followed[id] = entry
    let hasOtherState = state.state != entry.told.state
    guard hasOtherState || state != entry.told || entry.newNote != nil,
      hasOtherState || entry.toldAt + Self.pause <= now
    else { return nil }
    var change = state
    // In range: notes are numbered below 1,000.
    change.notes = entry.newNote.map { $0 &+ 1 }
    (entry.told, entry.toldAt, entry.newNote) = (state, now, nil)
    followed[id] = [.running, .silent].contains(state.state) ? entry : nil
    return (change, entry.devices.keys.sorted(), entry.owner)
  }
}
