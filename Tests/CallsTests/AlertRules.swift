@testable import Calls
@testable import PeopleMachine
import Contract
import MediaModel
import Recording
import Simulation
import Testing

import CallMessages

/// Alerts of recordings: contacts are told until a device of each has acknowledged it (protocol section 13.6).
struct AlertRules {
  private let stage = Stage { $0.pushKey = Base64Bytes([4, 2]) }

  private func id(_ number: UInt8) -> RecordingID { RecordingID([UInt8](repeating: number, count: 16))! }

  private func grant(_ number: UInt8, to user: String, _ device: String?, by client: Client) -> RecordingGrant {
    let nothing = Base64Bytes([])
    return RecordingGrant(
      recording: id(number), to: .init(user: UserID(unchecked: user), device: device.map(DeviceID.init(unchecked:))),
      from: client.device, key: nothing, alg: "X", ciphertext: nothing, at: Stage.start, sigAlg: "ES256",
      signature: nothing)
  }

  private func alert(
    _ users: [String: [RecordingGrant]], _ number: UInt8 = 1, by client: Client, isRestored: Bool = false,
    at: Timestamp? = nil
  ) {
    let named = Dictionary(uniqueKeysWithValues: users.map { (UserID(unchecked: $0.key), $0.value) })
    stage.handle(
      .recording(
        .alert(
          RecordingAlert(
            recording: id(number), kind: .own, by: client.device, at: at ?? stage.now, users: named,
            isRestored: isRestored))))
  }

  private func told(_ number: UInt8 = 1, by client: Client, _ grant: RecordingGrant? = nil) -> EventBody {
    .recordingShared(
      RecordingShared(recording: id(number), kind: .own, by: client.device, grant: grant, alert: true))
  }

  private func reached(_ number: UInt8 = 1, by client: Client) -> EventBody {
    .recordingReached(RecordingMention(recording: id(number), by: client.device))
  }

  private func pushes() -> [PushNotice] {
    stage.takeOthers().compactMap { if case .push(_, _, let notice, _) = $0 { notice } else { nil } }
  }

  private func posted() -> [EventBody] { stage.webhooks.map(\.event.body) }

  @Test func aConnectedContactIsReachedAtOnceAndTheOwnerIsTold() {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    let grant = grant(1, to: "bob", "phone", by: alice)
    alert(["bob": [grant]], by: alice)
    #expect(bob.events() == [told(by: alice, grant)])
    #expect(alice.events() == [reached(by: bob)])
    let push = PushRecording(user: bob.user, devices: [], from: alice.user, recording: id(1))
    #expect(posted() == [.recordingReached(RecordingMention(recording: id(1), by: bob.device)), .pushAlert(push)])
    #expect(stage.disk.recordings == [.reader(id(1), bob.user, .reached(stage.now))])
    stage.advance(.seconds(200))
    #expect(pushes().isEmpty && stage.node.alertCounts == AlertCounts(raised: 1, reached: 1))
  }

  @Test func eachDeviceGetsItsOwnGrantAndOneWithoutIsToldToo() {
    let alice = stage.connect("alice")
    let devices = ["phone", "laptop", "tablet"].map { stage.connect("bob", $0) }
    let carol = stage.connect("carol")
    let (own, shared) = (grant(1, to: "bob", "phone", by: alice), grant(1, to: "bob", nil, by: alice))
    alert(["bob": [own, shared], "carol": []], by: alice)
    #expect(
      devices.map { $0.events() } == [[told(by: alice, own)], [told(by: alice, shared)], [told(by: alice, shared)]])
    #expect(carol.events() == [told(by: alice)])
    #expect(alice.events() == [reached(by: devices[1]), reached(by: carol)], "once for each, by the first that has it")
  }

  @Test func aDeviceThatIsAwayIsPushedThreeTimesUntilItComes() {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    bob.subscribePush("bob")
    bob.disconnect()
    _ = stage.takeOthers()
    let grant = grant(1, to: "bob", "phone", by: alice)
    alert(["bob": [grant]], by: alice)
    let notice = PushNotice(type: .alert, recording: id(1), from: "alice", name: "alice")
    #expect(pushes() == [notice] && alice.events().isEmpty)
    #expect(
      posted() == [
        .pushAlert(PushRecording(user: bob.user, devices: [bob.device.device], from: alice.user, recording: id(1)))
      ])
    for _ in 0..<2 {
      stage.advance(.seconds(59))
      #expect(pushes().isEmpty)
      stage.advance(.seconds(1))
      #expect(pushes() == [notice])
    }
    stage.advance(.seconds(3_600))
    #expect(pushes().isEmpty)
    // The event was kept for two minutes only, and comes nevertheless.
    let again = stage.connect("bob", keys: false)
    #expect(again.events() == [told(by: alice, grant)] && alice.events() == [reached(by: again)])
    again.disconnect()
    #expect(stage.connect("bob", keys: false).events().isEmpty, "once it has been reached")
  }

  @Test func aDeviceThatReadsTheEventLaterIsNotToldTwice() {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    bob.disconnect()
    alert(["bob": [grant(1, to: "bob", "phone", by: alice)]], by: alice)
    let again = stage.connect("bob", keys: false, mode: .individual)
    let written = stage.takeEvents(again.session)
    #expect(written.map(\.message.body.name) == [.recordingShared])
    #expect(alice.events().isEmpty, "an event that was written may be lost")
    stage.handle(.acknowledge(again.session, seqs: written.map(\.seq), accepted: false))
    #expect(alice.events().isEmpty)
    again.disconnect()
    let third = stage.connect("bob", keys: false, mode: .individual)
    let repeated = stage.takeEvents(third.session)
    #expect(repeated.map(\.message.body.name) == [.recordingShared])
    third.disconnect()
    let fourth = stage.connect("bob", keys: false, mode: .individual)
    let last = stage.takeEvents(fourth.session)
    #expect(last.map(\.redelivered) == [true], "kept, as it was not acknowledged")
    stage.handle(.acknowledge(fourth.session, seqs: last.map(\.seq), accepted: true))
    #expect(alice.events() == [reached(by: fourth)])
  }

  @Test func anAlertOutlivesARestart() {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    bob.subscribePush("bob")
    stage.restart(after: .seconds(70))
    let owner = stage.connect("alice", keys: false)
    let grant = grant(1, to: "bob", "phone", by: alice)
    _ = stage.takeOthers()
    for _ in 0..<2 { alert(["bob": [grant]], by: alice, isRestored: true, at: stage.now - .seconds(70)) }
    #expect(pushes().isEmpty && posted().isEmpty, "the back end was told before")
    stage.advance(.seconds(50))
    #expect(pushes().map(\.type) == [.alert], "that of the second minute")
    #expect(stage.connect("bob", keys: false).events() == [told(by: alice, grant)])
    #expect(owner.names() == [.recordingReached])
    #expect(stage.node.alertCounts == AlertCounts(reached: 1))
  }

  /// It connected before the rows were read.
  @Test func aDeviceThatIsBackBeforeTheAlertIsToldToo() {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    let grant = grant(1, to: "bob", "phone", by: alice)
    alert(["bob": [grant]], by: alice, isRestored: true, at: stage.now - .seconds(70))
    #expect(bob.events() == [told(by: alice, grant)] && alice.events() == [reached(by: bob)])
    #expect(posted() == [reached(by: bob)])
  }

  @Test func anAlertEndsWithItsRecordingAndWithItsPeople() {
    let (alice, dora) = (stage.connect("alice"), stage.connect("dora"))
    let users: [String: [RecordingGrant]] = ["bob": [], "carol": []]
    for number: UInt8 in 1...2 { alert(users, number, by: alice) }
    alert(users, 3, by: dora)
    #expect(stage.node.alertCounts == AlertCounts(raised: 6, waiting: 6))
    let removed = RecordingRemoved(recording: id(1), by: alice.device)
    let both = Set(["bob", "carol"].map(UserID.init(unchecked:)))
    stage.handle(.recording(.removed(removed, users: both.union([alice.user]))))
    #expect(stage.node.alertCounts.waiting == 4)
    stage.handle(.forget(UserID(unchecked: "carol")))
    #expect(stage.node.alertCounts.waiting == 2)
    stage.handle(.forget(alice.user))
    #expect(stage.node.alertCounts.waiting == 1)
    #expect(stage.connect("bob").events() == [told(3, by: dora)])
  }

  @Test func aUserWhoNeverComesIsGivenUpAfterADay() {
    let alice = stage.connect("alice")
    alert(["bob": []], by: alice)
    stage.advance(.seconds(86_399))
    #expect(stage.node.alertCounts.waiting == 1)
    stage.advance(.seconds(1))
    #expect(stage.node.alertCounts == AlertCounts(raised: 1, givenUp: 1))
    #expect(stage.connect("bob").events().isEmpty)
  }

  @Test func theOldestAlertOfAnOwnerIsGivenUpForANewOne() {
    let alice = stage.connect("alice")
    for number in 1...UInt8(Alerts.maximumOfOwner + 1) { alert(["bob": [], "carol": []], number, by: alice) }
    let waiting = 2 * Alerts.maximumOfOwner
    #expect(stage.node.alertCounts == AlertCounts(raised: UInt64(waiting) + 2, givenUp: 2, waiting: waiting))
    #expect(stage.connect("bob").events().count == Alerts.maximumOfOwner)
  }
}

extension Client {
  func subscribePush(_ path: String) {
    let subscription = PushSubscription(
      endpoint: "https://push.example/\(path)", p256dh: Base64Bytes([4] + [UInt8](repeating: 1, count: 64)),
      auth: Base64Bytes([UInt8](repeating: 2, count: 16)))
    #expect(code(.people(.subscribePush(SubscribePush(subscription: subscription)))) == nil)
  }
}
