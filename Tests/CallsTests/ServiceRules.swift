@testable import CallMachine
@testable import Calls
import Contract
import MediaModel
import Testing

import CallMessages

/// Protocol section 11.
struct ServiceRules {
  let stage = Stage()

  func start(
    _ service: Client, for user: String, _ callees: [String] = [], join: UInt8? = nil,
    policy change: (inout Policy) -> Void = { _ in }
  ) throws -> StartedCall {
    var policy = Policy()
    change(&policy)
    return try service.get(
      .start(
        StartCall(
          callees: callees.map { UserID(unchecked: $0) }, media: .video, policy: policy,
          metadata: Base64Bytes([1, 2]), joinId: join.map(joinId), as: UserID(unchecked: user))))
  }

  @Test func aCallOnBehalfOfAUserRingsThatUserToo() throws {
    let service = stage.connectService()
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let started = try start(service, for: "alice", ["bob", "alice"])
    #expect(started.results == [alice.user: .ringing, bob.user: .ringing])
    #expect(started.call.initiator == alice.user && started.call.state == .ringing && started.call.epoch == 1)
    #expect(started.call.members.map(\.state) == [.ringing, .ringing])
    for client in [alice, bob] { #expect(client.events().rings.map(\.from) == [alice.user]) }
    #expect(try alice.accept(started.call.id).participant == 1)
    #expect(try bob.accept(started.call.id).call.state == .active)
    #expect(alice.code(.call(started.call.id, .end)) == nil, "the user is the initiator")
  }

  @Test func theFirstWhoJoinsMakesEpoch1() throws {
    let service = stage.connectService()
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let call = try start(service, for: "alice", ["bob"]).call.id
    stage.advance(.seconds(20))
    try bob.accept(call, join: 1)
    let first = try #require(bob.events().rotations.first)
    #expect(first.epoch == 1 && first.mode == .fresh && first.leader == 1)
    #expect(first.list?.map(\.address) == [bob.device] && first.deliver?.isEmpty == true)
    #expect(try bob.handOut(call, 1, to: []).missing.isEmpty)
    #expect(bob.events().switches == [1])
    try alice.accept(call, join: 2)
    stage.advance(.milliseconds(100))
    let second = try #require(bob.events().rotations.first)
    #expect(second.epoch == 2 && second.mode == .ratchet && second.leader == 1)
    #expect(alice.events().rotations.map(\.epoch) == [2])
    #expect(try alice.state(call).epoch == 1)
    _ = try bob.handOut(call, 2, to: [alice])
    #expect(try alice.state(call).epoch == 2)
  }

  @Test func aStartIsRepeatedAndRefusedByTheSameRules() throws {
    let service = stage.connectService()
    let alice = stage.connect("alice")
    let first = try start(service, for: "alice", ["bob"], join: 1)
    #expect(try start(service, for: "alice", ["bob"], join: 1) == first)
    #expect(stage.node.control.calls.count == 1 && alice.events().rings.count == 1)
    #expect(service.code(.start(StartCall(callees: [], media: .audio))) == .requestInvalid)
    #expect(service.code(.start(StartCall(callees: [], media: .audio, as: UserID("nobody")))) == .userNotFound)
    let envelope = alice.envelope(for: alice, epoch: 1)
    #expect(
      service.code(.start(StartCall(callees: [], media: .audio, envelopes: [envelope], as: alice.user)))
        == .keysNotAllowed)
    #expect(alice.code(.start(StartCall(id: .random, callees: [], media: .audio, as: alice.user))) == .authForbidden)
    stage.handle(.drain)
    #expect(service.code(.start(StartCall(callees: [], media: .audio, as: alice.user))) == .serverDraining)
  }

  @Test func aCallToWhichNobodyComesEnds() throws {
    let service = stage.connectService()
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    _ = try start(service, for: "alice", ["bob"])
    stage.advance(.seconds(30))
    #expect(alice.events().ended?.reason == .noAnswer)
    _ = bob.events()
    _ = try start(service, for: "alice", ["bob"])
    _ = alice.ask(.call(try #require(stage.node.control.calls.keys.first), .decline(Decline())))
    #expect(bob.events().ended?.reason == .cancelled, "somebody who joins would be alone at once")
    _ = try start(service, for: "alice", ["bob", "carol"])
    _ = stage.connect("carol")
    let three = try start(service, for: "alice", ["bob", "carol"]).call.id
    for client in [alice, bob] { _ = client.ask(.call(three, .decline(Decline()))) }
    #expect(stage.node.control.calls[three] != nil, "the third may still come")
    #expect(stage.connect("carol", "tablet").code(.call(three, .decline(Decline()))) == nil)
    #expect(bob.events().ended?.reason == .declined)
  }

  @Test func itEndsSeesAndListsAnyCall() throws {
    let service = stage.connectService()
    let alice = stage.connect("alice")
    _ = stage.connect("bob")
    let older = try alice.call(["bob"])
    stage.advance(.seconds(1))
    let newer = try start(service, for: "alice", ["bob"]).call.id
    let list: CallList = try service.get(.listCalls)
    #expect(list.calls.map(\.id) == [newer, older])
    #expect(list.calls.allSatisfy { $0.metadata == nil })
    #expect(try service.state(older).initiator == alice.user)
    #expect(service.code(.call(older, .end)) == nil)
    #expect(alice.events().ended == Ended(reason: .endedByService, by: nil, seconds: 0))
    #expect(service.code(.call(older, .end)) == .callEnded && service.code(.call(older, .state)) == .callEnded)
    #expect(service.code(.call(CallID(unchecked: "none"), .end)) == .callNotFound)
  }

  @Test func allElseIsForbidden() throws {
    let service = stage.connectService("alice")
    let alice = stage.connect("alice", "host")
    #expect(stage.closed.isEmpty, "a service is no device, whatever its name")
    let call = try alice.call([])
    let key = DeviceKey(use: .wrap, alg: "x", publicKey: Base64Bytes([1]))
    let word = Admission(fingerprint: Base64Bytes([1]), signature: Base64Bytes([1]))
    let lasting = LinkID(unchecked: String(repeating: "A", count: 22))
    let requests: [Request] = [
      .people(.registerDevice(RegisterDevice(name: nil, keys: [key]))),
      .people(.listDevices(ListDevices(users: [alice.user]))),
      .call(call, .accept(Join())), .call(call, .join(Join())), .call(call, .rejoin(Join())), .call(call, .leave),
      .call(call, .decline(Decline())),
      .call(call, .invite(Invite(callees: []))), .call(call, .cancel(Cancel())), .inCall(call, .listKeys(ListKeys())),
      .inCall(call, .requestKey(RequestKey())),
      .inCall(call, .keys(HandOutKeys(epoch: 1, envelopes: []))), .people(.setPresence(SetPresence(state: .available))),
      .people(.watchPresence(WatchPresence(users: []))), .history(.list(ListHistory())),
      .history(.delete(DeleteHistory(all: true))),
      .history(.totals(HistoryTotals(with: alice.user))),
      .people(.removeDevice(RemoveDevice(device: alice.device.device))),
      .call(call, .removeGuest(RemoveGuest(guest: UserID(unchecked: "guest~ana")))),
      .call(call, .refuseGuest(RefuseGuest(guest: UserID(unchecked: "guest~ana")))),
      .call(call, .admitGuest(AdmitGuest(admission: word))), .call(call, .knock(Knock(link: "x", admission: word))),
      .people(.makeLink(MakeLastingLink(link: lasting, expiresIn: 3_600))), .people(.listLinks),
      .people(.deleteLink(DeleteLastingLink(link: lasting))), .people(.openLink(OpenLastingLink(link: lasting))),
    ]
    for request in requests { #expect(service.code(request) == .authForbidden) }
    let again = stage.connectService("alice")
    #expect(stage.closed == [service.session], "a second connection replaces the first")
    alice.disconnect()
    #expect(try again.get(.listCalls, as: CallList.self).calls.count == 1)
    let watcher = stage.connect("bob")
    let other = try watcher.call(["alice"])
    #expect(try watcher.watch("alice") == ["alice": .offline], "a service does not count for presence")
    _ = watcher.ask(.call(other, .end))
  }

  // MARK: topics and webhooks

  @Test func serviceTopicsAreForServices() {
    let alice = stage.connect("alice")
    let service = stage.connectService()
    for channel in [Channel.serviceCalls, .servicePush, .serviceReports] {
      #expect(alice.subscribe(channel) != nil && service.subscribe(channel) == nil)
    }
  }

  @Test func aServiceHearsOfEveryCallWithoutMetadata() throws {
    let service = stage.connectService()
    _ = service.subscribe(.serviceCalls)
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    _ = try start(service, for: "alice", ["bob"])
    let call = try #require(stage.node.control.calls.keys.first)
    _ = alice.ask(.call(call, .decline(Decline())))
    let topic = service.published(.serviceCalls)
    #expect(
      topic.map(\.name) == [
        .callState, .callRing, .callDeclinedElsewhere, .callMember, .callCancelled, .callEnded,
      ])
    for case .state(let state) in topic { #expect(state.metadata == nil && state.members.count == 2) }
    for case .ring(let ring) in topic { #expect(ring.metadata == nil) }
    stage.handle(.disconnect(service.session))
    _ = stage.takeOthers()
    _ = try alice.call(["bob"])
    #expect(stage.takeOthers().isEmpty)
    #expect(bob.events().rings.first?.metadata == Base64Bytes([1, 2]))
  }

  @Test func webhooksCarryTheSame() throws {
    let stage = Stage()
    let alice = stage.connect("alice")
    stage.connect("bob").disconnect()
    _ = try alice.call(["bob"])
    stage.advance(.seconds(30))
    #expect(
      stage.webhooks.map { "\($0.channel) \($0.event.body.name.rawValue)" } == [
        "serviceCalls call.state", "serviceCalls call.ring", "servicePush push.ring", "servicePush push.cancel",
        "serviceCalls call.missed", "serviceCalls call.member", "serviceCalls call.ended",
      ])
  }

  @Test func devicesThatAreAwayAreToBeWokenUntilTheRingIsOver() throws {
    let service = stage.connectService()
    _ = service.subscribe(.servicePush)
    let alice = stage.connect("alice")
    let bob = stage.connect("bob", "phone")
    stage.connect("bob", "tablet").disconnect()
    stage.connect("carol").disconnect()
    _ = stage.connect("dave")
    stage.connect("eve", "old", keys: false).disconnect()
    let call = try alice.call(["bob", "carol", "dave"])
    let rings = service.published(.servicePush).compactMap { if case .pushRing(let push) = $0 { push } else { nil } }
    #expect(rings.map(\.user) == [bob.user, UserID(unchecked: "carol")])
    #expect(rings.map(\.devices) == [[DeviceID(unchecked: "tablet")], [DeviceID(unchecked: "phone")]])
    #expect(rings.allSatisfy { $0.from == alice.user && $0.media == .video })
    #expect(rings.allSatisfy { $0.expiresAt == stage.now + .seconds(30) })
    _ = stage.takeOthers()
    try bob.accept(call)
    stage.advance(.seconds(30))
    let cancels = service.published(.servicePush)
    #expect(cancels == [bob.user, UserID(unchecked: "carol")].map { .pushCancel(PushCancel(user: $0)) })
  }
}
