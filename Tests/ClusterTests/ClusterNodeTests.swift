@testable import Calls
import MediaModel
import Testing

@testable import Cluster

/// One node, whose store and neighbours are played by the test.
struct ClusterNodeTests {
  private typealias Node = ClusterNode<ModelMachines>
  private typealias Effect = ClusterEffect<ModelMachines>
  private typealias Mail = ClusterMail<ModelMachines>

  private let user = UserID(unchecked: "anna")
  private let call = CallID(unchecked: "call")
  private let here = Incarnation(1)
  private let session = SessionID(1, of: Incarnation(1))

  private func second(_ number: UInt64) -> Instant { Instant(nanoseconds: number * 1_000_000_000) }

  /// A node with a client whose user it owns.
  private func node(times: Times = Times()) -> Node {
    var node = Node(id: here, machines: ModelMachines(), times: times, now: second(0), random: { 0 })
    let term = Term(3)
    _ = node.handle(.connect(session, user), now: second(0))
    let owner = Owner(node: here, term: term)
    _ = node.handle(.engine(.committed(1, claims: [owner], adopted: [:], found: [:])), now: second(0))
    _ = node.handle(.engine(.loaded(.user(user), term, asOf: 1, .user([], calls: []))), now: second(0))
    #expect(node.owns(.user(user)))
    return node
  }

  private func state(_ rev: UInt64) -> ModelMachines.CallState {
    ModelMachines.CallState(call: call, rev: rev, epoch: 1, list: [1])
  }

  /// Somebody else may own the user by then, and know more.
  @Test func aNodeThatCannotRenewRefusesRequests() {
    var node = node()
    let early = node.handle(.request(session, number: 1, .read(call)), now: second(3))
    #expect(!early.contains { if case .busy = $0 { true } else { false } })
    let late = node.handle(.request(session, number: 2, .read(call)), now: second(5))
    #expect(late.contains { if case .busy(session, number: 2) = $0 { true } else { false } })
  }

  /// A request of another node's client may be on its way already. Its answer needs no change, and waits for a commit all the same.
  @Test(arguments: [3, 5] as [UInt64]) func aNodeThatCannotRenewKeepsItsAnswers(time: UInt64) {
    var node = node()
    let far = SessionID(1, of: Incarnation(2))
    var links = Link<ModelMachines>()
    func mail(_ mail: Mail, _ time: UInt64) -> [Effect] {
      var effects: [Effect] = []
      for case .send(let stream, let content) in links.send(mail, now: second(time), Times()) {
        let parcel = Parcel(from: Incarnation(2), to: here, stream: stream, content: content)
        effects += node.handle(.parcel(parcel), now: second(time))
      }
      return effects
    }
    _ = mail(.session(far, of: user, Term(3), .connect), 1)
    // A session that the owner does not know is told to go.
    let unknown = SessionID(2, of: Incarnation(2))
    let effects = mail(.session(unknown, of: user, Term(3), .request(number: 1, .read(call))), time)
    let hasLeft = effects.contains {
      if case .parcel(let parcel) = $0, case .mail = parcel.content { true } else { false }
    }
    #expect(hasLeft == (time < 4))
  }

  @Test func aFormerOwnerOfACallIsNotHeard() {
    var node = node()
    var links: [UInt64: Link<ModelMachines>] = [:]
    func say(_ note: ModelMachines.Note, term: UInt64, from sender: UInt32) -> [UInt64] {
      let mail = Mail.words(.note(note), from: .call(call), Term(term), to: .user(user))
      var revs: [UInt64] = []
      let outputs = links[UInt64(sender), default: Link()].send(mail, now: second(1), Times())
      for case .send(let stream, let content) in outputs {
        let parcel = Parcel(from: Incarnation(sender), to: here, stream: stream, content: content)
        for case .answer(_, nil, .event(_, let state, _)) in node.handle(.parcel(parcel), now: second(1)) {
          revs.append(state.rev)
        }
      }
      return revs
    }
    // The first letter of an owner makes the user attach, and he takes no news before the answer.
    #expect(say(.news(state(5)), term: 5, from: 3) == [])
    let attached = Mail.words(
      .attached(.member(state(6)), meeting: node.meetings.values.first?.number ?? 0), from: .call(call), Term(5),
      to: .user(user))
    for case .send(let stream, let content) in links[3, default: Link()].send(attached, now: second(1), Times()) {
      _ = node.handle(
        .parcel(Parcel(from: Incarnation(3), to: here, stream: stream, content: content)), now: second(1))
    }
    #expect(say(.news(state(7)), term: 5, from: 3) == [7])
    #expect(say(.news(state(8)), term: 4, from: 2) == [], "the former owner")
    #expect(say(.news(state(8)), term: 5, from: 3) == [8])
  }
}
