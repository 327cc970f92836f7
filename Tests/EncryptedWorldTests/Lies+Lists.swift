import CallMessages
import Contract
import Crypto
import Foundation
import MediaModel
import Testing

@testable import ConclaveClient

/// Rows about lists, numbers and history.
extension Lies {
  static let lists: [Int: @Sendable (UInt64) throws -> Aftermath] = [
    1: ownNumber, 2: { try change($0, .malformedList) { $0[2].participant = $0[1].participant } },
    3: swappedNumbers, 4: badNumbers, 5: initiatorsNumber, 6: foreignTracks, 7: badEpochs, 8: oldEpoch, 9: otherList,
    10: repeated,
    11: { try history($0) { try $0.announcement(previous: [UInt8](repeating: 1, count: 32), for: $0.bob) } },
    12: newcomersPrevious, 13: skipped, 14: badLinks, 15: splitRatchet, 16: splitAndJoined, 17: missedGhost,
    18: { try ratchet($0) { $0.removeLast() } }, 19: ringRatchet, 20: doubles, 21: longJoin, 22: ownEntry,
    23: othersJoinKey, 24: returning, 68: { try change($0, .malformedList) { $0.swapAt(0, 1) } }, 69: badChanges,
  ]

  /// Asserts that a list changed like this is refused.
  private static func change(
    _ seed: UInt64, _ refusal: KeyRefusal, _ change: (inout [ListEntry]) -> Void
  ) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    var list = try scene.entries(of: scene.bob)
    change(&list)
    try scene.expectRefusal(scene.announcement(list, for: scene.bob), by: scene.bob, refusal)
    scene.world.run(2_000)
    return Aftermath(scene, warned: [scene.bob])
  }

  private static func ownNumber(_ seed: UInt64) throws -> Aftermath {
    // All numbers are shifted: nobody's own number equals the one in the reply.
    let scene = try Scene(seed: seed)
    var list = try scene.entries(of: scene.bob)
    for index in list.indices { list[index].participant += 100 }
    try scene.expectRefusal(scene.announcement(list, for: scene.bob), by: scene.bob, .notOnList)
    // A reply with Alice's number, as in the proof poc7: no nonce repeats, since the list does not match.
    scene.world.lieInReply = { reply, device in
      guard case .ok(.joined(var joined)) = reply, device == scene.carol.address else { return reply }
      joined.participant = 1
      return .ok(.joined(joined))
    }
    scene.carol.leave()
    scene.world.run(3_000)
    scene.carol.join(scene.call)
    scene.world.run(6_000)
    #expect(scene.carol.stay?.cipher.sendingEpoch == nil)
    #expect(scene.carol.refusals.contains(.notOnList))
    return Aftermath(scene, warned: [scene.carol])
  }

  private static func swappedNumbers(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let (alice, bob) = (scene.alice, scene.bob)
    let carol = scene.carol
    scene.forger = Forger(scene.world, scene.call) { list, device in
      guard device == carol.address, let a = list.firstIndex(where: { $0.address == alice.address }),
        let b = list.firstIndex(where: { $0.address == bob.address })
      else { return list }
      var list = list
      (list[a].participant, list[b].participant) = (list[b].participant, list[a].participant)
      return list
    }
    scene.world.add("dave")
    scene.world.run(500)
    scene.alice.invite(["dave"], to: scene.call)
    scene.world.run(500)
    scene.world.devices[3].accept(scene.call)
    scene.world.run(30_000)
    // Changing numbers are refused; the others see that Carol does not share the key.
    #expect(carol.refusals.contains(.changedEntry))
    guard case .notConfirmed(let who) = alice.stay?.confirmation else {
      Issue.record("Alice was not told that Carol has another key")
      return Aftermath(scene, warned: [])
    }
    #expect(who.map(\.user) == ["carol"])
    return Aftermath(scene, warned: [alice])
  }

  private static func badNumbers(_ seed: UInt64) throws -> Aftermath {
    let body = #"{"user":"u","device":"d","participant":N,"fingerprint":"AAAA"}"#
    for number in ["-1", "1.5", "\"2\"", "4294967296", "9007199254740992"] {
      let text = body.replacing("N", with: number)
      #expect(throws: (any Error).self) { try JSONDecoder().decode(ListEntry.self, from: Data(text.utf8)) }
    }
    return try change(seed, .malformedList) { $0[2].participant = 0 }
  }

  private static func initiatorsNumber(_ seed: UInt64) throws -> Aftermath {
    let world = World(seed: seed)
    let (alice, bob) = (world.add("alice"), world.add("bob"))
    world.run(1_000)
    world.lie = { message, device in
      guard case .member(var change) = message.body, device == alice.address, change.member.user.text == "bob",
        !change.member.participants.isEmpty
      else {
        if case .rotate = message.body { return nil }
        return message
      }
      change.member.participants[0].participant = 1
      var message = message
      message.body = .member(change)
      return message
    }
    alice.start(["bob"])
    world.run(1_000)
    bob.accept(try #require(bob.rings.keys.first))
    world.run(3_000)
    #expect(alice.stay?.keys.current == 1)
    #expect(alice.stay?.heard[bob.address] == nil)
    try world.audit.check()
    return Aftermath()
  }

  private static func foreignTracks(_ seed: UInt64) throws -> Aftermath {
    for id in ["1.257", "2.-255", "01.1", "1.0", "1.1.1", "+1.1"] { #expect(TrackID(id) == nil) }
    let answer = MediaAnswer(
      sdp: "", tracks: ["2.1", "1.1"].map { MediaAnswer.Track(mid: $0, track: TrackID($0)!) }, receive: [], rev: 1,
      unsupported: [])
    let (own, isForeign) = CallClient.ownTracks(answer, of: 1)
    #expect(own == ["1.1": "1.1"])
    return Aftermath(isWarned: isForeign)
  }

  private static func badEpochs(_ seed: UInt64) throws -> Aftermath {
    for number in ["4294967298", "2.5", "\"3\"", "-1"] {
      let text = #"{"epoch":N}"#.replacing("N", with: number)
      #expect(throws: (any Error).self) { try JSONDecoder().decode(SwitchKeys.self, from: Data(text.utf8)) }
    }
    let scene = try Scene(seed: seed)
    let before = try #require(scene.bob.stay).keys.newest
    try scene.announce(scene.announcement(epoch: 0, for: scene.bob), to: scene.bob)
    #expect(scene.bob.stay?.keys.newest == before)
    return Aftermath(scene, warned: [])
  }

  private static func oldEpoch(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    var recorded: [(EventMessage, Device)] = []
    scene.world.lie = { message, device in
      recorded.append((message, device))
      return message
    }
    scene.carol.leave()
    scene.world.run(5_000)
    scene.world.lie = nil
    let epoch = try #require(scene.bob.stay?.keys.current)
    scene.carol.join(scene.call)
    scene.world.run(5_000)
    for (number, (message, device)) in recorded.enumerated() where device == scene.bob.address {
      scene.bob.receive(message, 1_000_000 + UInt64(number))
    }
    scene.world.run(2_000)
    #expect(scene.bob.stay?.keys.current ?? 0 > epoch)
    #expect(scene.bob.stay?.cipher.sendingEpoch == scene.bob.stay?.keys.current)
    #expect(scene.bob.refusals.isEmpty)
    return Aftermath(scene, warned: [])
  }

  private static func otherList(_ seed: UInt64) throws -> Aftermath {
    try history(seed) { scene in
      let newest = try #require(scene.bob.stay).keys.newest
      return try scene.announcement(Array(scene.entries(of: scene.bob).dropLast()), epoch: newest, for: scene.bob)
    }
  }

  /// An announcement that does not follow from what is known breaks the history.
  private static func history(_ seed: UInt64, _ rotation: (Scene) throws -> Rotate) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    try scene.announce(rotation(scene), to: scene.bob)
    scene.expectBrokenHistory(scene.bob)
    scene.world.run(8_000)
    // It has rejoined by itself, once, and with an honest server all is well.
    #expect(scene.bob.stay?.cipher.sendingEpoch == scene.alice.stay?.cipher.sendingEpoch)
    return Aftermath(scene, warned: [scene.bob])
  }

  private static func repeated(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let keys = try #require(scene.bob.stay).keys
    let epoch = try #require(keys.epochs[keys.newest])
    for _ in 0..<3 {
      try scene.announce(
        Rotate(
          epoch: epoch.number, mode: .fresh, leader: 1, previous: Base64Bytes([UInt8](repeating: 0, count: 32)),
          listHash: Base64Bytes(epoch.listHash), list: epoch.list.entries), to: scene.bob)
    }
    scene.world.run(1_000)
    #expect(scene.bob.refusals.isEmpty)
    #expect(scene.bob.stay?.cipher.sendingEpoch == epoch.number)
    return Aftermath(scene, warned: [])
  }

  private static func newcomersPrevious(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let dave = scene.world.add("dave")
    scene.world.run(500)
    scene.world.lie = { message, device in
      guard case .rotate(var rotation) = message.body, device == dave.address else { return message }
      rotation.previous = Base64Bytes([UInt8](repeating: 7, count: 32))
      rotation.listHash = Base64Bytes(
        EpochList.hash(
          rotation.epoch, of: scene.call, previous: rotation.previous.bytes,
          rosterHash: EpochList.rosterHash(rotation.list ?? [])))
      var message = message
      message.body = .rotate(rotation)
      return message
    }
    scene.alice.invite(["dave"], to: scene.call)
    scene.world.run(500)
    dave.accept(scene.call)
    scene.world.run(15_000)
    #expect(dave.stay?.cipher.sendingEpoch == nil)
    #expect(dave.stay?.heard.isEmpty == true)
    return Aftermath(scene, warned: [dave])
  }

  private static func skipped(_ seed: UInt64) throws -> Aftermath {
    try history(seed) { scene in
      let third = try scene.announcement(for: scene.bob)
      let second = try #require(scene.bob.stay).keys
      try scene.announce(third, to: scene.bob)
      // The next one says that the previous one was never announced.
      return try scene.announcement(
        epoch: third.epoch + 1, previous: #require(second.epochs[second.newest]).listHash, for: scene.bob)
    }
  }

  private static func badLinks(_ seed: UInt64) throws -> Aftermath {
    for count in [3, 1_200] {
      let scene = try Scene(seed: seed)
      let newest = try #require(scene.bob.stay).keys.newest
      let target = newest + UInt32(count)
      try scene.announce(scene.announcement(epoch: target, for: scene.bob), to: scene.bob)
      let list = try scene.entries(of: scene.bob)
      // A thousand links, or links to a list that does not follow from the known one.
      let links = (max(newest + 1, target > 999 ? target - 999 : 1)...target).map {
        EpochLink(epoch: $0, roster: Base64Bytes(EpochList.rosterHash(list)))
      }
      let previous = Base64Bytes([UInt8](repeating: 3, count: 32))
      try scene.tell(
        scene.bob,
        .list(
          KeyList(
            epoch: target, mode: .fresh, previous: previous,
            listHash: Base64Bytes(
              EpochList.hash(
                target, of: scene.call, previous: previous.bytes, rosterHash: EpochList.rosterHash(list))),
            list: list, links: links, confirmed: [])))
      scene.expectBrokenHistory(scene.bob)
    }
    return Aftermath(isWarned: true)
  }

  /// The critical finding: poc16. The ghost gets the leader's next secret, as a new device of a member, and cannot
  /// derive anybody else's key from it.
  private static func splitRatchet(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let alice = scene.alice.address
    let ghost = Ghost(scene.world, call: scene.call, user: "carol")
    let forger = Forger(scene.world, scene.call) { list, device in device == alice ? ghost.haunt(list) : list }
    forger.deliver = [ghost.delivered]
    forger.listener = { rotation, device in
      guard device == alice else { return }
      var whole = rotation
      whole.deliver = nil
      ghost.feed(.rotate(whole))
    }
    ghost.intercept()
    scene.world.add("dave")
    scene.world.run(500)
    scene.alice.invite(["dave"], to: scene.call)
    scene.world.run(500)
    scene.world.devices[3].accept(scene.call)
    scene.world.run(6_000)
    ghost.listen()
    let epoch = try #require(scene.bob.stay).keys.newest
    let ghosts = try #require(ghost.keys.epochs[epoch]?.secret, "the ghost got Alice's secret")
    #expect(scene.bob.stay?.keys.epochs[epoch]?.secret != ghosts)
    // Knowing Bob's list from the server does not help the ghost: it opens only the leader's frames, and the leader
    // sees it.
    for device in [scene.bob, scene.carol] {
      #expect(!ghost.opened.contains(try #require(device.stay).participant))
    }
    scene.world.run(20_000)
    withExtendedLifetime(forger) {}
    return Aftermath(scene, warned: [scene.alice, scene.bob])
  }

  private static func splitAndJoined(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let alice = scene.alice.address
    scene.haunt { $0 == alice }
    scene.world.run(6_000)
    scene.world.lie = nil
    scene.world.lieInReply = nil
    scene.world.alter = nil
    scene.carol.join(scene.call)
    scene.world.run(10_000)
    scene.expectBrokenHistory(scene.alice)
    #expect(!scene.bob.refusals.contains(.brokenHistory))
    return Aftermath(scene, warned: [scene.alice])
  }

  private static func missedGhost(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let keys = try #require(scene.bob.stay).keys
    let before = try #require(keys.epochs[keys.newest])
    let ghost = Ghost(scene.world, call: scene.call)
    let list = before.list.entries
    let haunted = EpochList.rosterHash(ghost.haunt(list))
    let hidden = EpochList.hash(keys.newest + 1, of: scene.call, previous: before.listHash, rosterHash: haunted)
    let target = keys.newest + 2
    let hash = EpochList.hash(target, of: scene.call, previous: hidden, rosterHash: EpochList.rosterHash(list))
    try scene.tell(
      scene.bob,
      .list(
        KeyList(
          epoch: target, mode: .ratchet, previous: Base64Bytes(hidden), listHash: Base64Bytes(hash), list: list,
          links: [
            EpochLink(epoch: target - 1, roster: Base64Bytes(haunted)),
            EpochLink(epoch: target, roster: Base64Bytes(EpochList.rosterHash(list))),
          ], confirmed: [])))
    #expect(scene.bob.stay?.keys.newest == target)
    #expect(scene.bob.stay?.keys.epochs[target]?.secret == nil)
    #expect(scene.bob.stay?.keys.demands.epoch == target)
    return Aftermath(scene, warned: [])
  }

  private static func ratchet(_ seed: UInt64, _ change: (inout [ListEntry]) -> Void) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    var list = try scene.entries(of: scene.bob)
    change(&list)
    try scene.expectRefusal(scene.announcement(list, mode: .ratchet, for: scene.bob), by: scene.bob, .unsafeRatchet)
    return Aftermath(scene, warned: [scene.bob])
  }

  private static func ringRatchet(_ seed: UInt64) throws -> Aftermath {
    let world = World(seed: seed)
    let (alice, bob) = (world.add("alice"), world.add("bob"))
    world.run(1_000)
    world.lie = { message, device in
      guard case .rotate(var rotation) = message.body else { return message }
      rotation.mode = .ratchet
      var message = message
      message.body = .rotate(rotation)
      return message
    }
    alice.start(["bob"])
    world.run(1_000)
    bob.accept(try #require(bob.rings.keys.first))
    world.run(2_000)
    #expect(alice.refusals.contains(.unsafeRatchet) && bob.refusals.contains(.unsafeRatchet))
    #expect(alice.stay?.keys.newest == 1)
    try world.audit.check()
    return Aftermath(isWarned: true)
  }

  private static func doubles(_ seed: UInt64) throws -> Aftermath {
    _ = try change(seed, .malformedList) { $0.append($0[2]) }
    _ = try change(seed, .malformedList) { $0[2].fingerprint = $0[0].fingerprint }
    _ = try change(seed, .malformedList) { $0[2].joinId = $0[0].joinId }
    return try change(seed, .notOnList) {
      $0[1].fingerprint = Base64Bytes([UInt8](repeating: 9, count: 32))
    }
  }

  private static func longJoin(_ seed: UInt64) throws -> Aftermath {
    try change(seed, .malformedList) {
      let next = $0[2].fingerprint.bytes
      $0[1].joinId?.bytes += next
      $0.removeLast()
    }
  }

  private static func ownEntry(_ seed: UInt64) throws -> Aftermath {
    _ = try change(seed, .notOnList) { $0[1].joinKey = $0[0].joinKey }
    _ = try change(seed, .notOnList) { $0[2].joinKey = $0[1].joinKey }
    return try change(seed, .notOnList) { $0.remove(at: 1) }
  }

  private static func othersJoinKey(_ seed: UInt64) throws -> Aftermath {
    _ = try change(seed, .malformedList) { $0[2].joinKey = nil }
    // Dave's key belongs to another call: Alice leads, and seals nothing to it.
    let scene = try Scene(seed: seed)
    let dave = scene.world.add("dave")
    scene.world.run(500)
    let foreign = JoinCredentials(
      dave.identity, call: CallID(unchecked: scene.world.uuid()), at: scene.world.timestamp, using: &scene.world.random)
    scene.world.alter = { request, device in
      guard case .calls(.call(let call, .accept(var join))) = request, device == dave.address else { return request }
      join.joinKey = foreign.joinKey
      return .call(call, .accept(join))
    }
    scene.alice.invite(["dave"], to: scene.call)
    scene.world.run(500)
    dave.accept(scene.call)
    scene.world.run(5_000)
    #expect(scene.alice.warnings.contains { $0.problem == .joinKeyNotSigned && $0.user == "dave" })
    #expect(dave.stay?.cipher.sendingEpoch == nil && dave.stay?.heard.isEmpty == true)
    return Aftermath(scene, warned: [scene.alice])
  }

  private static func returning(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    let old = try scene.entries(of: scene.bob)
    scene.carol.leave()
    scene.world.run(6_000)
    try scene.expectRefusal(scene.announcement(old, for: scene.bob), by: scene.bob, .changedEntry)
    _ = try change(seed, .changedEntry) { $0[2].participant = 77 }
    return try change(seed, .changedEntry) { $0[2].joinKey?.publicKey.bytes[40] ^= 1 }
  }

  private static func badChanges(_ seed: UInt64) throws -> Aftermath {
    let scene = try Scene(seed: seed)
    for (added, removed) in [([], [77]), ([try scene.entries(of: scene.bob)[0]], []), ([], [1, 1])]
      as [([ListEntry], [ParticipantNumber])]
    {
      var rotation = try scene.announcement(for: scene.bob)
      rotation.list = nil
      rotation.added = added
      rotation.removed = removed
      try scene.expectRefusal(rotation, by: scene.bob, .malformedList)
    }
    return Aftermath(scene, warned: [scene.bob])
  }
}
