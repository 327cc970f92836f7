import CallMessages
import Contract
import MediaModel
import Testing

/// The chain of lists, and the rules for a list's content (protocol section 5, "List" and Epochs 2).
struct KeyChainRules {
  let stage = Stage()

  private func calling(_ names: [String]) throws -> (CallID, [Client]) {
    let clients = names.map { stage.connect($0) }
    let call = try clients[0].call(Array(names.dropFirst()) + ["nobody"]) { $0.ringSeconds = 120 }
    for client in clients.dropFirst() { try client.accept(call) }
    stage.advance(.milliseconds(100))
    return (call, clients)
  }

  private func list(_ client: Client, _ call: CallID, since: UInt32? = nil) throws -> KeyList {
    try client.get(.inCall(call, .listKeys(ListKeys(since: since))))
  }

  private func number(_ value: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> UInt32($0)) }
  }

  private func prefixed(_ text: String) -> [UInt8] { [0, UInt8(text.utf8.count)] + Array(text.utf8) }

  @Test func theHashBindsCallNumberChainAndList() throws {
    let (call, clients) = try calling(["alice", "bob"])
    let keys = try list(clients[0], call, since: 0)
    #expect(keys.epoch == 2 && keys.links.map(\.epoch) == [1, 2])
    var roster = Array("conclave-roster-v2".utf8) + number(2)
    for (entry, client) in zip(keys.list, clients) {
      roster += prefixed(client.user.text) + prefixed(client.device.device.text) + number(entry.participant)
      roster += entry.fingerprint.bytes + (entry.joinId?.bytes ?? [])
      roster += Stage.digest(entry.joinKey?.publicKey.bytes ?? [])
    }
    #expect(keys.links.last?.roster.bytes == Stage.digest(roster))
    func chained(_ epoch: UInt32, _ previous: [UInt8], _ roster: Base64Bytes) -> [UInt8] {
      Stage.digest(
        Array("conclave-list-v2".utf8) + prefixed(call.text) + number(epoch) + previous + roster.bytes)
    }
    let first = chained(1, [UInt8](repeating: 0, count: 32), keys.links[0].roster)
    #expect(keys.previous.bytes == first)
    #expect(keys.listHash.bytes == chained(2, first, keys.links[1].roster))
    #expect(clients[0].events().rotations.last?.previous == keys.previous)
  }

  @Test func linksBeginBehindTheEpochThatTheDeviceKnows() throws {
    let (call, clients) = try calling(["alice", "bob"])
    #expect(try list(clients[1], call).links.isEmpty)
    #expect(try list(clients[1], call, since: 1).links.map(\.epoch) == [2])
    #expect(try list(clients[1], call, since: 2).links.isEmpty)
    #expect(try list(clients[1], call, since: .max).links.isEmpty)
  }

  @Test func anEpochThatWasGivenUpStaysInTheChainAndARestartGoesOnBehindIt() throws {
    let (call, clients) = try calling(["alice", "bob", "carol"])
    let announced = try #require(clients[0].events().rotations.last)
    #expect(announced.epoch == 2)
    // The server dies before anybody has answered.
    stage.restart(after: .seconds(3))
    let again = ["alice", "bob", "carol"].map { stage.connect($0) }
    let state = try list(again[0], call, since: 1)
    #expect(state.epoch >= 2 && state.links.first == EpochLink(epoch: 2, roster: state.links[0].roster))
    stage.advance(.seconds(1))
    let next = try #require(again.flatMap { $0.events().rotations }.first)
    #expect(next.epoch == 3 && next.previous == announced.listHash && next.mode == .fresh)
    #expect(try list(again[0], call, since: 0).links.map(\.epoch) == [1, 2, 3])
  }

  @Test func theLastThousandLinksAreKeptOverARestart() throws {
    let alice = stage.connect("alice")
    let call = try alice.call(["bob"]) {
      $0.rotateMinutes = 1
      $0.aloneSeconds = 86_400
      $0.maxHours = 168
    }
    try alice.connectMedia(call)
    for epoch in UInt32(2)...1_005 {
      stage.advance(.seconds(60) + .milliseconds(100))
      _ = try alice.handOut(call, epoch, to: [])
      _ = alice.events()
    }
    let before = try list(alice, call, since: 0)
    #expect(before.epoch == 1_005 && before.links.count == 1_000 && before.links.first?.epoch == 6)
    stage.restart()
    let after = try list(stage.connect("alice"), call, since: 0)
    #expect(after.links == before.links && after.listHash == before.listHash && after.previous == before.previous)
  }

  @Test func withoutJoinKeyOrJoinIdADeviceIsOnNoList() throws {
    let (call, clients) = try calling(["alice", "bob"])
    for join in [Join(joinId: joinId(7)), Join(joinKey: clients[0].joinKey(joinId(8)))] {
      let carol = stage.connect("carol")
      _ = clients[0].ask(.call(call, .invite(Invite(callees: [carol.user]))))
      #expect(carol.code(.call(call, .accept(join))) == nil)
      stage.advance(.seconds(1))
      #expect(try list(clients[0], call).list.map(\.address) == clients.map(\.device))
      #expect(carol.code(.inCall(call, .requestKey(RequestKey()))) == .keysNotAllowed)
      _ = carol.ask(.call(call, .leave))
    }
  }

  @Test func aJoinKeyOfAJoinIsWellFormedAndOfGeneration0() throws {
    let alice = stage.connect("alice")
    func refusal(_ change: (inout JoinKey) -> Void) -> RequestError? {
      var key = alice.joinKey(joinId(1))
      change(&key)
      let start = StartCall(id: .random, callees: [], media: .audio, joinId: joinId(1), joinKey: key)
      if case .failed(let error) = alice.ask(.start(start)) { return error }
      return nil
    }
    let changes: [(inout JoinKey) -> Void] = [
      { $0.generation = 1 }, { $0.at = Timestamp(milliseconds: -1) }, { $0.at = Timestamp(milliseconds: 1 << 53) },
      { $0.alg = "" }, { $0.alg = String(repeating: "a", count: 65) }, { $0.publicKey = Base64Bytes([]) },
      { $0.publicKey = Base64Bytes([UInt8](repeating: 1, count: 4_097)) }, { $0.signature = Base64Bytes([]) },
      { $0.signature = Base64Bytes([UInt8](repeating: 1, count: 1_025)) },
    ]
    for change in changes {
      let error = refusal(change)
      #expect(error?.code == .requestInvalid && error?.field == "joinKey")
    }
    #expect(refusal { _ in } == nil)
  }

  /// Clients refuse a list with a repeated joinId or join key: a device that copies one must not stop the others' keys.
  @Test func aJoinIdOrJoinKeyOfAnotherIsRefused() throws {
    let (call, clients) = try calling(["alice", "bob"])
    let mallory = stage.connect("mallory")
    _ = clients[0].ask(.call(call, .invite(Invite(callees: [mallory.user]))))
    let bob = try #require(try list(clients[0], call).list.first { $0.address == clients[1].device })
    let theirs = try #require(bob.joinId)
    #expect(
      mallory.code(.call(call, .accept(Join(joinId: theirs, joinKey: mallory.joinKey(theirs))))) == .requestInvalid)
    var copied = mallory.joinKey(joinId(9))
    copied.publicKey = try #require(bob.joinKey?.publicKey)
    #expect(mallory.code(.call(call, .accept(Join(joinId: joinId(9), joinKey: copied)))) == .requestInvalid)
    let zeros = joinId(0)
    #expect(mallory.code(.call(call, .accept(Join(joinId: zeros, joinKey: mallory.joinKey(zeros))))) == .requestInvalid)
    // A joinId of somebody who has left cannot be used again either, not even after a restart.
    _ = clients[1].ask(.call(call, .leave))
    #expect(
      mallory.code(.call(call, .accept(Join(joinId: theirs, joinKey: mallory.joinKey(theirs))))) == .requestInvalid)
    stage.restart()
    let again = stage.connect("mallory")
    #expect(again.code(.call(call, .accept(Join(joinId: theirs, joinKey: again.joinKey(theirs))))) == .requestInvalid)
    #expect(again.code(.call(call, .accept(again.join()))) == nil)
  }

  /// All of a ring's envelopes may be for devices that cannot be rung: its list still has these devices.
  @Test func noRatchetFollowsOnAListWithDevicesThatRing() throws {
    let alice = stage.connect("alice")
    let bob = stage.connect("bob")
    let carol = stage.connect("carol")
    _ = try carol.call(["dave"]) { $0.aloneSeconds = 600 }
    _ = bob.ask(.people(.setPresence(SetPresence(state: .unavailable))))
    let call = try alice.call(["bob", "carol"], envelopes: [alice.envelope(for: bob, epoch: 1)]) {
      $0.aloneSeconds = 600
    }
    #expect(bob.events().rings.isEmpty)
    #expect(bob.code(.call(call, .join(bob.join()))) == .callNotFound)
    let link: CallLink = try alice.get(.call(call, .link(MakeLink())))
    #expect(bob.code(.call(call, .join(bob.join(link: link.link)))) == nil)
    stage.advance(.milliseconds(100))
    #expect(alice.events().rotations.first?.mode == .fresh)
  }

  @Test func eachNewEntryOfTheListIsAMemberThatWasToldBefore() throws {
    let (call, clients) = try calling(["alice", "bob"])
    for client in clients { _ = client.events() }
    let carol = stage.connect("carol")
    _ = clients[0].ask(.call(call, .invite(Invite(callees: [carol.user]))))
    try carol.accept(call)
    _ = clients[1].ask(.call(call, .leave))
    stage.advance(.seconds(3))
    let names = clients[0].names()
    let rotate = try #require(names.firstIndex(of: .keysRotate))
    #expect(names[..<rotate].count { $0 == .callMember } == 3)
  }

  @Test func theFirstInAServicesCallHearsOfItselfAndThenOfEpoch1() throws {
    let service = stage.connectService()
    let alice = stage.connect("alice")
    let start = StartCall(callees: [], media: .audio, as: alice.user)
    let started: StartedCall = try service.get(.start(start))
    _ = alice.events()
    #expect(try alice.accept(started.call.id).participant == 1)
    let events = alice.events()
    #expect(events.map(\.name) == [.callMember, .keysRotate])
    let rotate = try #require(events.rotations.first)
    #expect(rotate.epoch == 1 && rotate.leader == 1 && rotate.list?.count == 1)
    #expect(rotate.previous.bytes == [UInt8](repeating: 0, count: 32))
  }

  @Test func anEnvelopeNamesTheKeyThatItIsSealedTo() throws {
    let (call, clients) = try calling(["alice", "bob"])
    var envelope = clients[0].envelope(for: clients[1], epoch: 2)
    envelope.key = Base64Bytes([UInt8](repeating: 1, count: 31))
    guard
      case .failed(let error) = clients[0].ask(.inCall(call, .keys(HandOutKeys(epoch: 2, envelopes: [envelope]))))
    else { return #expect(Bool(false)) }
    #expect(error.code == .requestInvalid && error.field == "envelopes.0.key")
  }
}
