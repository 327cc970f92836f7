import Contract
import MediaModel
import Testing

@testable import ConclaveServer

/// Which devices are told that a recording grows (protocol section 13.6).
struct RecordingFollowersTests {
  fileprivate let now = Timestamp(milliseconds: 1_800_000_000_000)
  fileprivate let owner = UserID(unchecked: "alice")
  fileprivate let id = RecordingID([UInt8](repeating: 1, count: 16))!

  fileprivate func device(_ number: Int) -> Device {
    Device(user: UserID(unchecked: "bob"), device: DeviceID(unchecked: "d\(number)"))
  }

  private func state(_ segments: UInt32, _ state: RecordingState = .running, _ id: RecordingID? = nil)
    -> RecordingChanged
  {
    let reel = RecordingChanged.Reel(participant: 1, segments: segments, head: Base64Bytes([UInt8(segments)]))
    return RecordingChanged(recording: id ?? self.id, state: state, reels: [reel])
  }

  /// The followers, and what is told when.
  private final class Lectern {
    var followers = RecordingFollowers()
    let test: RecordingFollowersTests

    init(_ test: RecordingFollowersTests) { self.test = test }

    func follow(_ device: Int, _ state: RecordingChanged, after seconds: Int = 0) {
      followers.follow(test.device(device), state, owner: test.owner, now: test.now + .seconds(seconds))
    }

    func told(_ state: RecordingChanged?, after seconds: Int = 0) -> (
      change: RecordingChanged, devices: [Device], owner: UserID
    )? { followers.compare(state, of: test.id, now: test.now + .seconds(seconds)) }
  }

  @Test func theFirstChangeIsToldAtOnceAndFurtherOnesAfterAPause() {
    let lectern = Lectern(self)
    lectern.follow(1, state(0))
    #expect(lectern.told(state(0)) == nil)
    let first = lectern.told(state(1))
    #expect(first?.change == state(1) && first?.devices == [device(1)] && first?.owner == owner)
    #expect(lectern.told(state(2), after: 4) == nil)
    #expect(lectern.told(state(3), after: 5)?.change == state(3))
    // A state is told at once.
    #expect(lectern.told(state(3, .silent), after: 6)?.change == state(3, .silent))
    #expect(lectern.told(state(3, .finished), after: 7)?.change == state(3, .finished))
    #expect(lectern.followers.recordings.isEmpty, "nothing more will come")
  }

  @Test func theNewestNoteIsTold() {
    let lectern = Lectern(self)
    lectern.followers.note(3, of: id)
    lectern.follow(1, state(0))
    for number: UInt32 in [7, 5] { lectern.followers.note(number, of: id) }
    #expect(lectern.told(state(0))?.change.notes == 8)
    let next = lectern.told(state(1), after: 5)
    #expect(next != nil && next?.change.notes == nil)
  }

  @Test func aDeviceThatDoesNotAskAgainIsNotTold() {
    let lectern = Lectern(self)
    lectern.follow(1, state(0))
    lectern.follow(2, state(0), after: 30)
    #expect(lectern.told(state(1), after: 60)?.devices == [device(2)])
    #expect(lectern.told(state(2), after: 90) == nil && lectern.followers.recordings.isEmpty)
  }

  @Test func aRecordingThatIsGoneIsForgotten() {
    let lectern = Lectern(self)
    lectern.follow(1, state(0))
    #expect(lectern.told(nil) == nil && lectern.followers.recordings.isEmpty)
  }

  @Test func devicesAndRecordingsAreBounded() {
    let lectern = Lectern(self)
    for number in 0...RecordingFollowers.maximumOfRecording { lectern.follow(number, state(0)) }
    #expect(lectern.told(state(1))?.devices.count == RecordingFollowers.maximumOfRecording)
    for number in 0..<RecordingFollowers.maximumRecordings {
      let other = RecordingID((0..<16).map { UInt8(truncatingIfNeeded: number >> (8 * min($0, 3))) })!
      lectern.follow(1, state(0, .running, other))
    }
    #expect(lectern.followers.recordings.count == RecordingFollowers.maximumRecordings)
  }
}
