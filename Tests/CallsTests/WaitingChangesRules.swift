@testable import Calls
@testable import CallMachine
import Contract
import MediaModel
import Seeded
import Simulation
import Testing

import CallMessages

/// In a large call, changes of members are sent together (protocol section 3).
struct WaitingChangesRules {
  /// A call just large enough for that, whose members know each other.
  private struct Large {
    let stage: Stage
    let call: CallID
    var clients: [Client]
    let link: String

    init(_ count: Int = 4, crowd: Int = 4) throws {
      stage = Stage { $0.limits.crowd = crowd }
      clients = [stage.connect("u0")]
      call = try clients[0].call([], join: 1) { $0.aloneSeconds = 3_600 }
      link = try (clients[0].get(.call(call, .link(MakeLink(expiresIn: 3_600)))) as CallLink).link
      for number in 1..<count { try join("u\(number)") }
      rest()
    }

    @discardableResult
    mutating func join(_ name: String) throws -> Client {
      let client = stage.connect(name)
      clients.append(client)
      let _: Joined = try client.get(.call(call, .join(client.join(link: link))))
      return client
    }

    func rest() {
      stage.advance(.seconds(20))
      for client in clients { _ = client.events() }
    }
  }

  @Test func changesThatWaitTogetherAreOneEventInTheirOrder() throws {
    var large = try Large()
    let old = large.clients
    let new = try ["a", "b", "c"].map { try large.join($0) }
    #expect(old.allSatisfy { $0.events().changes.isEmpty })
    large.stage.advance(.milliseconds(100))
    for client in old {
      let events = client.events()
      #expect(events.prefix(1).map(\.name) == [.callMembers])
      #expect(events.changes.map(\.member.user.text) == ["a", "b", "c"])
      #expect(events.changes.allSatisfy { $0.cause == .joined })
    }
    // Each is told of itself and of those after it: the others are in the state that it got.
    #expect(new.map { $0.events().changes.map(\.member.user.text) } == [["a", "b", "c"], ["b", "c"], ["c"]])
    try large.join("d")
    large.stage.advance(.milliseconds(100))
    #expect(old.allSatisfy { $0.names().first == .callMember }, "a single change has its usual form")
  }

  @Test func changesOfASmallCallDoNotWait() throws {
    var large = try Large(3, crowd: 5)
    try large.join("a")
    #expect(large.clients[0].events().causes == [.joined])
  }

  @Test func theWaitGrowsWithTheCall() {
    #expect(WaitingChanges.time(participants: 64) == .milliseconds(100))
    #expect(WaitingChanges.time(participants: 300) == .milliseconds(300))
    #expect(WaitingChanges.time(participants: 1_000) == .seconds(1))
    #expect(WaitingChanges.time(participants: 5_000) == .seconds(1))
  }

  @Test func atMost64Wait() throws {
    var large = try Large()
    for number in 0..<64 { try large.join("n\(number)") }
    #expect(large.clients[0].events().changes.count == 64)
  }

  @Test func aLeavingUserHearsOfItAtOnceAndOfNothingBehindIt() throws {
    var large = try Large(6)
    try large.join("a")
    let leaver = large.clients[2]
    #expect(leaver.code(.call(large.call, .leave)) == nil)
    #expect(leaver.events().changes.map(\.cause) == [.joined, .left])
    try large.join("b")
    large.stage.advance(.seconds(1))
    #expect(leaver.events().changes.isEmpty)
    #expect(large.clients[0].events().changes.map(\.cause) == [.joined, .left, .joined])
  }

  @Test func theStateComesBehindTheChangesThatItHas() throws {
    var large = try Large()
    try large.join("a")
    let asker = large.clients[1]
    let state = try asker.state(large.call)
    #expect(asker.events().changes.map(\.member.user.text) == ["a"])
    #expect(state.members.count == 5)
    large.stage.advance(.seconds(1))
    #expect(asker.events().changes.isEmpty, "it was told already")
    #expect(large.clients[2].events().changes.map(\.member.user.text) == ["a"])
  }

  @Test func theTopicHasEachChangeOnce() throws {
    var large = try Large(6)
    #expect(large.clients[0].subscribe(.call(large.call)) == nil)
    _ = large.stage.takeOthers()
    try large.join("a")
    #expect(large.clients[2].code(.call(large.call, .leave)) == nil)
    _ = try large.clients[1].state(large.call)
    large.stage.advance(.seconds(1))
    #expect(large.clients[0].published(.call(large.call)).changes.map(\.cause) == [.joined, .left])
  }

  @Test func theEndComesLast() throws {
    var large = try Large()
    try large.join("a")
    #expect(large.clients[0].code(.call(large.call, .end)) == nil)
    for client in large.clients { #expect(client.names().suffix(2) == [.callMember, .callEnded]) }
    #expect(large.stage.node.control.timers.count == 0)
  }

  /// The oracle is the same server in the same minute of a call that is not large: only the times of events may differ.
  @Test(arguments: UInt64(1)...40) func everyDeviceHearsWhatItWouldHaveHeardWithoutWaiting(seed: UInt64) throws {
    let waiting = try Rehearsal(crowd: 3, seed)
    let prompt = try Rehearsal(crowd: .max, seed)
    #expect(prompt.eventCount > 100 && waiting.mergedCount > 10, "something happened")
    #expect(prompt.mergedCount == 0)
    for (user, heard) in prompt.heard {
      let late = waiting.heard[user] ?? []
      #expect(late == heard, "\(user) of seed \(seed)")
    }
  }
}

/// A random minute of a call.
private struct Rehearsal {
  /// The changes of members by user, the events that must not overtake them, and the replies of `state`, in order.
  private(set) var heard: [String: [EventBody]] = [:]
  private(set) var eventCount = 0
  private(set) var mergedCount = 0

  private let stage: Stage
  private var clients: [Client]
  private let call: CallID
  private var random: SeededGenerator

  init(crowd: Int, _ seed: UInt64) throws {
    random = SeededGenerator(seed: seed)
    stage = Stage { $0.limits.crowd = crowd }
    clients = []
    for number in 0..<9 { clients.append(stage.connect("u\(number)")) }
    call = try clients[0].call(["u1", "u2", "u3"], join: 1) { $0.aloneSeconds = 3_600 }
    let link = try (clients[0].get(.call(call, .link(MakeLink(expiresIn: 3_600)))) as CallLink).link
    for client in clients[1...4] { _ = client.ask(.call(call, .join(client.join(link: link)))) }
    for _ in 0..<150 {
      act(clients[random.below(clients.count)], link)
      stage.advance(.milliseconds(random.below(4) * 20))
    }
    stage.advance(.seconds(5))
    listen()
  }

  private mutating func act(_ client: Client, _ link: String) {
    let other = clients[random.below(clients.count)]
    let kind = random.below(12)
    switch kind {
    case 0, 1: _ = client.ask(.call(call, .join(client.join(link: link))))
    case 2: if client.device != clients[0].device { _ = client.ask(.call(call, .leave)) }
    case 3: _ = client.ask(.call(call, .rejoin(client.join())))
    case 4: _ = client.ask(.call(call, .invite(Invite(callees: [other.user]))))
    case 5: _ = client.ask(.call(call, .decline(Decline())))
    case 6: if isIn(client) { try? client.connectMedia(call) }
    case 7: if isIn(client) { try? client.loseMedia(call) }
    case 8: _ = client.ask(.call(call, .hold(Hold(held: random.chance(50)))))
    case 9: _ = client.ask(.inCall(call, .message(SendMessage(to: nil, body: Base64Bytes([1])))))
    case 10: _ = client.ask(.call(call, .cancel(Cancel())))
    default:
      guard var state = try? client.state(call) else { return }
      // Changes that are sent together have one revision.
      state.rev = nil
      // The reply is in order with the events.
      listen()
      heard[client.user.text, default: []].append(.state(state))
    }
  }

  private func isIn(_ client: Client) -> Bool {
    stage.node.control.calls[call]?.member(client.user)?.participant(on: client.device) != nil
  }

  private mutating func listen() {
    for client in clients {
      for body in client.events() {
        eventCount += 1
        switch body {
        case .members(let changes):
          mergedCount += 1
          heard[client.user.text, default: []] += changes.members.map(EventBody.member)
        case .member, .ended, .trackAdded, .trackUpdated, .trackRemoved, .rotate, .message:
          heard[client.user.text, default: []].append(body)
        default: break
        }
      }
    }
  }
}

extension [EventBody] {
  fileprivate var changes: [MemberChange] {
    flatMap { body -> [MemberChange] in
      switch body {
      case .member(let change): [change]
      case .members(let changes): changes.members
      default: []
      }
    }
  }
}
