import ConclaveServer
import MediaModel
import Synchronization
import Testing

@testable import ConclaveClient

/// Calls that outlive connections and servers, and their messages, over real connections.
@Suite(.timeLimit(.minutes(5)))
struct CallLifeTests {
  /// A log of a call's updates, read by a task.
  private final class Diary: Sendable {
    private let updates = Mutex<[CallUpdate]>([])

    init(_ call: JoinedCall) {
      Task { for await update in call.updates { updates.withLock { $0.append(update) } } }
    }

    func has(_ matches: (CallUpdate) -> Bool) -> Bool { updates.withLock { $0.contains(where: matches) } }
    var messages: [[UInt8]] {
      updates.withLock { $0.compactMap { if case .message(_, let body, _) = $0 { body } else { nil } } }
    }
  }

  @Test func aCallSurvivesARestartOfTheServer() async throws {
    let house = try await House()
    let (alice, bob) = try await (house.client("alice"), house.client("bob"))
    let call = try await alice.client.start(callees: ["bob"], media: .audio)
    let bobs = try await bob.client.accept(bob.ring())
    try await expectAgreement([call, bobs])
    let diaries = [Diary(call), Diary(bobs)]
    let numbers = [call.participant, bobs.participant]
    try await house.restart()
    try await eventually { diaries.allSatisfy { $0.has { if case .rejoined = $0 { true } else { false } } } }
    #expect(!numbers.contains(call.participant) && !numbers.contains(bobs.participant))
    try await expectAgreement([call, bobs])
    #expect(try open(seal("still here", by: call), by: bobs) == "still here")
    // No participant is there twice.
    #expect(await call.snapshot?.members.flatMap(\.participants).count == 2)
    await house.close()
  }

  @Test func anAcceptingDeviceHasAKeyAtOnce() async throws {
    let house = try await House()
    let (alice, bob) = try await (house.client("alice"), house.client("bob"))
    let call = try await alice.client.start(callees: ["bob"], media: .audio)
    let bobs = try await bob.client.accept(bob.ring())
    #expect(bobs.cipher.sendingEpoch == 1)
    let frame = try seal("at once", by: bobs)
    try await eventually { (try? open(frame, by: call)) == "at once" }
    await house.close()
  }

  /// The event that a participant has left may arrive before the reply to its own `leave`.
  @Test func aLeavingUserIsNotToldThatTheCallIsOver() async throws {
    let house = try await House()
    let (alice, bob) = try await (house.client("alice"), house.client("bob"))
    let call = try await alice.client.start(callees: ["bob", "carol"], media: .audio)
    var bobs = try await bob.client.accept(bob.ring())
    for _ in 0..<20 {
      let updates = bobs.updates
      try await bobs.leave()
      for await update in updates {
        if case .ended(let reason) = update { Issue.record("told that the call is over: \(reason)") }
      }
      bobs = try await bob.client.rejoin(call.id)
    }
    await house.close()
  }

  @Test func messagesAreReadByTheOthersOnce() async throws {
    let house = try await House()
    let (alice, bob) = try await (house.client("alice"), house.client("bob"))
    let call = try await alice.client.start(callees: ["bob"], media: .audio)
    let bobs = try await bob.client.accept(bob.ring())
    let diary = Diary(bobs)
    try await expectAgreement([call, bobs])
    try await call.send(Array("hello".utf8))
    try await call.send(Array("again".utf8), to: [bobs.participant])
    try await eventually { diary.messages.count == 2 }
    #expect(diary.has { $0 == .message(from: call.participant, body: Array("again".utf8), isPrivate: true) })
    #expect(diary.messages == [Array("hello".utf8), Array("again".utf8)])
    #expect(diary.has { $0 == .message(from: call.participant, body: Array("hello".utf8), isPrivate: false) })
    await house.close()
  }

  @Test func aLinkLetsAStrangerIn() async throws {
    let house = try await House()
    let (alice, bob, carol) = try await (house.client("alice"), house.client("bob"), house.client("carol"))
    let call = try await alice.client.start(callees: ["bob"], media: .audio)
    let bobs = try await bob.client.accept(bob.ring())
    let link = try await call.makeLink()
    let carols = try await carol.client.join(call.id, link: link.link, secret: link.secret)
    try await expectAgreement([call, bobs, carols])
    #expect(await call.snapshot?.members.filter(\.isByLink).map(\.user) == ["carol"])
    await #expect(throws: SignalingError.self, "only guests can be removed") { try await call.removeGuest("carol") }
    await #expect(throws: SignalingError.self) { try await call.removeGuest("two words") }
    try await call.revokeLinks()
    let dave = try await house.client("dave")
    await #expect(throws: SignalingError.self) {
      _ = try await dave.client.join(call.id, link: link.link, secret: link.secret)
    }
    try await call.hold(true)
    try await eventually { await bobs.snapshot?.members.flatMap(\.participants).filter(\.isHeld).count == 1 }
    await house.close()
  }

  private static let notAdmitted = "call.not-admitted"

  @Test func aGuestWaitsUntilAMemberAdmitsIt() async throws {
    let house = try await House()
    let (alice, bob) = try await (house.client("alice"), house.client("bob"))
    let call = try await alice.client.start(callees: ["bob"], media: .audio)
    let bobs = try await bob.client.accept(bob.ring())
    let (diary, other) = (Diary(bobs), Diary(call))
    let link = try await call.makeLink(guestsWait: true)
    let ana = try await house.guest("guest~ana", of: call.id)
    async let joining = ana.client.join(call.id, link: link.link, secret: link.secret)
    func isShown(_ users: [String], in diary: Diary) -> Bool {
      diary.has { if case .guestsWaiting(let guests) = $0 { guests.map(\.user) == users } else { false } }
    }
    try await eventually { isShown(["guest~ana"], in: diary) && isShown(["guest~ana"], in: other) }
    try await bobs.admit("guest~ana")
    let anas = try await joining
    try await expectAgreement([call, bobs, anas])
    for member in [call, bobs, anas] {
      try await eventually {
        await member.snapshot?.devices.first { $0.user == "guest~ana" }?.letIn == .by(user: "bob")
      }
    }
    #expect(isShown([], in: diary) && isShown([], in: other), "the guest is at the door no more")
    await #expect(throws: SignalingError.self, "nobody waits") { try await call.admit("guest~ana") }
    await #expect(throws: SignalingError.self) { try await call.refuse("guest~ana") }
    await house.close()
  }

  @Test func aGuestWhoIsRefusedOrStopsWaitingDoesNotJoin() async throws {
    let house = try await House()
    let alice = try await house.client("alice")
    let call = try await alice.client.start(callees: [], media: .audio)
    let diary = Diary(call)
    let link = try await call.makeLink(guestsWait: true)
    func waits(_ user: String) async throws -> Task<String, Never> {
      let guest = try await house.guest(user, of: call.id)
      let task = Task {
        do {
          _ = try await guest.client.join(call.id, link: link.link, secret: link.secret)
          return "joined"
        } catch SignalingError.refused(let code, _) {
          return code
        } catch {
          return "\(error)"
        }
      }
      try await eventually {
        diary.has { if case .guestsWaiting(let guests) = $0 { guests.map(\.user) == [user] } else { false } }
      }
      return task
    }
    let ana = try await waits("guest~ana")
    try await call.refuse("guest~ana")
    #expect(await ana.value == Self.notAdmitted)
    let ben = try await waits("guest~ben")
    ben.cancel()
    #expect(await ben.value == Self.notAdmitted)
    // The server was told: only the next one waits.
    let cy = try await waits("guest~cy")
    cy.cancel()
    #expect(await cy.value == Self.notAdmitted)
    #expect(await call.snapshot?.members.map(\.user) == ["alice"])
    await house.close()
  }

  @Test func presenceAndHistoryAreThere() async throws {
    let house = try await House()
    let (alice, bob) = try await (house.client("alice"), house.client("bob"))
    let call = try await alice.client.start(callees: ["bob"], media: .audio)
    let bobs = try await bob.client.accept(bob.ring())
    #expect(try await alice.client.watch(["bob"]).map(\.state) == [.inCall])
    try await call.end()
    for await _ in bobs.updates {}
    try await eventually { try await alice.client.history().map(\.outcome) == ["answered"] }
    #expect(try await alice.client.historyTotals(with: "bob").calls == 1)
    try await alice.client.deleteHistory()
    #expect(try await alice.client.history().isEmpty)
    #expect(try await alice.client.devices(of: ["bob"]).map(\.fingerprint) == [bob.identity.fingerprint])
    await house.close()
  }
}
