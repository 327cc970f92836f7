import Contract
import Foundation
import MediaModel
import NIOCore
import Octets
import Testing

@testable import ConclaveClient

/// Numbers from the server at the ends of their ranges: refused or accepted, they do not crash a client.
struct NumberTests {
  private static let extremes = [
    "0", "1", "255", "2147483647", "2147483648", "4294967294", "4294967295", "4294967296", "9007199254740992",
    "9223372036854775807", "18446744073709551615", "-1", "-9223372036854775808",
  ]

  /// The text with one number replaced, for each number and each extreme, and with all numbers replaced by each
  /// extreme.
  private func variants(of json: String) -> [String] {
    let numbers = numbers(in: json)
    return Self.extremes.flatMap { extreme in
      var all = json
      for range in numbers.reversed() { all.replaceSubrange(range, with: extreme) }
      return [all]
        + numbers.map { range in
          var one = json
          one.replaceSubrange(range, with: extreme)
          return one
        }
    }
  }

  /// The ranges of numbers outside strings.
  private func numbers(in json: String) -> [Range<String.Index>] {
    var found: [Range<String.Index>] = []
    var isInString = false
    var index = json.startIndex
    while index < json.endIndex {
      let character = json[index]
      if isInString, character == "\\" { index = json.index(after: index) }
      if character == "\"" { isInString.toggle() }
      guard !isInString, character.isNumber else {
        index = json.index(after: index)
        continue
      }
      let end = json[index...].firstIndex { !$0.isNumber } ?? json.endIndex
      found.append(index..<end)
      index = end
    }
    return found
  }

  private func text(_ body: some Encodable) throws -> String {
    String(decoding: try JSONEncoder().encode(body), as: UTF8.self)
  }

  private func decode<Body: Decodable>(_ type: Body.Type, _ text: String) -> Body? {
    try? JSONDecoder().decode(type, from: Data(text.utf8))
  }

  /// The examples of the contract, each as JSON.
  private func golden(_ name: String) throws -> [String: String] {
    let tests = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    let data = try Data(contentsOf: tests.appending(path: "ContractTests/Golden/\(name).json"))
    let object = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    return try object.mapValues { String(decoding: try JSONSerialization.data(withJSONObject: $0), as: UTF8.self) }
  }

  /// Bob's agreement enters no unproven epoch, now or an hour later.
  private func hear(_ input: KeyInput, _ world: KeyWorld, upTo epoch: UInt32 = 2, _ what: String) {
    var world = world
    world.feed(input, to: "bob")
    world.now = world.now.advanced(by: .seconds(3_600))
    world.perform(world.members["bob"]!.agreement.handleTimeout(now: world.now), of: "bob")
    #expect(world.members["bob"]!.agreement.newest <= epoch, "\(what)")
  }

  private func input(_ body: EventBody) -> KeyInput? {
    switch body {
    case .rotate(let rotation): .rotate(rotation)
    case .envelope(let envelope): .envelope(envelope, delivery: .max)
    case .switchKeys(let change): .switchKeys(epoch: change.epoch)
    case .keyRequest(let request): .keyRequest(request)
    case .confirmed(let confirmed): .confirmed(confirmed)
    case .member(let change): .members([change.member])
    case .members(let changes): .members(changes.members.map(\.member))
    case .state(let state): .state(state)
    default: nil
    }
  }

  @Test func anEventIsTakenOrRefused() throws {
    let world = KeyWorld.pair
    var decoded = 0
    for (name, body) in try golden("events") {
      let name = try #require(EventName(rawValue: name))
      for text in variants(of: body) {
        guard let message = try? BodyDecoder(PublicWork(capacity: 0)).event(name, from: ByteBuffer(string: text)) else {
          continue
        }
        decoded += 1
        var session = CallSession(world.joined("bob"))
        _ = session.handle(message.body)
        if let input = input(message.body) { hear(input, world, text) }
      }
    }
    #expect(decoded > 500)
  }

  @Test func aReplyIsTakenOrRefused() throws {
    let world = KeyWorld.pair
    let replies = try golden("replies")
    var decoded = 0
    func each<Body: Decodable>(_ name: String, _ type: Body.Type, _ use: (Body, String) -> Void) throws {
      for text in variants(of: try #require(replies[name])) {
        guard let body = decode(type, text) else { continue }
        decoded += 1
        use(body, text)
      }
    }
    try each("joined", Joined.self) { joined, _ in
      var bob = world.members["bob"]!.agreement
      var generator = SplitMix64(seed: 1)
      _ = bob.enter(joined, now: world.now)
      _ = bob.start(joined, now: world.now, using: &generator)
      _ = CallSession(joined)
    }
    try each("state", CallState.self) { hear(.state($0), world, $1) }
    try each("devices", Devices.self) { hear(.directory($0), world, $1) }
    try each("keyList", KeyList.self) { hear(.list($0), world, $1) }
    try each("confirmations", ConfirmationTags.self) { reply, text in
      for bucket in [0, 1, 64] { hear(.confirmations(epoch: 2, bucket: bucket, reply), world, text) }
    }
    try each("media", MediaAnswer.self) { answer, _ in
      var session = CallSession(world.joined("bob"))
      _ = session.take(answer)
      _ = CallClient.ownTracks(answer, of: 2)
    }
    #expect(decoded > 200)
  }

  /// The next messages of an honest server, with other numbers.
  @Test func aTrueAnnouncementWithAnotherNumberIsRefused() throws {
    var world = KeyWorld.pair
    world.join("carol")
    let names = ["alice", "bob", "carol"]
    let before = world
    let rotation = world.rotation(to: names, mode: .fresh, leader: "bob", for: "bob")
    world.move(to: names, mode: .fresh)
    let (list, honest) = (world.keyList(since: 2), try text(rotation))
    for text in variants(of: honest) {
      guard let changed = decode(Rotate.self, text), changed != rotation else { continue }
      // The list's hash includes neither the leader's number nor the time of a join key.
      hear(.rotate(changed), before, upTo: changed.epoch == 3 ? 3 : 2, text)
    }
    for text in variants(of: try text(list)) {
      guard let changed = decode(KeyList.self, text), changed != list else { continue }
      hear(.list(changed), before, upTo: changed.epoch == 3 ? 3 : 2, text)
    }
    for text in variants(of: try text(KeysConfirmed(epoch: 2, buckets: KeyWorld.buckets(before.list, [:])))) {
      if let confirmed = decode(KeysConfirmed.self, text) { hear(.confirmed(confirmed), before, text) }
    }
    for text in variants(of: try text(KeyRequest(epoch: 2, to: before.entryWithKeys("alice")))) {
      if let request = decode(KeyRequest.self, text) { hear(.keyRequest(request), before, text) }
    }
    for text in variants(of: try text(before.state)) {
      if let state = decode(CallState.self, text) { hear(.state(state), before, text) }
    }
  }

  /// Bob, who joined just below the highest number.
  private func atTheEnd(_ epoch: UInt32) -> KeyWorld {
    var world = KeyWorld()
    world.join("bob", participant: 2)
    world.epoch = epoch - 1
    world.hashes[epoch - 1] = [UInt8](repeating: 7, count: 32)
    world.announce(["bob"], mode: .fresh, leader: "bob")
    world.switchAll()
    return world
  }

  @Test func afterTheHighestEpochNoneComes() throws {
    var world = atTheEnd(.max - 1)
    #expect(world.members["bob"]!.agreement.current == UInt32.max - 1)
    world.join("carol", participant: 3)
    let rotation = world.rotation(to: ["bob", "carol"], mode: .fresh, leader: "bob", for: "bob")
    world.announce(["bob", "carol"], mode: .fresh, leader: "bob")
    world.deliverEnvelopes()
    world.switchAll()
    #expect(world.members["bob"]!.agreement.current == UInt32.max)
    #expect(try world.travel("x", from: "bob", to: "carol").0 == "x")
    #expect(world.members["bob"]!.refusals.isEmpty)
    // A repetition, one with another list, and the numbers after zero.
    world.feed(.rotate(rotation), to: "bob")
    world.feed(.list(world.keyList(since: .max - 1)), to: "bob")
    for epoch: UInt32 in [0, 1] {
      var next = rotation
      next.epoch = epoch
      world.feed(.rotate(next), to: "bob")
      world.feed(.switchKeys(epoch: epoch), to: "bob")
    }
    #expect(world.members["bob"]!.refusals.isEmpty)
    var other = rotation
    other.listHash.bytes[0] ^= 1
    world.feed(.rotate(other), to: "bob")
    #expect(world.members["bob"]!.refusals == [.brokenHistory])
  }

  /// Links after the highest number are not a chain.
  @Test func aChainThatGoesOnBehindTheHighestNumberIsBroken() throws {
    for count in 1...3 {
      var world = atTheEnd(.max - 1)
      world.join("carol", participant: 3)
      world.move(to: ["bob", "carol"], mode: .fresh)
      var list = world.keyList(since: .max - 1)
      let link = try #require(list.links.last)
      list.links = Array(repeating: link, count: count)
      world.feed(.list(list), to: "bob")
      #expect(world.members["bob"]!.refusals == (count == 1 ? [] : [.brokenHistory]))
      #expect(world.members["bob"]!.agreement.newest == (count == 1 ? UInt32.max : UInt32.max - 1))
    }
  }
}
