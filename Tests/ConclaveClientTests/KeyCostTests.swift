import Contract
import Foundation
import LinuxIO
import MediaModel
import Octets
import Testing

@testable import ConclaveClient

/// The CPU time that one device spends on the keys of a large call. `CONCLAVE_KEY_COSTS=10,100,1000` prints the table
/// of docs/benchmarks.md.
@Suite(.serialized)
struct KeyCostTests {
  private static let sizes =
    ProcessInfo.processInfo.environment["CONCLAVE_KEY_COSTS"]?.split(separator: ",").compactMap { Int($0) } ?? [20]

  /// A list of `count` devices, and a device on it that has its secret.
  private struct Crowd {
    var entries: [ListEntry]
    /// The entries as the leader gets them.
    var delivered: [ListEntry]
    var directory: [DeviceEntry] = []
    var agreement: KeyAgreement
    let cipher = FrameCipher()
    var list: EpochList
    var listHash: [UInt8]
    var epoch: UInt32
    var now = Instant(nanoseconds: 1_000_000_000)
    var generator = SplitMix64(seed: 13)
    var effects: [KeyEffect] = []
    /// The device that started the call and let everybody in.
    let starter: DeviceIdentity

    init(_ count: Int) throws {
      let people = (1...count).map { Self.person($0) }
      entries = people.map(\.entry).sorted { $0.address < $1.address }
      delivered = people.map(\.delivered).sorted { $0.address < $1.address }
      let own = people[0]
      starter = own.identity
      agreement = KeyAgreement(identity: own.identity, join: own.join, now: now)
      epoch = 2
      list = try EpochList(entries, epoch: 2)
      let previous = [UInt8](repeating: 7, count: 32)
      listHash = list.hash(2, of: KeyWorld.call, previous: previous)
      directory = people.map(\.directory)
      _ = agreement.enter(
        Joined(call: Self.state(people.map(\.entry)), participant: 1, ice: ICE()), now: now)
      take(
        .rotate(
          Rotate(
            epoch: 2, mode: .fresh, leader: 1, previous: Base64Bytes(previous), listHash: Base64Bytes(listHash),
            list: entries, deliver: [], admissions: words(for: entries))))
      answer()
      take(.switchKeys(epoch: 2))
      #expect(cipher.sendingEpoch == 2)
      #expect(agreement.lettingIn.root == own.identity.address.user && agreement.lettingIn.uninvited.isEmpty)
    }

    func words(for entries: [ListEntry]) -> [Admission] {
      entries.map { .letting($0.user, into: KeyWorld.call, by: starter) }
    }

    typealias Person = (
      identity: DeviceIdentity, join: JoinCredentials, entry: ListEntry, delivered: ListEntry, directory: DeviceEntry
    )

    static func person(_ number: Int) -> Person {
      var generator = SplitMix64(seed: UInt64(number))
      let identity = DeviceIdentity(user: "user\(number)", device: "phone")!
      let join = JoinCredentials(identity, call: KeyWorld.call, at: KeyWorld.clock, using: &generator)
      let entry = ListEntry(
        user: identity.address.user, device: identity.address.device, participant: ParticipantNumber(number),
        joinId: join.joinId, joinKey: join.joinKey, fingerprint: Base64Bytes(identity.fingerprint))
      var delivered = entry
      delivered.keys = identity.registration
      let directory = DeviceEntry(
        user: entry.user, device: entry.device, name: nil, keys: identity.registration, fingerprint: entry.fingerprint,
        registeredAt: KeyWorld.clock)
      return (identity, join, entry, delivered, directory)
    }

    static func member(_ entry: ListEntry) -> MemberState {
      MemberState(
        user: entry.user, name: nil, state: .joined,
        participants: [
          ParticipantState(
            participant: entry.participant, device: entry.device, joinId: entry.joinId!, connected: true, held: false,
            tracks: [])
        ])
    }

    static func state(_ entries: [ListEntry]) -> CallState {
      CallState(
        id: KeyWorld.call, state: .active, media: .audio, initiator: UserID("user1")!, startedAt: KeyWorld.clock,
        epoch: 2, policy: Policy(), members: entries.map(member), metadata: nil)
    }

    mutating func take(_ input: KeyInput) {
      perform(agreement.handle(input, now: now, using: &generator))
    }

    mutating func perform(_ new: [KeyEffect]) {
      effects += new
      for effect in new {
        switch effect {
        case .install(let keys): cipher.install(keys)
        case .send(let key): cipher.send(key)
        case .retire(let epoch): cipher.retire(epoch)
        default: break
        }
      }
    }

    /// The server's replies to the requests.
    mutating func answer() {
      let asked = effects
      effects = []
      for case .request(let request) in asked {
        switch request {
        case .people(.listDevices): take(.directory(Devices(devices: directory)))
        case .calls(.inCall(_, .keys(let keys))): take(.handedOut(epoch: keys.epoch, taken: true))
        default: break
        }
      }
    }

    /// The announcement of the next epoch, and its list.
    mutating func announce(
      _ mode: RotationMode, adding added: [ListEntry] = [], deliver: [ListEntry]? = nil
    ) throws -> Rotate {
      entries = (entries + added).sorted { $0.address < $1.address }
      epoch += 1
      let previous = listHash
      list = try EpochList(entries, epoch: epoch)
      listHash = list.hash(epoch, of: KeyWorld.call, previous: previous)
      return Rotate(
        epoch: epoch, mode: mode, leader: 1, previous: Base64Bytes(previous), listHash: Base64Bytes(listHash),
        added: added, removed: [], deliver: deliver, admissions: words(for: added))
    }

    /// All tags of the newest epoch, as added up by the server.
    func confirmed() throws -> KeysConfirmed {
      let newest = try #require(agreement.epochs[epoch])
      let key = try #require(newest.confirmationKey(KeyWorld.call))
      let tags = Dictionary(
        uniqueKeysWithValues: entries.map { entry in
          let identity = SenderIdentity(fingerprint: entry.fingerprint.bytes, joinId: entry.joinId!.bytes)
          return (entry.participant, Confirmation.tag(key, entry.participant, identity))
        })
      return KeysConfirmed(epoch: epoch, buckets: KeyWorld.buckets(entries, tags))
    }
  }

  private static func milliseconds(_ body: () throws -> Void) rethrows -> Double {
    let start = ThreadClock.now()
    try body()
    return Double(ThreadClock.now() - start) / 1e6
  }

  /// Others join one after the other, each in a separate epoch.
  @Test(arguments: sizes)
  func anothersJoin(_ count: Int) throws {
    var crowd = try Crowd(count)
    var parts: [String: Double] = [:]
    func measure(_ name: String, _ body: () throws -> Void) rethrows {
      let time = try Self.milliseconds(body)
      parts[name] = min(parts[name] ?? .infinity, time)
    }
    for number in count + 1...count + 5 {
      let person = Crowd.person(number)
      crowd.directory = [person.directory]
      let member = Crowd.member(person.entry)
      let rotation = try crowd.announce(.ratchet, adding: [person.entry])
      measure("member") { crowd.take(.members([member])) }
      measure("announcement") { crowd.take(.rotate(rotation)) }
      measure("directory") { crowd.answer() }
      measure("switch") { crowd.take(.switchKeys(epoch: crowd.epoch)) }
      let confirmed = try crowd.confirmed()
      measure("confirmed") { crowd.take(.confirmed(confirmed)) }
      measure("another event") { crowd.take(.members([member])) }
      crowd.now = crowd.now.advanced(by: .seconds(15))
      measure("timers") { crowd.perform(crowd.agreement.handleTimeout(now: crowd.now)) }
      #expect(crowd.cipher.sendingEpoch == crowd.epoch)
      #expect(crowd.agreement.confirmations.told == .confirmed)
      #expect(crowd.agreement.lettingIn.uninvited.isEmpty)
      // Part of the announcement.
      let word = crowd.words(for: [person.entry])
      measure("(one word)") { #expect(word[0].isGood(in: KeyWorld.call, by: crowd.starter.publicKeys)) }
    }
    report("join of another", count, parts)
  }

  @Test(arguments: sizes)
  func theLeadersPart(_ count: Int) throws {
    var crowd = try Crowd(count)
    var parts: [String: Double] = [:]
    for round in 0..<3 {
      let others = crowd.delivered.filter { $0.participant > 1 }
      let rotation = try crowd.announce(.fresh, deliver: others)
      crowd.effects = []
      let time = Self.milliseconds { crowd.take(.rotate(rotation)) }
      let envelopes = crowd.effects.compactMap {
        if case .request(.calls(.inCall(_, .keys(let keys)))) = $0 { keys.envelopes } else { nil }
      }
      #expect(envelopes.first?.count == count - 1)
      crowd.answer()
      crowd.take(.switchKeys(epoch: crowd.epoch))
      let name = round == 0 ? "first fresh epoch" : "fresh epoch"
      parts[name] = min(parts[name] ?? .infinity, time)
    }
    report("leader", count, parts)
  }

  /// A newcomer reads the whole list and the words for everybody on it.
  @Test(arguments: sizes)
  func aNewcomersFirstList(_ count: Int) throws {
    let crowd = try Crowd(count)
    let newcomer = crowd.delivered[0]
    var parts: [String: Double] = [:]
    for hasWords in [false, true] {
      for _ in 0..<3 {
        let person = Crowd.person(count + 1)
        let entries = (crowd.entries + [person.entry]).sorted { $0.address < $1.address }
        let list = try EpochList(entries, epoch: 3)
        var agreement = KeyAgreement(identity: person.identity, join: person.join, now: crowd.now)
        _ = agreement.enter(
          Joined(call: Crowd.state(entries), participant: person.entry.participant, ice: ICE()), now: crowd.now)
        let rotation = Rotate(
          epoch: 3, mode: .fresh, leader: 1, previous: Base64Bytes(crowd.listHash),
          listHash: Base64Bytes(list.hash(3, of: KeyWorld.call, previous: crowd.listHash)), list: entries,
          admissions: hasWords ? crowd.words(for: entries) : nil)
        var generator = SplitMix64(seed: 15)
        let time = Self.milliseconds {
          _ = agreement.handle(.rotate(rotation), now: crowd.now, using: &generator)
          _ = agreement.handle(.directory(Devices(devices: crowd.directory)), now: crowd.now, using: &generator)
        }
        #expect(
          agreement.lettingIn.origin(of: newcomer)
            == (hasWords ? (newcomer.participant == 1 ? .started : .by(user: "user1")) : nil))
        let name = hasWords ? "with words" : "without"
        parts[name] = min(parts[name] ?? .infinity, time)
      }
    }
    report("a newcomer's first list", count, parts)
  }

  private func report(_ what: String, _ count: Int, _ parts: [String: Double]) {
    guard ProcessInfo.processInfo.environment["CONCLAVE_KEY_COSTS"] != nil else { return }
    let text = parts.sorted { $0.key < $1.key }.map { "\($0.key) \(String(format: "%.2f", $0.value))" }
    let sum = parts.filter { !$0.key.hasPrefix("(") }.values.reduce(0, +)  // in brackets: contained in another part
    print("KEYCOST \(what) of \(count): \(text.joined(separator: ", ")); sum \(String(format: "%.2f", sum)) ms")
  }
}
