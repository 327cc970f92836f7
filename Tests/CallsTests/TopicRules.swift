@testable import Calls
@testable import PeopleMachine
import Contract
import MediaModel
import Testing

import CallMessages

/// `/topic/calls/{id}` of protocol section 3.
struct TopicRules {
  let stage = Stage()

  @Test func joinedRingingAndDisconnectedMembersMaySubscribe() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    let call = try alice.call(["bob", "carol"])
    #expect(alice.subscribe(.call(call)) == nil && bob.subscribe(.call(call)) == nil)
    #expect(stage.connect("alice", "tablet").subscribe(.call(call)) == nil, "any of their devices")
    try bob.accept(call)
    bob.disconnect()
    stage.advance(.seconds(16))
    #expect(stage.connect("bob", "tablet").subscribe(.call(call)) == nil)
    _ = carol.ask(.call(call, .decline(Decline())))
    #expect(carol.subscribe(.call(call)) != nil)
    #expect(stage.connect("eve").subscribe(.call(call)) != nil)
    #expect(alice.subscribe(.call(CallID(unchecked: "none"))) != nil)
    #expect(stage.connectService().subscribe(.call(call)) != nil)
  }

  @Test func publicEventsComeAndNoOthers() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let tablet = stage.connect("bob", "tablet")
    let call = try alice.call(["bob"], policy: { $0.aloneSeconds = 600 })
    _ = alice.subscribe(.call(call))
    _ = alice.events()
    try bob.accept(call)
    let carol = stage.connect("carol")
    _ = alice.ask(.call(call, .invite(Invite(callees: [carol.user], metadata: Base64Bytes([7])))))
    stage.handle(.media(.speakers(call, [1])))
    stage.advance(.seconds(1))
    _ = carol.ask(.call(call, .decline(Decline())))
    let topic = alice.published(.call(call))
    #expect(
      topic.map(\.name) == [
        .callAnsweredElsewhere, .callMember, .callRing, .callMember, .speakers, .callDeclinedElsewhere, .callMember,
      ])
    for case .ring(let ring) in topic {
      #expect(ring.from == alice.user && ring.metadata == nil && ring.envelope == nil && ring.list == nil)
    }
    #expect(alice.names().contains(.keysRotate), "keys are only on the device's own queue")
    #expect(tablet.published(.call(call)).isEmpty)
  }

  @Test func anEventIsMadeOnceForAll() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    for client in [alice, bob] { _ = client.subscribe(.call(call)) }
    _ = stage.takeOthers()
    _ = alice.events()
    stage.handle(.media(.speakers(call, [2])))
    let ids = stage.others.compactMap { if case .client(.publish(_, _, let id, _)) = $0 { id } else { nil } }
    #expect(ids == [UInt64](repeating: alice.deliveries()[0].messageID, count: 2))
  }

  @Test func aUserThatIsNoLongerEntitledGetsNothingMore() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    for client in [alice, bob, carol] { _ = client.subscribe(.call(call)) }
    _ = bob.ask(.call(call, .leave))
    #expect(bob.published(.call(call)).isEmpty)
    #expect(carol.published(.call(call)).map(\.name) == [.callMember])
    stage.advance(.seconds(30))
    #expect(alice.published(.call(call)).map(\.name) == [.callMember, .callMissed, .callMember])
    _ = alice.ask(.call(call, .end))
    #expect(bob.published(.call(call)).isEmpty)
    #expect(carol.published(.call(call)).count == 1)
    #expect(alice.published(.call(call)).last?.name == .callEnded)
    #expect(!stage.node.people.topics.isRead(.call(call)), "the topic is over")
  }

  @Test func aUserThatAcceptsReadsOn() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"])
    _ = bob.subscribe(.call(call))
    try bob.accept(call)
    #expect(bob.published(.call(call)).map(\.name) == [.callAnsweredElsewhere, .callMember])
    _ = alice.ask(.call(call, .end))
    #expect(bob.published(.call(call)).last?.name == .callEnded)
  }

  @Test func aTopicThatHasEndedBringsItsEndAndNothingMore() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"])
    _ = bob.ask(.call(call, .decline(Decline())))
    #expect(bob.subscribe(.call(call)) == nil)
    #expect(bob.published(.call(call)).map(\.name) == [.callEnded])
    #expect(bob.published(.call(call)).ended?.reason == .declined)
    #expect(stage.connect("eve").subscribe(.call(call)) != nil)
  }

  @Test func unsubscribingOrGoingEndsIt() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try alice.call(["bob"], policy: { $0.aloneSeconds = 600 })
    for client in [alice, bob] { _ = client.subscribe(.call(call)) }
    stage.handle(.unsubscribe(alice.session, .call(call)))
    let second = stage.connect("bob")
    _ = second.ask(.call(call, .decline(Decline())))
    #expect(alice.published(.call(call)).isEmpty && bob.published(.call(call)).isEmpty)
    #expect(!stage.node.people.topics.isRead(.call(call)))
  }

  @Test func aTopicHasABoundedNumberOfReaders() {
    var topics = Topics()
    for number in 0..<Topics.maximumReaders {
      let isRoom = topics.add(SessionID(rawValue: UInt64(number)), to: .serviceCalls)
      #expect(isRoom)
    }
    var isRoom = topics.add(SessionID(rawValue: .max), to: .serviceCalls)
    #expect(!isRoom)
    topics.remove(SessionID(rawValue: 5))
    isRoom = topics.add(SessionID(rawValue: .max), to: .serviceCalls)
    #expect(isRoom)
  }
}
