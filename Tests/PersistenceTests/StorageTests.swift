import CallMessages
import Calls
import Contract
import MediaModel
import StoreWriting
import Testing

/// The contract of `Storage` for the server's state. `HistoryTests` and `ReportTests` test the rest of it.
struct StorageTests {
  @Test(arguments: StoreKind.allCases) func startsAreCounted(kind: StoreKind) throws {
    let test = try TestStore()
    for start in 0..<3 { #expect(try test.open(kind).load(now: TestStore.now).boots == UInt32(start)) }
  }

  @Test(arguments: StoreKind.allCases, 1...20 as ClosedRange<UInt64>) func theStateOfTheServerIsOnTheDisk(
    kind: StoreKind, seed: UInt64
  ) throws {
    let test = try TestStore()
    let store = try test.open(kind)
    var world = SmallWorld(seed: seed)
    for _ in 0..<60 { try store.write(world.step()) }
    let again = Node(
      configuration: CallConfiguration(), hashing: SmallWorld.hashing, random: { 1 },
      restoring: try test.open(kind).load(now: world.now), now: world.now)
    #expect(state(again) == state(world.node), "seed \(seed)")
    // A full rewrite results in the same state as all changes.
    try store.write(world.node.everything)
    let rewritten = Node(
      configuration: CallConfiguration(), hashing: SmallWorld.hashing, random: { 1 },
      restoring: try store.load(now: world.now), now: world.now)
    #expect(state(rewritten) == state(world.node), "seed \(seed)")
  }

  private func state(_ node: Node) -> Set<StoreChange> {
    Set(node.everything).filter { if case .history = $0 { false } else { true } }
  }

  @Test(arguments: StoreKind.allCases) func theRunningTimeIsStored(kind: StoreKind) throws {
    let test = try TestStore()
    let store = try test.open(kind)
    #expect(try store.load(now: TestStore.now).ranUntil == nil)
    try store.write([.running(second(7))])
    #expect(try store.load(now: TestStore.now).ranUntil == second(7))
  }

  @Test(arguments: StoreKind.allCases) func lastingLinksAreKeptUntilTheyEnd(kind: StoreKind) throws {
    func link(_ text: String, of user: UserID, at time: Int) -> StoredLastingLink {
      StoredLastingLink(
        id: LinkID(unchecked: text + String(repeating: "A", count: 21)),
        device: Device(user: user, device: DeviceID(unchecked: "phone")),
        fingerprint: Base64Bytes([1, 2]), madeAt: second(time), expiresAt: second(time + 3_600))
    }
    let test = try TestStore()
    let store = try test.open(kind)
    let links = [link("z", of: alice, at: 1), link("a", of: bob, at: 2), link("m", of: alice, at: 3)]
    try store.write(links.map(StoreChange.lastingLink))
    #expect(try test.open(kind).load(now: TestStore.now).links == links, "in the order in which they were made")
    var opened = links[0]
    opened.opening = StoredLastingLink.Opening(call: CallID(unchecked: "c"), token: "t")
    try store.write([.lastingLink(opened), .lastingLinkGone(links[1].id), .lastingLinkGone(LinkID(unchecked: "none"))])
    #expect(try store.load(now: TestStore.now).links == [opened, links[2]])
    try store.forget(alice)
    #expect(try store.load(now: TestStore.now).links.isEmpty)
    try store.write([.lastingLink(links[1]), .reset])
    #expect(try store.load(now: TestStore.now).links.isEmpty)
  }

  // MARK: lists of epochs

  @Test(arguments: StoreKind.allCases) func aListIsStoredEntryByEntry(kind: StoreKind) throws {
    let test = try TestStore()
    let store = try test.open(kind)
    let (call, other) = (runningCall("c1"), runningCall("c2"))
    let key = JoinKey(alg: "x", publicKey: Base64Bytes([2]), generation: 1, at: second(1), signature: Base64Bytes([3]))
    func epoch(_ number: UInt32, ringing: [ListEntry] = []) -> StoredEpoch {
      StoredEpoch(number: number, mode: .fresh, previous: Base64Bytes([1]), ringing: ringing)
    }
    try store.write([
      .call(call), .progress(call.id, progress(epoch: 1)), .epoch(call.id, epoch(1, ringing: [entry(bob, 0)])),
      .entry(call.id, entry(carol, 10)), .entry(call.id, entry(alice, 9)),
      .call(other), .progress(other.id, progress(epoch: 1)), .epoch(other.id, epoch(1)),
      .entry(other.id, entry(bob, 9)),
    ])
    var calls = try store.load(now: second(1)).calls
    #expect(calls.map(\.entries) == [[entry(alice, 9), entry(carol, 10)], [entry(bob, 9)]], "in the order of numbers")
    #expect(calls.first?.epoch.ringing == [entry(bob, 0)])
    for _ in 0..<2 {
      try store.write([
        .epoch(call.id, epoch(2)), .entry(call.id, entry(alice, 9, refresh: key)), .entry(call.id, entry(bob, 11)),
        .entryGone(call.id, 10),
      ])
    }
    calls = try store.load(now: second(1)).calls
    #expect(calls.map(\.entries) == [[entry(alice, 9, refresh: key), entry(bob, 11)], [entry(bob, 9)]])
    #expect(calls.first?.epoch == epoch(2))
    // They go with their calls.
    try store.write([.reset, .call(call), .progress(call.id, progress(epoch: 3)), .epoch(call.id, epoch(3))])
    #expect(try store.load(now: second(1)).calls.map(\.entries) == [[]])
  }

  // MARK: forgotten users

  @Test(arguments: StoreKind.allCases) func aServerLearnsOfWhatAnotherProcessForgot(kind: StoreKind) throws {
    let test = try TestStore()
    let store = try test.open(kind)
    #expect(try store.takeForgotten().isEmpty)
    try test.open(kind).forget(alice)
    #expect(try store.takeForgotten() == [alice])
    // A server that starts later learns of it, too.
    #expect(try test.open(kind).takeForgotten() == [alice])
    try store.write([.forgotten(alice)])
    #expect(try test.open(kind).takeForgotten().isEmpty)
  }

  /// A batch may write of a user before it forgets the user: that goes, too.
  @Test(arguments: StoreKind.allCases) func aCallThatEndedInTheSameBatchNamesAForgottenUserNoMore(
    kind: StoreKind
  ) throws {
    let test = try TestStore()
    let store = try test.open(kind)
    let call = CallID(unchecked: "1")
    let end = StoredEnd(
      call: call, endedAt: second(5), end: Ended(reason: .endedByInitiator, by: alice, seconds: 5),
      users: [alice, bob],
      starter: Device(user: alice, device: DeviceID(unchecked: "phone")), joinId: Base64Bytes([1]), reply: nil)
    let device = Device(user: bob, device: DeviceID(unchecked: "tablet"))
    try store.write([
      .running(second(5)), .ended(end), .forgotten(alice),
      .mailbox(device, StoredMailbox(envelopes: [], rung: [call])),
    ])
    let stored = try store.load(now: second(6))
    #expect(stored.ended.map(\.users) == [[bob]])
    #expect(stored.ended.first?.end.by == nil && stored.ended.first?.starter == nil)
    #expect(stored.mailboxes[device]?.rung == [call], "what comes after it is written")
  }

  // MARK: the fencing token

  @Test(arguments: StoreKind.allCases) func aLaterStartHasALargerToken(kind: StoreKind) throws {
    let test = try TestStore()
    let tokens = try (0..<3).map { _ in try test.open(kind).load(now: TestStore.now).token }
    #expect(tokens[0] < tokens[1] && tokens[1] < tokens[2])
  }

  /// A replaced server overwrites nothing, and the new one continues.
  @Test(arguments: StoreKind.allCases) func aBatchOfAnEarlierStartIsRefusedWhole(kind: StoreKind) throws {
    let test = try TestStore()
    let (old, new) = (try test.open(kind), try test.open(kind))
    let oldToken = try old.load(now: TestStore.now).token
    try old.write([.running(second(1))], as: oldToken)
    let newToken = try new.load(now: TestStore.now).token
    try new.write([.running(second(2))], as: newToken)
    let batch = [.reset, .running(second(3))] + facts("1", [(alice, 0, 1)], ended: 1)
    let error = #expect(throws: StoreError.self) { try old.write(batch, as: oldToken) }
    #expect(error?.kind == .fenced)
    // It depends on the token, not on the connection.
    let same = #expect(throws: StoreError.self) { try new.write(batch, as: oldToken) }
    #expect(same?.kind == .fenced)
    #expect(try new.list(of: alice, before: second(9), limit: 9, rejoinable: [], now: second(9)).calls.isEmpty)
    try new.write([.running(second(4))], as: newToken)
    #expect(try new.load(now: TestStore.now).ranUntil == second(4))
  }
}
