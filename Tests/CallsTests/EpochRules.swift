@testable import CallMachine
@testable import Calls
import Contract
import MediaModel
import Testing

import CallMessages

/// The server's part of "Epochs" 1 to 8 of protocol section 5.
struct EpochRules {
  let stage = Stage()

  /// alice, bob and others have joined, all are in the newest epoch, and their inboxes are empty.
  func settled(_ names: [String], mode: AcknowledgementMode = .auto) throws -> (CallID, [Client]) {
    let clients = names.map { stage.connect($0, mode: mode) }
    let call = try clients[0].call(Array(names.dropFirst()) + ["nobody"], join: 1)
    for (place, client) in clients.enumerated().dropFirst() { try client.accept(call, join: UInt8(place + 1)) }
    stage.advance(.milliseconds(100))
    #expect(try clients[0].handOut(call, 2, to: Array(clients.dropFirst())).missing.isEmpty)
    stage.advance(.seconds(5))
    for client in clients { _ = client.events() }
    return (call, clients)
  }

  @Test func epochs1StartMakesEpoch1WithRingEnvelopes() throws {
    let alice = stage.connect("alice")
    let phone = stage.connect("bob", "phone")
    let tablet = stage.connect("bob", "tablet")
    let call = try alice.call(["bob", "carol"], join: 1, envelopes: [alice.envelope(for: phone, epoch: 1)])
    let ring = try #require(phone.events().rings.first)
    #expect(ring.envelope?.from == alice.device && ring.envelope?.epoch == 1)
    let list = try #require(ring.list)
    #expect(list.map(\.address) == [alice.device, phone.device])
    #expect(list.map(\.joinId) == [joinId(1), nil] && list.map(\.participant) == [1, 0])
    #expect(tablet.events().rings.first?.envelope == nil)
    #expect(try alice.state(call).epoch == 1)
    let keys: KeyList = try alice.get(.inCall(call, .listKeys(ListKeys())))
    #expect(keys.epoch == 1 && keys.mode == .fresh && keys.list == list)
    #expect(keys.previous.bytes == [UInt8](repeating: 0, count: 32) && list[1].joinKey == nil)
    _ = tablet.ask(.call(call, .decline(Decline())))
    stage.advance(.seconds(10))
    #expect(alice.events().rotations.isEmpty, "a decline changes nothing")
  }

  /// Each ringing device gets the whole list, so the bytes for a list of many devices would grow with the square of its
  /// length.
  @Test func epochs1ARingsListHas256DevicesAtMost() throws {
    let alice = stage.connect("alice")
    let devices = (0..<16).flatMap { user in (0..<16).map { stage.connect("user\(user)", "d\($0)") } }
    let callees = (0..<16).map { "user\($0)" }
    let envelopes = devices.map { alice.envelope(for: $0, epoch: 1) }
    let tooMany = alice.start(callees.map { UserID(unchecked: $0) }, join: 1, envelopes: envelopes)
    #expect(alice.code(tooMany) == .keysTooLarge)
    #expect(devices.allSatisfy { $0.events().isEmpty }, "nobody is rung")
    let call = try alice.call(callees, join: 2, envelopes: Array(envelopes.dropLast()))
    let last = try #require(devices.last?.events().rings.first)
    #expect(last.envelope == nil && last.list == nil, "it rings and waits for epoch 2")
    #expect(devices.first?.events().rings.first?.list?.count == 256)
    let keys: KeyList = try alice.get(.inCall(call, .listKeys(ListKeys())))
    #expect(keys.list.count == 256)
  }

  @Test func epochs1LaterListsAreTheJoinedDevicesAndNoOther() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    let call = try alice.call(
      ["bob", "carol"], join: 1, envelopes: [alice.envelope(for: bob, epoch: 1), alice.envelope(for: carol, epoch: 1)])
    try bob.accept(call, join: 2)
    stage.advance(.milliseconds(100))
    let rotate = try #require(alice.events().rotations.first)
    #expect(rotate.epoch == 2 && rotate.mode == .fresh && rotate.leader == 1)
    #expect(rotate.added?.map(\.joinId) == [joinId(2)])
    #expect(rotate.removed == [])
    #expect(rotate.deliver?.map(\.address) == [bob.device])
    #expect(rotate.deliver?.first?.keys == bob.keys && rotate.added?.first?.keys == nil)
    let news = try #require(bob.events().rotations.first)
    #expect(news.list?.map(\.address) == [alice.device, bob.device] && news.deliver == nil && news.added == nil)
    #expect(stage.connect("carol", "tablet").events().rings.first?.envelope == nil, "superseded")
  }

  @Test func epochs2ChangesWithin100MillisecondsGoTogether() throws {
    let alice = stage.connect("alice")
    let others = ["bob", "carol", "dave"].map { stage.connect($0) }
    let call = try alice.call(others.map(\.user.text))
    for other in others {
      try other.accept(call)
      stage.advance(.milliseconds(33))
    }
    #expect(alice.events().rotations.isEmpty)
    stage.advance(.milliseconds(1))
    #expect(alice.events().rotations.map(\.deliver?.count) == [3])
  }

  @Test func epochs2OnlyOneWaitsForItsSwitch() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob", mode: .individual)
    let carol = stage.connect("carol")
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    stage.advance(.milliseconds(100))
    #expect(alice.events().rotations.count == 1)
    try carol.accept(call)
    stage.advance(.milliseconds(500))
    #expect(alice.events().rotations.isEmpty)
    _ = try alice.handOut(call, 2, to: [bob])
    stage.advance(.milliseconds(1_999))
    #expect(try alice.state(call).epoch == 1)
    stage.advance(.milliseconds(1))
    let events = alice.events()
    #expect(events.map(\.name).suffix(2) == [.keysSwitch, .keysRotate] && events.rotations.map(\.epoch) == [3])
    #expect(try alice.state(call).epoch == 2)
    #expect(!carol.events().contains(.keysSwitch), "it is not on the list of epoch 2")
  }

  @Test func epochs2JoinsDoNotPutOffTheNextFreshSecret() throws {
    let start = stage.now
    let (call, clients) = try settled(["alice", "bob"])
    for number in 1...9 {
      stage.advance((start + .seconds(60 * number)) - stage.now)
      let newcomer = stage.connect("carol\(number)")
      _ = try clients[0].get(.call(call, .invite(Invite(callees: [newcomer.user])))) as InviteResults
      try newcomer.accept(call)
      stage.advance(.milliseconds(300))
      _ = try clients[0].handOut(call, UInt32(2 + number), to: [newcomer])
      stage.advance(.seconds(3))
      #expect(clients[0].events().rotations.map(\.mode) == [.ratchet])
    }
    stage.advance((start + .seconds(601)) - stage.now)
    #expect(clients[0].events().rotations.first?.mode == .fresh)
  }

  @Test func epochs2TenMinutesCallForTheNext() throws {
    let start = stage.now
    let (call, clients) = try settled(["alice", "bob"])
    // Epoch 2 is a ratchet, so the time is measured from epoch 1.
    stage.advance((start + .seconds(600)) - stage.now - .milliseconds(1))
    #expect(clients[0].events().rotations.isEmpty)
    stage.advance(.seconds(1))
    let rotate = try #require(clients[0].events().rotations.first)
    #expect(rotate.mode == .fresh && rotate.epoch == 3 && rotate.added == [] && rotate.removed == [])
    _ = try clients[0].handOut(call, 3, to: [clients[1]])
    #expect(try clients[0].state(call).epoch == 3)
  }

  @Test func epochs2WhoBecomesDisconnectedIsOffTheList() throws {
    let (_, clients) = try settled(["alice", "bob", "carol"])
    clients[1].disconnect()
    stage.advance(.seconds(15) + .milliseconds(100))
    let rotate = try #require(clients[0].events().rotations.first)
    #expect(rotate.mode == .fresh && rotate.removed == [2])
  }

  @Test func epochs3AJoinAloneIsARatchet() throws {
    let (call, clients) = try settled(["alice", "bob"])
    let carol = stage.connect("carol")
    _ = clients[0].ask(.call(call, .invite(Invite(callees: [carol.user]))))
    try carol.accept(call)
    stage.advance(.milliseconds(100))
    let rotate = try #require(clients[0].events().rotations.first)
    #expect(rotate.mode == .ratchet && rotate.deliver?.map(\.address) == [carol.device])
    #expect(rotate.added?.map(\.address) == [carol.device] && rotate.removed == [])
    #expect(try clients[0].handOut(call, 3, to: [carol]).delivered == [carol.device])
    #expect(clients[1].events().switches == [3])
    #expect(carol.names().suffix(3) == [.keysRotate, .keysEnvelope, .keysSwitch])
  }

  @Test func epochs3AJoinWithALeaveIsFresh() throws {
    let (call, clients) = try settled(["alice", "bob", "dave"])
    let carol = stage.connect("carol")
    _ = clients[0].ask(.call(call, .invite(Invite(callees: [carol.user]))))
    try carol.accept(call)
    _ = clients[2].ask(.call(call, .leave))
    stage.advance(.milliseconds(100))
    let rotate = try #require(clients[0].events().rotations.first)
    #expect(rotate.mode == .fresh && rotate.deliver?.map(\.address) == [clients[1].device, carol.device])
    #expect(!clients[2].events().contains(.keysRotate))
  }

  @Test(arguments: [false, true]) func epochs3ARejoinWithOtherKeysIsFresh(changed: Bool) throws {
    let (call, clients) = try settled(["alice", "bob"])
    if changed {
      var keys = clients[1].keys
      keys[1].publicKey.bytes.append(7)
      _ = clients[1].ask(.people(.registerDevice(RegisterDevice(name: nil, keys: keys))))
    }
    try clients[1].rejoin(call, join: 9)
    stage.advance(.milliseconds(100))
    let rotate = try #require(clients[0].events().rotations.first)
    #expect(rotate.mode == (changed ? .fresh : .ratchet))
    #expect(rotate.deliver?.map(\.joinId) == [joinId(9)])
  }

  @Test func epochs4TheLeaderHasThreeSecondsThenTheNextIsAsked() throws {
    let (call, clients) = try settled(["alice", "bob", "carol", "dave"])
    _ = clients[3].ask(.call(call, .leave))
    stage.advance(.milliseconds(100))
    #expect(clients[0].events().rotations.first?.deliver?.count == 2)
    #expect(clients[1].events().rotations.first?.deliver == nil)
    stage.advance(.milliseconds(2_999))
    #expect(clients[1].events().isEmpty)
    stage.advance(.milliseconds(1))
    let asked = try #require(clients[1].events().rotations.first)
    #expect(asked.leader == 2 && asked.deliver?.map(\.address) == [clients[0].device, clients[2].device])
    let none: RequestError.Code? = clients[2].code(.inCall(call, .keys(HandOutKeys(epoch: 3, envelopes: []))))
    #expect(none == .keysNotAllowed, "it was not asked")
    let delivered = try clients[0].handOut(call, 3, to: [clients[1]])
    #expect(delivered.delivered == [clients[1].device] && delivered.missing == [clients[2].device])
    #expect(clients[1].code(.inCall(call, .keys(HandOutKeys(epoch: 3, envelopes: [])))) == .keysEpochStale)
  }

  @Test func epochs4ABrokenConnectionOfTheLeaderPassesItOn() throws {
    let (call, clients) = try settled(["alice", "bob", "carol"])
    _ = clients[2].ask(.call(call, .leave))
    stage.advance(.milliseconds(100))
    _ = clients[1].events()
    clients[0].disconnect()
    #expect(clients[1].events().rotations.first?.deliver?.map(\.address) == [clients[0].device])
  }

  @Test func epochs4WithoutAnyConnectionTheEpochWaits() throws {
    let (call, clients) = try settled(["alice", "bob", "carol"])
    for client in clients { try client.connectMedia(call) }
    _ = clients[2].ask(.call(call, .leave))
    clients[0].disconnect()
    clients[1].disconnect()
    stage.advance(.seconds(60))
    let again = stage.connect("bob")
    let rotate = try #require(again.events().rotations.first)
    #expect(rotate.leader == 2 && rotate.deliver?.map(\.address) == [clients[0].device])
  }

  @Test func epochs4ALeaderThatLacksTheOldSecretIsFollowedByAFreshEpoch() throws {
    let (call, clients) = try settled(["alice", "bob"])
    let carol = stage.connect("carol")
    _ = clients[0].ask(.call(call, .invite(Invite(callees: [carol.user]))))
    try carol.accept(call)
    stage.advance(.milliseconds(100))
    #expect(clients[0].events().rotations.map(\.mode) == [.ratchet])
    #expect(clients[0].code(.inCall(call, .requestKey(RequestKey()))) == nil)
    #expect(clients[0].code(.inCall(call, .keys(HandOutKeys(epoch: 3, envelopes: [])))) == .keysEpochStale)
    stage.advance(.milliseconds(100))
    let rotate = try #require(clients[0].events().rotations.first)
    #expect(rotate.epoch == 4 && rotate.mode == .fresh && rotate.deliver?.count == 2)
    #expect(try clients[0].state(call).epoch == 2)
  }

  @Test func epochs5SwitchWhenAllConnectedHaveAcknowledged() throws {
    let (call, clients) = try settled(["alice", "bob", "carol", "dave"], mode: .individual)
    _ = clients[3].ask(.call(call, .leave))
    stage.advance(.milliseconds(100))
    _ = try clients[0].handOut(call, 3, to: [clients[1], clients[2]])
    for client in clients.dropFirst().prefix(2) {
      #expect(try clients[0].state(call).epoch == 2)
      for delivery in client.deliveries() { client.acknowledge(delivery.seq) }
    }
    #expect(try clients[0].state(call).epoch == 3)
  }

  @Test(arguments: [true, false]) func epochs5OrAfter1Or2Seconds(somebodyWent: Bool) throws {
    let (call, clients) = try settled(["alice", "bob", "carol"], mode: .individual)
    if somebodyWent { _ = clients[2].ask(.call(call, .leave)) } else { try clients[2].rejoin(call) }
    stage.advance(.milliseconds(100))
    _ = try clients[0].handOut(call, 3, to: [clients[somebodyWent ? 1 : 2]])
    stage.advance(.milliseconds(somebodyWent ? 999 : 1_999))
    #expect(try clients[0].state(call).epoch == 2)
    stage.advance(.milliseconds(1))
    #expect(try clients[0].state(call).epoch == 3)
  }

  @Test func epochs5UnacknowledgedEnvelopesComeAgainOnTheNextConnection() throws {
    let (call, clients) = try settled(["alice", "bob"], mode: .individual)
    try clients[0].connectMedia(call)
    try clients[1].connectMedia(call)
    clients[1].disconnect()
    stage.advance(.seconds(601))
    _ = try clients[0].handOut(call, 3, to: [clients[1]])
    #expect(try clients[0].state(call).epoch == 3, "nobody waits for a disconnected device")
    stage.advance(.seconds(200))
    let again = stage.connect("bob", mode: .individual)
    #expect(again.events().envelopes.map(\.epoch) == [3], "however long it takes")
    again.disconnect()
    let third = stage.connect("bob", mode: .individual)
    let envelope = try #require(third.deliveries().first { $0.message.body.isEnvelope })
    #expect(envelope.redelivered)
    third.acknowledge(envelope.seq)
    third.disconnect()
    #expect(stage.connect("bob").events().envelopes.isEmpty)
  }

  @Test func epochs6ARequestIsForwardedThreeTimesToTheLeaderAndThenToTheOthers() throws {
    let (call, clients) = try settled(["alice", "bob", "carol"])
    for holder in [0, 2, 0] {
      #expect(clients[1].code(.inCall(call, .requestKey(RequestKey(epoch: 2)))) == nil)
      let request = try #require(clients[holder].events().keyRequests.first)
      #expect(clients[2 - holder].events().keyRequests.isEmpty)
      #expect(request.epoch == 2 && request.to.address == clients[1].device && request.to.keys == clients[1].keys)
    }
    #expect(clients[1].code(.inCall(call, .requestKey(RequestKey()))) == .rateLimited)
    let answer = try clients[0].handOut(call, 2, to: [clients[1]])
    #expect(answer.delivered == [clients[1].device] && answer.missing.isEmpty)
    #expect(clients[1].events().envelopes.map(\.epoch) == [2])
    #expect(clients[0].code(.inCall(call, .keys(HandOutKeys(epoch: 2, envelopes: [])))) == .keysEpochStale)
    #expect(clients[1].code(.inCall(call, .requestKey(RequestKey(epoch: 1)))) == .keysEpochStale)
  }

  @Test func epochs6ANackedEnvelopeIsAskedForAndWaitedFor() throws {
    let (call, clients) = try settled(["alice", "bob"], mode: .individual)
    try clients[1].rejoin(call)
    stage.advance(.milliseconds(100))
    _ = try clients[0].handOut(call, 3, to: [clients[1]])
    let first = try #require(clients[1].deliveries().first { $0.message.body.isEnvelope })
    clients[1].acknowledge(first.seq, accepted: false)
    #expect(clients[0].events().keyRequests.count == 1)
    #expect(try clients[0].state(call).epoch == 2)
    _ = try clients[0].handOut(call, 3, to: [clients[1]])
    let second = try #require(clients[1].deliveries().first { $0.message.body.isEnvelope })
    clients[1].acknowledge(second.seq)
    #expect(try clients[0].state(call).epoch == 3)
  }

  @Test func epochs6WithoutALeaderAnotherHolderIsTold() throws {
    let (call, clients) = try settled(["alice", "bob", "carol"])
    clients[0].disconnect()
    #expect(clients[2].code(.inCall(call, .requestKey(RequestKey()))) == nil)
    #expect(clients[1].events().keyRequests.count == 1)
  }

  @Test func epochs7AllOrNothing() throws {
    let (call, clients) = try settled(["alice", "bob", "carol"])
    let eve = stage.connect("eve")
    _ = clients[2].ask(.call(call, .leave))
    stage.advance(.milliseconds(100))
    func code(_ envelopes: [Envelope], epoch: UInt32 = 3, from client: Client? = nil) -> RequestError.Code? {
      (client ?? clients[0]).code(.inCall(call, .keys(HandOutKeys(epoch: epoch, envelopes: envelopes))))
    }
    let good = clients[0].envelope(for: clients[1], epoch: 3)
    #expect(code([good, clients[0].envelope(for: eve, epoch: 3)]) == .keysNotAllowed)
    #expect(code([good, clients[0].envelope(for: clients[2], epoch: 3)]) == .keysNotAllowed)
    #expect(code([good, good]) == .requestInvalid)
    #expect(code([clients[0].envelope(for: clients[1], epoch: 2)]) == .requestInvalid)
    #expect(code([clients[0].envelope(for: clients[1], epoch: 3, bytes: 5_000)]) == .keysTooLarge)
    #expect(code([good], epoch: 2) == .keysEpochStale)
    #expect(code([good], epoch: 4) == .keysNotAllowed)
    #expect(code([good], from: clients[2]) == .callNotJoined)
    #expect(code([good], from: eve) == .callNotFound)
    #expect(clients[1].events().envelopes.isEmpty)
    #expect(code([good]) == nil)
  }

  @Test func epochs7EnvelopesInStartAreForCalleesDevices() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let eve = stage.connect("eve")
    func code(_ envelope: Envelope) -> RequestError.Code? {
      alice.code(alice.start([bob.user], envelopes: [envelope]))
    }
    #expect(code(alice.envelope(for: eve, epoch: 1)) == .keysNotAllowed)
    #expect(code(alice.envelope(for: bob, epoch: 2)) == .requestInvalid)
    #expect(stage.node.control.calls.isEmpty && bob.events().isEmpty)
    #expect(code(alice.envelope(for: bob, epoch: 1)) == nil)
  }

  @Test func epochs7SupersededEnvelopesAreForgotten() throws {
    let (call, clients) = try settled(["alice", "bob", "carol"], mode: .individual)
    _ = clients[2].ask(.call(call, .leave))
    stage.advance(.milliseconds(100))
    _ = try clients[0].handOut(call, 3, to: [clients[1]])
    stage.advance(.seconds(600) + .seconds(2))
    #expect(clients[0].events().rotations.last?.epoch == 4)
    clients[1].disconnect()
    #expect(stage.connect("bob").events().envelopes.isEmpty)
  }

  @Test func devicesWithoutKeysAreOnNoList() throws {
    let (call, clients) = try settled(["alice", "bob"])
    let guest = stage.connect("carol", "guest", keys: false)
    _ = stage.connect("carol", "phone")
    _ = clients[0].ask(.call(call, .invite(Invite(callees: [guest.user]))))
    try guest.accept(call)
    stage.advance(.seconds(1))
    #expect(clients[0].events().rotations.isEmpty)
    #expect(guest.code(.inCall(call, .keys(HandOutKeys(epoch: 2, envelopes: [])))) == .keysNotAllowed)
    #expect(guest.code(.inCall(call, .requestKey(RequestKey()))) == .keysNotAllowed)
    #expect(try guest.get(.inCall(call, .listKeys(ListKeys())), as: KeyList.self).list.count == 2)
  }

  @Test func aDeviceWithoutKeysStartsNoCall() throws {
    let (alice, bob) = (stage.connect("alice", keys: false), stage.connect("bob"))
    let start = alice.start([bob.user], join: 1)
    #expect(alice.code(start) == .keysNotAllowed)
    #expect(stage.node.isIdle && bob.events().isEmpty, "nobody is rung")
    _ = alice.ask(.people(.registerDevice(RegisterDevice(name: nil, keys: alice.keys))))
    #expect(alice.code(start) == nil)
    #expect(stage.node.callSummaries.map(\.ringing) == [1])
  }

  @Test func registeringTakesOneKeyOfEachUse() throws {
    let alice = stage.connect("alice", keys: false)
    #expect(alice.code(.people(.registerDevice(RegisterDevice(name: nil, keys: [alice.keys[0]])))) == .requestInvalid)
    #expect(
      alice.code(.people(.registerDevice(RegisterDevice(name: nil, keys: [alice.keys[0], alice.keys[0]]))))
        == .requestInvalid)
    let registered: Registered = try alice.get(.people(.registerDevice(RegisterDevice(name: "Mac", keys: alice.keys))))
    var bytes = Array("conclave-device-v1".utf8)
    for part in [Array("alice".utf8), Array("phone".utf8)] { bytes += [0, UInt8(part.count)] + part }
    for key in alice.keys {
      bytes += [0, UInt8(key.alg.utf8.count)] + Array(key.alg.utf8)
      bytes += [0, UInt8(key.publicKey.bytes.count)] + key.publicKey.bytes
    }
    #expect(registered.fingerprint.bytes == Stage.digest(bytes))
    let devices: Devices = try stage.connect("bob").get(.people(.listDevices(ListDevices(users: [alice.user]))))
    #expect(devices.devices.map(\.name) == ["Mac"] && devices.devices[0].registeredAt == stage.now)
  }
}
