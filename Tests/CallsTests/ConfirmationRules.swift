import CallMessages
import Contract
import MediaModel
import Testing

/// Confirmations, refreshed join keys, and envelopes that wait for trust (protocol section 5, Epochs 6 and 9).
struct ConfirmationRules {
  let stage = Stage()

  /// alice, bob and others in epoch 2, which everybody uses.
  private func settled(_ names: [String], mode: AcknowledgementMode = .auto) throws -> (CallID, [Client]) {
    let clients = names.map { stage.connect($0, mode: mode) }
    let call = try clients[0].call(Array(names.dropFirst()) + ["nobody"])
    for client in clients.dropFirst() { try client.accept(call) }
    stage.advance(.milliseconds(100))
    _ = try clients[0].handOut(call, 2, to: Array(clients.dropFirst()))
    stage.advance(.seconds(5))
    for client in clients { _ = client.events() }
    return (call, clients)
  }

  private func tag(_ byte: UInt8) -> Base64Bytes { Base64Bytes([UInt8](repeating: byte, count: 16)) }

  private func confirm(
    _ client: Client, _ call: CallID, _ byte: UInt8, epoch: UInt32 = 2, joinKey: JoinKey? = nil
  ) -> RequestError.Code? {
    client.code(.inCall(call, .confirmKey(ConfirmKey(epoch: epoch, tag: tag(byte), joinKey: joinKey))))
  }

  @Test func everybodyHearsWhenAllAreInAndElseAfterASecond() throws {
    let (call, clients) = try settled(["alice", "bob", "carol"])
    #expect(confirm(clients[0], call, 1) == nil)
    stage.advance(.milliseconds(999))
    #expect(clients[1].events().isEmpty)
    stage.advance(.milliseconds(1))
    let first = try #require(clients[1].events().confirmed.first)
    #expect(
      first.epoch == 2
        && first.buckets == [
          ConfirmationBucket(index: 0, who: Base64Bytes([0x80] + [UInt8](repeating: 0, count: 7)), tag: tag(1))
        ])
    #expect(confirm(clients[2], call, 4) == nil && confirm(clients[1], call, 2) == nil)
    let last = try #require(clients[0].events().confirmed.last)
    #expect(
      last.buckets == [
        ConfirmationBucket(index: 0, who: Base64Bytes([0xe0] + [UInt8](repeating: 0, count: 7)), tag: tag(7))
      ])
    stage.advance(.seconds(10))
    #expect(clients.allSatisfy { !$0.events().dropFirst(3).map(\.name).contains(.keysConfirmed) })
    let keys: KeyList = try clients[0].get(.inCall(call, .listKeys(ListKeys())))
    #expect(keys.confirmed == last.buckets)
  }

  @Test func theFirstTagStaysAndOnlyTheNewestEpochIsConfirmed() throws {
    let (call, clients) = try settled(["alice", "bob"])
    #expect(confirm(clients[0], call, 1) == nil)
    #expect(confirm(clients[0], call, 9) == nil, "a repeat is fine and changes nothing")
    #expect(confirm(clients[1], call, 2) == nil)
    let tags: ConfirmationTags = try clients[0].get(
      .inCall(call, .listConfirmations(ListConfirmations(epoch: 2, bucket: 0))))
    #expect(tags.tags.map(\.participant) == [1, 2] && tags.tags.map(\.tag) == [tag(1), tag(2)])
    #expect(confirm(clients[0], call, 1, epoch: 1) == .keysEpochStale)
    #expect(confirm(clients[0], call, 1, epoch: 3) == .keysNotAllowed)
    #expect(clients[0].code(.inCall(call, .confirmKey(ConfirmKey(epoch: 2, tag: Base64Bytes([1]))))) == .requestInvalid)
    func ask(_ epoch: UInt32, _ bucket: Int) -> RequestError.Code? {
      clients[0].code(.inCall(call, .listConfirmations(ListConfirmations(epoch: epoch, bucket: bucket))))
    }
    #expect(ask(1, 0) == .keysEpochStale && ask(3, 0) == .keysEpochStale)
    #expect(ask(2, 1) == .requestInvalid && ask(2, -1) == .requestInvalid && ask(2, .max) == .requestInvalid)
    #expect(confirm(stage.connect("eve"), call, 1) == .callNotFound)
    let guest = stage.connect("bob", "tablet")
    #expect(confirm(guest, call, 1) == .callNotJoined)
  }

  @Test func confirmationsOutliveARestart() throws {
    let (call, clients) = try settled(["alice", "bob", "carol"])
    #expect(confirm(clients[0], call, 1) == nil && confirm(clients[2], call, 4) == nil)
    stage.restart()
    let again = ["alice", "bob", "carol"].map { stage.connect($0) }
    let keys: KeyList = try again[0].get(.inCall(call, .listKeys(ListKeys())))
    #expect(keys.confirmed.map(\.who.bytes.first) == [0xa0] && keys.confirmed.map(\.tag) == [tag(5)])
    #expect(confirm(again[0], call, 9) == nil && confirm(again[1], call, 2) == nil)
    #expect(again[2].events().confirmed.last?.buckets.map(\.tag) == [tag(7)])
  }

  @Test func theNextEpochIsConfirmedAnew() throws {
    let (call, clients) = try settled(["alice", "bob", "carol"])
    #expect(confirm(clients[0], call, 1) == nil)
    _ = clients[2].ask(.call(call, .leave))
    stage.advance(.milliseconds(100))
    _ = try clients[0].handOut(call, 3, to: [clients[1]])
    stage.advance(.seconds(10))
    #expect(clients[0].events().confirmed.isEmpty)
    let keys: KeyList = try clients[0].get(.inCall(call, .listKeys(ListKeys())))
    #expect(keys.epoch == 3 && keys.confirmed.isEmpty)
    #expect(confirm(clients[0], call, 1) == .keysEpochStale)
  }

  /// 65 entries make two buckets; with 1,000 devices, each gets about three events for a storm.
  @Test func bucketsHoldSixtyFourEntries() throws {
    let names = (0..<65).map { "u" + String(1_000 + $0) }
    let (call, clients) = try settled(names)
    for client in clients.dropFirst() { #expect(confirm(client, call, 3) == nil) }
    stage.advance(.seconds(1))
    let told = try #require(clients[0].events().confirmed.first)
    #expect(told.buckets.map(\.index) == [0, 1])
    #expect(told.buckets[0].who.bytes == [0x7f] + [UInt8](repeating: 0xff, count: 7) && told.buckets[0].tag == tag(3))
    #expect(told.buckets[1].who.bytes == [0x80] + [UInt8](repeating: 0, count: 7) && told.buckets[1].tag == tag(3))
    #expect(confirm(clients[0], call, 5) == nil)
    #expect(clients[64].events().confirmed.last?.buckets.map(\.index) == [0], "only what changed")
  }

  @Test func aStormAtAThousandDevicesIsToldThreeTimes() throws {
    let names = (0..<200).map { "u\($0)" }
    let clients = names.map { stage.connect($0) }
    let call = try clients[0].call([]) { $0.aloneSeconds = 60 }
    let link: CallLink = try clients[0].get(.call(call, .link(MakeLink())))
    for client in clients.dropFirst() { _ = client.ask(.call(call, .join(client.join(link: link.link)))) }
    stage.advance(.milliseconds(100))
    _ = try clients[0].handOut(call, 2, to: Array(clients.dropFirst()))
    for client in clients { _ = client.events() }
    for (place, client) in clients.enumerated() {
      #expect(confirm(client, call, UInt8(place)) == nil)
      stage.advance(.milliseconds(10))
    }
    #expect((2...3).contains(clients[0].events().confirmed.count))
  }

  // MARK: refreshed join keys

  @Test func leadersGetTheNewestJoinKeyAndNobodyElse() throws {
    let (call, clients) = try settled(["alice", "bob", "carol"])
    let joinId = try #require(try clients[0].state(call).members[1].participants.first?.joinId)
    let fresh = clients[1].joinKey(joinId, generation: 1)
    #expect(confirm(clients[1], call, 2, joinKey: clients[1].joinKey(joinId, generation: 2)) == .requestInvalid)
    let tags: ConfirmationTags = try clients[0].get(
      .inCall(call, .listConfirmations(ListConfirmations(epoch: 2, bucket: 0))))
    #expect(tags.tags.isEmpty, "the tag and the key count together")
    #expect(confirm(clients[1], call, 2, joinKey: fresh) == nil)
    #expect(confirm(clients[1], call, 2, joinKey: fresh) == nil, "a repeat")
    var other = fresh
    other.publicKey.bytes.append(1)
    #expect(confirm(clients[1], call, 2, joinKey: other) == .requestInvalid)
    // The key survives the server's death.
    stage.restart()
    let again = ["alice", "bob", "carol"].map { stage.connect($0) }
    _ = again[2].ask(.call(call, .leave))
    stage.advance(.milliseconds(100))
    let events = again[0].events()
    let rotate = try #require(events.rotations.last)
    #expect(rotate.deliver?.map(\.refresh) == [fresh])
    #expect(rotate.added?.allSatisfy { $0.refresh == nil } == true)
    #expect(again[1].events().rotations.last?.deliver == nil)
    let keys: KeyList = try again[0].get(.inCall(call, .listKeys(ListKeys())))
    #expect(keys.list.map(\.joinKey?.generation) == [0, 0] && keys.list.allSatisfy { $0.refresh == nil })
    #expect(again[1].code(.inCall(call, .requestKey(RequestKey()))) == nil)
    // A new stay begins with its own key.
    _ = try again[0].handOut(call, rotate.epoch, to: [again[1]])
    #expect(again[0].events().keyRequests.allSatisfy { $0.to.refresh == fresh })
    try again[1].rejoin(call)
    stage.advance(.seconds(3))
    #expect(again[0].events().rotations.last?.deliver?.map(\.refresh) == [nil])
  }

  // MARK: no trust

  @Test func aDeviceThatWaitsForTrustHoldsNobodyUpAndTheSenderHearsOnce() throws {
    let (call, clients) = try settled(["alice", "bob", "carol"], mode: .individual)
    try clients[2].rejoin(call)
    stage.advance(.milliseconds(100))
    _ = try clients[0].handOut(call, 3, to: [clients[2]])
    let envelope = try #require(clients[2].deliveries().first { $0.message.body.isEnvelope })
    _ = clients[0].events()
    func wait(_ client: Client, _ epoch: UInt32) -> RequestError.Code? {
      client.code(.inCall(call, .waitForKey(WaitForKey(epoch: epoch, reason: .trust))))
    }
    #expect(wait(clients[1], 3) == .keysNotAllowed, "no envelope is under way to it")
    #expect(wait(clients[2], 2) == .keysEpochStale && wait(clients[2], 4) == .keysNotAllowed)
    #expect(wait(clients[2], 3) == nil && wait(clients[2], 3) == nil)
    let events = clients[0].events()
    #expect(events.waits == [KeysWaiting(epoch: 3, participant: 4, reason: .trust)])
    #expect(events.switches == [3] && events.keyRequests.isEmpty)
    stage.advance(.seconds(30))
    #expect(clients[0].events().keyRequests.isEmpty)
    // It trusts the key now, and tells that by an ACK.
    clients[2].acknowledge(envelope.seq)
    clients[2].disconnect()
    #expect(stage.connect("carol").events().envelopes.isEmpty)
  }

  /// A leader's distrust does not decide for everybody.
  @Test func theNextThreeAreAskedForADeviceThatTheLeaderLeavesOut() throws {
    let (call, clients) = try settled(["alice", "bob", "carol", "dave", "erin", "frank"])
    stage.advance(.seconds(600))
    for client in clients { _ = client.events() }
    let kept = [1, 2, 3, 4].map { clients[$0] }
    let reply = try clients[0].handOut(call, 3, to: kept)
    #expect(reply.missing == [clients[5].device])
    #expect(try clients[0].state(call).epoch == 3, "nobody waits for it")
    let asked = clients.filter { $0.events().keyRequests.map(\.to.address) == [clients[5].device] }
    #expect(asked.map(\.user) == [clients[1], clients[2], clients[3]].map(\.user))
    #expect(try clients[2].handOut(call, 3, to: [clients[5]]).delivered == [clients[5].device])
    #expect(clients[5].events().envelopes.map(\.from) == [clients[2].device])
    let second = HandOutKeys(epoch: 3, envelopes: [clients[1].envelope(for: clients[5], epoch: 3)])
    #expect(clients[1].code(.inCall(call, .keys(second))) == .keysEpochStale, "the first answer counts")
  }

  @Test func aDeviceThatIsLeftOutAsksTheNextAndTheLeaderMayChangeItsMind() throws {
    let (call, clients) = try settled(["alice", "bob", "carol"])
    stage.advance(.seconds(600))
    for client in clients { _ = client.events() }
    _ = try clients[0].handOut(call, 3, to: [clients[1]])
    #expect(clients[1].events().keyRequests.count == 1)
    // Only the leader is left: a rotation would be pointless, so none begins.
    for _ in 0..<3 { #expect(clients[2].code(.inCall(call, .requestKey(RequestKey()))) == nil) }
    #expect(clients[2].code(.inCall(call, .requestKey(RequestKey()))) == .rateLimited)
    #expect(clients[0].events().keyRequests.count == 3)
    stage.advance(.seconds(5))
    #expect(clients[0].events().rotations.isEmpty)
    #expect(try clients[0].handOut(call, 3, to: [clients[2]]).delivered == [clients[2].device])
  }
}
