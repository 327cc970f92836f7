import Contract
import Foundation
import MediaModel
import NIOCore
import Seeded
import Testing

@testable import ConclaveClient

/// The participants of one process share the parsed form of public bytes, which must equal what each would have parsed
/// itself.
struct PublicWorkTests {
  private static func entry(_ number: Int, stay: UInt8 = 1) -> ListEntry {
    ListEntry(
      user: UserID("user\(number)")!, device: DeviceID("phone")!, participant: ParticipantNumber(number),
      joinId: Base64Bytes((0..<16).map { UInt8(truncatingIfNeeded: number >> (8 * ($0 % 4))) ^ stay }),
      joinKey: JoinKey(
        alg: "x", publicKey: Base64Bytes([1, 2]), at: Timestamp(milliseconds: 1), signature: Base64Bytes([3])),
      fingerprint: Base64Bytes((0..<32).map { UInt8(truncatingIfNeeded: number >> (8 * ($0 % 4))) ^ 0x55 }))
  }

  private static func sorted(_ entries: [ListEntry]) -> [ListEntry] { entries.sorted { $0.address < $1.address } }

  @Test(arguments: 0..<50) func changesMakeTheSameListAsItsWhole(seed: Int) throws {
    var random = SeededGenerator(seed: UInt64(seed))
    let all = (1...40).map { Self.entry($0) }.shuffled(using: &random)
    let before = Self.sorted(Array(all.prefix(20)))
    let removed = before.shuffled(using: &random).prefix(Int.random(in: 0...6, using: &random))
    let added = Self.sorted(Array(all.suffix(Int.random(in: 0...8, using: &random))))
    let list = try EpochList(before, epoch: 2)
    let changed = try list.changed(adding: added, removing: removed.map(\.participant), epoch: 3)
    let whole = try EpochList(
      Self.sorted(before.filter { !removed.contains($0) } + added), epoch: 3)
    #expect(changed.entries == whole.entries)
    #expect(changed.rosterHash == whole.rosterHash)
    #expect(changed.changes(since: list).added == whole.changes(since: list).added)
    #expect(changed.changes(since: list).gone == whole.changes(since: list).gone)
    for entry in whole.entries { #expect(changed[entry.participant] == entry && changed.holds(entry)) }
  }

  /// A device that comes back replaces itself; a second entry of one device, or entries out of order, are refused.
  @Test func onlyInPlaceOfItselfADeviceComesAgain() throws {
    let list = try EpochList((1...3).map { Self.entry($0) }, epoch: 2)
    var back = Self.entry(2, stay: 7)
    back.participant = 9
    let changed = try list.changed(adding: [back], removing: [2], epoch: 3)
    #expect(changed.entries.map(\.participant) == [1, 9, 3])
    #expect(throws: KeyRefusal.malformedList) { try list.changed(adding: [back], removing: [3], epoch: 3) }
    #expect(throws: KeyRefusal.malformedList) {
      try list.changed(adding: [Self.entry(5), Self.entry(4)], removing: [], epoch: 3)
    }
    #expect(throws: KeyRefusal.malformedList) {
      try list.changed(adding: [Self.entry(4), Self.entry(4)], removing: [], epoch: 3)
    }
    #expect(throws: KeyRefusal.malformedList) { try list.changed(adding: [], removing: [4], epoch: 3) }
  }

  @Test func newcomersAndMembersShareOneList() throws {
    let work = PublicWork(capacity: 1_000)
    let before = try EpochList((1...3).map { Self.entry($0) }, epoch: 2)
    let added = [Self.entry(4)]
    let hash: [UInt8] = [1]
    let changed = try work.list(after: before, adding: added, removing: [], epoch: 3, listHash: hash)
    #expect(try work.list(after: before, adding: added, removing: [], epoch: 3, listHash: hash) === changed)
    let whole = (1...4).map { Self.entry($0) }
    #expect(try work.list(whole, epoch: 3, listHash: hash) === changed)
    // The server claims the hash: other entries make another list, whatever the hash says.
    let other = try work.list((1...3).map { Self.entry($0) }, epoch: 3, listHash: hash)
    #expect(other.entries.count == 3)
    let alone = PublicWork(capacity: 0)
    let first = try alone.list(whole, epoch: 3, listHash: hash)
    #expect(try alone.list(whole, epoch: 3, listHash: hash) !== first)
  }

  @Test func aBodyReadInPartsSaysTheSame() throws {
    let members = (1...70).map { number in
      MemberState(
        user: UserID("user\(number)")!, name: "\"Zoë\" {[\(number)]} \\", state: .joined,
        participants: [
          ParticipantState(
            participant: ParticipantNumber(number), device: DeviceID("phone")!, joinId: Base64Bytes([1]),
            connected: true, held: false, tracks: [])
        ])
    }
    let state = CallState(
      id: KeyWorld.call, state: .active, media: .audio, initiator: members[0].user,
      startedAt: Timestamp(milliseconds: 5), epoch: 4, policy: Policy(), members: members, metadata: nil)
    let joined = Joined(call: state, participant: 3, ice: ICE())
    let body = ByteBuffer(bytes: try JSONEncoder().encode(joined))
    let parts = try #require(JSONElements(of: body, at: ["call", "members"]))
    #expect(parts.elements.count == 70)
    for work in [PublicWork(capacity: 0), PublicWork(capacity: 1 << 20)] {
      #expect(try BodyDecoder(work).decode(Joined.self, from: body) == joined)
    }
    let message = EventMessage(at: Timestamp(milliseconds: 6), call: state.id, body: .state(state))
    let event = ByteBuffer(bytes: try JSONEncoder().encode(message))
    #expect(try BodyDecoder(PublicWork(capacity: 1 << 20)).event(.callState, from: event) == message)
  }

  @Test(arguments: [
    #"{"list":[1],"list":[2]}"#, #"{"list":[1],"\u006cist":[2]}"#, #"{"list":[1"#, #"{"list":[1}]"#, #"{"list":{}}"#,
    #"{"other":[1]}"#, #"{"list":[1,]}"#, #"{"list":"["}"#, "[]", "", #"{"list":["a]}"#,
  ])
  func otherTextsAreNotCut(_ text: String) { #expect(JSONElements(of: ByteBuffer(string: text), at: ["list"]) == nil) }

  @Test func elementsAreCutAtTheirEnds() throws {
    let text = #" { "a" : {"list":[9]} , "list" : [ {"x":"]}\"," } ,[1,[2]], 3 , "\\" ] , "b" : 1 } "#
    let parts = try #require(JSONElements(of: ByteBuffer(string: text), at: ["list"]))
    #expect(
      parts.elements.map { String(buffer: $0).trimmingCharacters(in: .whitespaces) } == [
        #"{"x":"]}\"," }"#, "[1,[2]]", "3", #""\\""#,
      ])
    #expect(String(buffer: parts.rest) == #" { "a" : {"list":[9]} , "list" : [] , "b" : 1 } "#)
  }
}
