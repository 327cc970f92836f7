@testable import PeopleMachine
@testable import Calls
import Contract
import MediaModel
import Testing

import CallMessages

/// Events, acknowledgements and mailboxes (protocol section 3), and the table "Who gets what" (section 4).
struct DeliveryRules {
  let stage = Stage()

  @Test func seqRisesByOneForADevice() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob", mode: .client)
    for _ in 0..<3 {
      let call = try alice.call(["bob"])
      _ = bob.ask(.call(call, .decline(Decline())))
    }
    #expect(bob.deliveries().map(\.seq) == Array(1...9))
  }

  @Test func unacknowledgedEventsComeAgainFirstInOrder() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob", mode: .individual)
    let call = try alice.call(["bob", "carol"])
    _ = bob.ask(.call(call, .decline(Decline())))
    _ = alice.ask(.call(call, .invite(Invite(callees: [bob.user]))))
    let first = bob.deliveries()
    #expect(first.map(\.message.body.name) == [.callRing, .callMember, .callRing, .callMember])
    bob.acknowledge(first[1].seq)
    bob.disconnect()
    _ = alice.ask(.call(call, .cancel(Cancel())))
    let second = stage.connect("bob", mode: .individual).deliveries()
    #expect(second.map(\.message.body.name) == [.callMember, .callCancelled, .callMember])
    #expect(second.map(\.redelivered) == [true, false, false])
    #expect(second.map(\.seq) == [4, 5, 6])
  }

  @Test func withClientAnAckCountsForAllBeforeIt() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob", mode: .client)
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    try alice.connectMedia(call)
    let before = bob.deliveries()
    #expect(before.count == 3)
    bob.acknowledge(before[1].seq)
    bob.disconnect()
    let again = stage.connect("bob", mode: .client)
    let after = again.deliveries()
    #expect(after.map(\.message.body.name) == [.callState, .callMember])
    // The state at the start came before the repeated event, so its ACK does not cover that event.
    again.acknowledge(after[0].seq)
    again.disconnect()
    #expect(stage.connect("bob", mode: .client).deliveries().map(\.redelivered) == [false, true])
  }

  @Test func withAutoAnEventIsAcknowledgedWhenWritten() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"])
    _ = bob.ask(.call(call, .decline(Decline())))
    bob.disconnect()
    #expect(stage.connect("bob").events().isEmpty)
  }

  @Test func eventsAreKeptTwoMinutesAndTheGapShows() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    _ = try alice.call(["bob"])
    let last = try #require(bob.deliveries().last?.seq)
    bob.disconnect()
    stage.advance(.seconds(60))
    let call = try alice.call(["bob"])
    _ = alice.ask(.call(call, .end))
    stage.advance(.seconds(100))
    let again = stage.connect("bob").deliveries()
    #expect(again.map(\.message.body.name) == [.callEnded], "the first call's end is too old, the second's is not")
    #expect(try #require(again.first?.seq) > last + 1)
  }

  @Test func theMailboxIsBounded() throws {
    let stage = Stage { $0.maximumKeptEvents = 10 }
    let alice = stage.connect("alice")
    stage.connect("bob").disconnect()
    for _ in 0..<100 { _ = alice.ask(.call(try alice.call(["bob"]), .end)) }
    let kept = stage.connect("bob").deliveries()
    #expect(kept.count <= 10 && kept.allSatisfy { $0.message.body.name == .callEnded })
    #expect(kept.last?.seq == 100)
  }

  @Test func speakersAreNotKept() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob", mode: .individual)
    let call = try alice.call(["bob"])
    try bob.accept(call)
    stage.handle(.media(.speakers(call, [2, 1])))
    #expect(bob.events().last == .speakers(Speakers(participants: [2, 1])))
    bob.disconnect()
    stage.handle(.media(.speakers(call, [1])))
    #expect(!stage.connect("bob").events().contains(.speakers))
  }

  @Test func eventsOfAFormerParticipantAreNotKept() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob", mode: .individual)
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    #expect(alice.offer(call, .sending(["0": .microphone]), [.init(mid: "0", source: .microphone)]) == nil)
    stage.advance(.milliseconds(100))
    #expect(Set(bob.names()).isSuperset(of: [.trackAdded, .keysRotate]))
    _ = bob.ask(.call(call, .leave))
    bob.disconnect()
    let names = stage.connect("bob").names()
    #expect(!names.contains(.trackAdded) && !names.contains(.keysRotate) && names.contains(.callMember))
  }

  @Test func aNewerConnectionReplacesTheOlder() throws {
    let old = stage.connect("bob")
    let new = stage.connect("bob")
    #expect(stage.closed == [old.session])
    #expect(old.code(.listCalls) == .internal, "nobody answers")
    #expect(new.code(.listCalls) == nil)
    old.disconnect()
    _ = try stage.connect("alice").call(["bob"])
    #expect(new.events().rings.count == 1 && old.events().isEmpty)
  }

  @Test func eachEventGoesToItsReceivers() throws {
    let alice = stage.connect("alice")
    let alicePad = stage.connect("alice", "pad")
    let bob = stage.connect("bob")
    let bobPad = stage.connect("bob", "pad")
    let carol = stage.connect("carol")
    let dave = stage.connect("dave")
    let call = try alice.call(["bob", "carol", "dave"])
    _ = dave.ask(.call(call, .decline(Decline())))
    try bob.accept(call)
    for client in [alice, alicePad, bob, bobPad, carol, dave] { _ = client.events() }
    #expect(bob.offer(call, .sending(["0": .camera]), [.init(mid: "0", source: .camera)]) == nil)
    stage.handle(.media(.speakers(call, [1])))
    stage.handle(.media(.need(try bob.peer(in: call), audio: 9, video: 3)))
    stage.handle(
      .media(.slots(try bob.peer(in: call), SlotMap(revision: 4, slots: [], unsupported: []))))
    try bob.connectMedia(call)
    #expect(alice.names() == [.trackAdded, .speakers, .callMember])
    #expect(bob.names() == [.trackAdded, .speakers, .mediaNeed, .mediaSlots, .callMember])
    for other in [alicePad, bobPad, carol] { #expect(other.names() == [.callMember]) }
    #expect(dave.names().isEmpty)
    _ = alice.ask(.call(call, .end))
    for client in [alice, alicePad, bob, bobPad, carol, dave] { #expect(client.names().last == .callEnded) }
    #expect(!carol.names().contains(.callMissed))
  }

  @Test func aServiceIsNoDevice() {
    stage.handle(
      .connect(
        SessionID(rawValue: 99),
        Identity(
          device: Device(user: UserID(unchecked: "s"), device: DeviceID(unchecked: "s")), name: nil, isService: true)))
    let reply = stage.request(SessionID(rawValue: 99)) {
      .request(SessionID(rawValue: 99), id: $0, .people(.setPresence(SetPresence(state: .available))))
    }
    guard case .failed(let error)? = reply else { return #expect(Bool(false)) }
    #expect(error.code == .authForbidden)
  }

  @Test func devicesThatNobodyNeedsAreForgotten() {
    let guest = stage.connect("guest", keys: false)
    guest.disconnect()
    stage.connect("bob").disconnect()
    stage.advance(.seconds(300))
    #expect(stage.node.people.directory[guest.device] == nil)
    #expect(stage.node.people.directory.entries(of: UserID(unchecked: "bob")).count == 1)
    #expect(stage.node.nextDeadline == nil)
  }
}
