import CallMessages
import Contract
import MediaModel
import Testing

@testable import ConclaveServer

/// The order in which effects are sent, tested without a disk.
struct PendingEffectsTests {
  private var pending = PendingEffects()

  private func reply(_ session: UInt64, _ id: String) -> CallMessages.Effect {
    .client(.reply(SessionID(rawValue: session), id: id, .ok(.nothing)))
  }

  private func words(_ effects: [CallMessages.Effect]) -> [String] {
    effects.map { effect in
      switch effect {
      case .client(.reply(_, let id, _)): id
      case .media(.remove(let peer)): "remove \(peer.rawValue)"
      default: "other"
      }
    }
  }

  private mutating func release(through number: UInt64, limit: Int = 100) -> [String] {
    words(pending.release(through: number, limit: limit))
  }

  @Test mutating func effectsWaitForTheirOwnChangesAndForAllBefore() {
    pending.append([reply(1, "a1")], behind: 1)
    pending.append([reply(2, "b1")], behind: 1)
    pending.append([reply(1, "a2"), .media(.remove(PeerID(rawValue: 7)))], behind: 2)
    #expect(release(through: 0).isEmpty && pending.count == 4)
    #expect(release(through: 1) == ["a1", "b1"], "b1 changed nothing, and may tell of what a1 changed")
    #expect(release(through: 1).isEmpty && !pending.isEmpty)
    #expect(release(through: 5) == ["a2", "remove 7"])
    #expect(pending.isEmpty && pending.count == 0)
  }

  @Test mutating func mediaEventsPassAllButTheirOwnSessionsEarlierEffects() {
    let remove = CallMessages.Effect.media(.remove(PeerID(rawValue: 7)))
    #expect(words(pending.releasable([reply(1, "a0"), remove], behind: 0)) == ["a0", "remove 7"], "nothing waits")
    pending.append([reply(1, "a1"), reply(1, "a2"), reply(2, "b1")], behind: 1)
    let passing = pending.releasable([reply(1, "a3"), reply(3, "c1"), remove], behind: 1)
    #expect(words(passing) == ["c1"], "a command for a worker has no session, and keeps its place")
    #expect(words(pending.releasable([reply(1, "a4")], behind: 1)).isEmpty)
    #expect(release(through: 1) == ["a1", "a2", "b1", "a3", "remove 7", "a4"])
    #expect(words(pending.releasable([reply(1, "a5"), remove], behind: 1)) == ["a5", "remove 7"])
  }

  @Test mutating func aLongBacklogGoesOutInPiecesOfWholeCommands() {
    for number in UInt64(1)...4 {
      pending.append([reply(number, "\(number)a"), reply(number, "\(number)b")], behind: number)
    }
    #expect(release(through: 4, limit: 3) == ["1a", "1b", "2a", "2b"])
    #expect(words(pending.releasable([reply(1, "x"), reply(3, "y")], behind: 4)) == ["x"], "1 has all that waited")
    #expect(release(through: 4, limit: 3) == ["3a", "3b", "4a", "4b"])
    #expect(release(through: 4, limit: 3) == ["y"])
  }

  private func state(members: Int) -> CallState {
    let alice = UserID("alice")!
    return CallState(
      id: CallID("7d1f0d6c-5a3e-4c0b-9b0e-2f64c1a8e3d5")!, state: .active, media: .audio, initiator: alice,
      startedAt: Timestamp(milliseconds: 1), epoch: 1, policy: Policy(),
      members: Array(repeating: MemberState(user: alice, name: nil, state: .joined, participants: []), count: members),
      metadata: nil)
  }

  /// Each reply to a join of a call of 1,000 has the whole state of half a megabyte, so far fewer than 100,000 may
  /// wait.
  @Test mutating func repliesWithTheStateOfALargeCallAreBoundedByTheirBytes() {
    let joined = Joined(call: state(members: 1_000), participant: 1, ice: ICE())
    var replies = 0
    while !pending.isFull, replies < 1_000 {
      pending.append([.client(.reply(SessionID(rawValue: UInt64(replies)), id: "1", .ok(.joined(joined))))], behind: 1)
      replies += 1
    }
    #expect(pending.isFull && (50...200).contains(replies), "full after \(replies)")
    _ = release(through: 1, limit: 1)
    #expect(!pending.isFull, "there is room again")
    while !release(through: 1).isEmpty {}
    #expect(pending.isEmpty && pending.bytes == 0)
  }

  @Test mutating func oneEventForManyDevicesCountsItsBodyOnce() {
    let message = EventMessage(at: Timestamp(milliseconds: 5), call: nil, body: .state(state(members: 1_000)))
    func events(of id: (UInt64) -> UInt64) -> [CallMessages.Effect] {
      (1...1_000).map { number in
        .client(
          .event(
            SessionID(rawValue: number),
            EventDelivery(seq: 1, redelivered: false, messageID: id(number), message: message)))
      }
    }
    pending.append(events { _ in 7 }, behind: 1)
    let shared = pending.bytes
    #expect(shared < 2 << 20 && !pending.isFull)
    pending.append(events { $0 }, behind: 1)
    #expect(pending.bytes - shared > 100 << 20 && pending.isFull, "no two have the same body")
  }

  @Test mutating func smallEffectsAreBoundedByTheirNumber() {
    for number in 0..<PendingEffects.maximumCount {
      #expect(!pending.isFull)
      pending.append([.media(.remove(PeerID(rawValue: UInt64(number))))], behind: 1)
    }
    #expect(pending.isFull && pending.bytes < PendingEffects.maximumBytes)
  }
}
