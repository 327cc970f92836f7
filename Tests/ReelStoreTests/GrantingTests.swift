import CallMessages
import Contract
import MediaModel
import Recording
import Testing

@testable import ReelStore

/// The users who may open a recording, and what the store makes sure of.
@Suite(.timeLimit(.minutes(5))) struct GrantingTests {
  private let place: TestPlace

  init() throws { place = try TestPlace() }

  private func grant(
    _ number: UInt8, to user: String, _ device: String = "phone", by author: Device = alice, alg: String = "X"
  ) -> RecordingGrant {
    let nothing = Base64Bytes([])
    return RecordingGrant(
      recording: id(number), to: .init(user: UserID(unchecked: user), device: DeviceID(unchecked: device)),
      from: author, key: nothing, alg: alg, ciphertext: nothing, at: start, sigAlg: "ES256", signature: nothing)
  }

  private func granting(
    _ grants: [RecordingGrant], by author: Device = alice, alerts: [String] = [], leavesOut: Bool = false
  ) -> Granting {
    var granting = Granting(grants: grants, author: author.user, expiresAt: start + .seconds(5_000), at: start)
    granting.alerts = alerts.map(UserID.init(unchecked:))
    granting.leavesOut = leavesOut
    return granting
  }

  private func draft(_ number: UInt8) -> StoredRecording {
    var draft = recording(number, expiresIn: 100)
    draft.isDraft = true
    return draft
  }

  @Test func aDraftIsKeptFromItsFirstGrantOn() async throws {
    let (store, _) = try await place.open()
    try await store.begin(draft(1), granting([]))
    try await store.begin(draft(2), granting([grant(2, to: "alice")]))
    #expect(store.statistics.drafts == 1 && store.statistics.recordings == 2)
    #expect(try await store.ask { storage throws(StoreError) in try storage.recording(id(2)) }?.isDraft == false)
    _ = try await store.grant(granting([grant(1, to: "bob")]), of: id(1))
    #expect(store.statistics.drafts == 0)
    #expect(try await store.recording(id(1))?.expiresAt == start + .seconds(5_000))
    _ = try await store.expire(now: start + .seconds(100))
    #expect(store.statistics.recordings == 2)
    // A start knows it.
    #expect(try await place.open().store.statistics.drafts == 0)
  }

  @Test func draftsOfAUserAreBounded() async throws {
    var limits = RecordingLedger.Limits()
    limits.draftsOfUser = 1
    let (store, _) = try await place.open(limits)
    try await store.begin(draft(1), granting([]))
    await #expect(throws: RecordingRefusal.drafts) { try await store.begin(draft(2), granting([])) }
    // A recording that somebody can open is no draft.
    try await store.begin(draft(2), granting([grant(2, to: "alice")]))
    try await store.begin(draft(1), granting([]))
    #expect(store.statistics.counts.refusals == [.drafts: 1])
    _ = try await store.delete(id(1))
    try await store.begin(draft(3), granting([]))
  }

  @Test func onlyWhatIsNewIsTold() async throws {
    let (store, _) = try await place.open()
    let first = try await store.begin(draft(1), granting([grant(1, to: "alice"), grant(1, to: "bob")]))
    #expect(first.grants.count == 2 && first.newcomers == [UserID(unchecked: "bob")])
    let again = try await store.begin(draft(1), granting([grant(1, to: "alice"), grant(1, to: "bob")]))
    #expect(again == NewGrants())
    let further = try await store.grant(granting([grant(1, to: "bob", "laptop")]), of: id(1))
    #expect(further.grants.map(\.to.device) == [DeviceID(unchecked: "laptop")] && further.newcomers.isEmpty)
    let other = try await store.grant(granting([grant(1, to: "bob", alg: "Y")]), of: id(1))
    #expect(other.grants.map(\.alg) == ["Y"], "it replaces the former one")
    await #expect(throws: RecordingRefusal.notFound) { _ = try await store.grant(granting([]), of: id(2)) }
  }

  @Test func grantsAndReadersOfARecordingAreBoundedOverAllRequests() async throws {
    let (store, _) = try await place.open()
    try await store.begin(draft(1), granting((0..<32).map { grant(1, to: "bob", "d\($0)") }))
    await #expect(throws: RecordingRefusal.grants) {
      _ = try await store.grant(granting([grant(1, to: "bob", "d32")]), of: id(1))
    }
    _ = try await store.grant(granting([grant(1, to: "bob", "d31", alg: "Y")]), of: id(1))
    _ = try await store.grant(granting((0..<63).map { grant(1, to: "u\($0)") }), of: id(1))
    await #expect(throws: RecordingRefusal.grants) {
      _ = try await store.grant(granting([grant(1, to: "u63")]), of: id(1))
    }
    #expect(try await store.ask { storage throws(StoreError) in try storage.readers(of: id(1)) }.count == 64)
  }

  @Test func aSenderWaitsUntilSomeRecordingsWereOpened() async throws {
    let (store, _) = try await place.open()
    for number: UInt8 in 1...11 { try await store.begin(draft(number), granting([grant(number, to: "alice")])) }
    for number: UInt8 in 1...10 { _ = try await store.grant(granting([grant(number, to: "bob")]), of: id(number)) }
    let wanted = [grant(11, to: "bob"), grant(11, to: "carol")]
    await #expect(throws: RecordingRefusal.unopened) { _ = try await store.grant(granting(wanted), of: id(11)) }
    #expect(try await store.ask { storage throws(StoreError) in try storage.readers(of: id(11)) }.count == 1)
    let granted = try await store.grant(granting(wanted, leavesOut: true), of: id(11))
    #expect(granted.leftOut == [UserID(unchecked: "bob")] && granted.newcomers == [UserID(unchecked: "carol")])
    // Somebody who needs help waits for nothing, and a reader gets further grants.
    let alert = try await store.grant(granting([grant(11, to: "bob")], alerts: ["bob"]), of: id(11))
    #expect(alert.newcomers == [UserID(unchecked: "bob")])
    _ = try await store.grant(granting([grant(3, to: "bob", "laptop")]), of: id(3))
    // A reader who is in the call cannot open its recording yet.
    var ofCall = recording(13)
    (ofCall.kind, ofCall.reels) = (.call, [])
    let recorded = try await store.begin(ofCall, granting([grant(13, to: "bob")]))
    #expect(recorded.newcomers == [UserID(unchecked: "bob")])
    try await store.note([
      .reader(id(1), UserID(unchecked: "bob"), .opened), .reader(id(2), UserID(unchecked: "bob"), .opened),
    ])
    try await store.begin(draft(12), granting([grant(12, to: "bob")]))
  }

  @Test func aUserIsAlertedOnceOfARecording() async throws {
    let (store, _) = try await place.open()
    let first = try await store.begin(draft(1), granting([grant(1, to: "bob")], alerts: ["bob", "carol"]))
    #expect(first.alerted.map(\.text) == ["bob", "carol"])
    let again = try await store.begin(draft(1), granting([grant(1, to: "bob")], alerts: ["bob", "carol", "dave"]))
    #expect(again.alerted.map(\.text) == ["dave"] && again.grants.isEmpty)
    let waiting = try await store.ask { storage throws(StoreError) in try storage.alerts() }
    #expect(waiting.map(\.user.text) == ["bob", "carol", "dave"])
  }

  @Test func anIDBelongsToOneStatement() async throws {
    let (store, _) = try await place.open()
    let nothing = Base64Bytes([])
    func statement(_ media: [RecordedMedium]) -> RecordingStatement {
      RecordingStatement(
        id: id(1), kind: .own, publicKey: nothing, media: media, readers: [], at: start, by: alice, sigAlg: "ES256",
        signature: nothing)
    }
    func record(_ statement: RecordingStatement) -> RecordingFact {
      let author = RecordedPerson(
        participant: 1, user: alice.user, device: alice.device, name: nil, fingerprint: nothing, keys: [])
      let key = ReelKey(ciphertext: nothing, sigAlg: "ES256", signature: nothing)
      return .described(id(1), RecordingRecord(statement: statement, author: author, reelKey: key, ticket: nothing))
    }
    let (one, other) = (statement([.audio]), statement([.video]))
    // Both are on their way at once: the second finds the first.
    try await store.begin(draft(1), as: one, with: [record(one)])
    await #expect(throws: RecordingRefusal.taken) { try await store.begin(draft(1), as: other, with: [record(other)]) }
    try await store.begin(draft(1), as: one, with: [record(one)])
    #expect(try await store.ask { storage throws(StoreError) in try storage.record(of: id(1)) }?.statement == one)
  }

  @Test func aRecordingKnowsForHowLongNothingCame() async throws {
    let clock = TestClock()
    let (store, _) = try await place.open(clock: clock)
    try await store.begin(recording(1))
    clock.advance(by: .seconds(40))
    #expect(store.silence(of: id(1)) == .seconds(40) && store.silence(of: id(2)) == nil)
    var maker = SegmentMaker(id(1))
    _ = try await store.put(maker.next(), into: id(1))
    clock.advance(by: .seconds(7))
    _ = try await store.expire(now: start)
    #expect(store.silence(of: id(1)) == .seconds(7))
    // A start has heard nothing before.
    let (again, _) = try await place.open(clock: clock)
    clock.advance(by: .seconds(3))
    #expect(again.silence(of: id(1)) == .seconds(3))
    try await again.finish(id(1), heads: [1: maker.head])
    #expect(again.silence(of: id(1)) == nil)
  }
}
