@testable import Calls
@testable import CallMachine
import Contract
import MediaModel
import Testing

import CallMessages

/// Two people act on two calls at the same moment, in every order of their requests.
struct CrossingWorlds {
  /// An action of a person. Clients make several requests for one press; those of the other person may come in between.
  enum Act: CaseIterable {
    case call, callFromTablet, accept, holdAndAccept, endAndAccept, decline, hold, leave, end, nothing

    /// Calls the other person.
    var isMeant: Bool { [.call, .callFromTablet, .accept, .holdAndAccept, .endAndAccept].contains(self) }
  }

  enum Situation: CaseIterable {
    /// There is no call.
    case none
    /// Alice rings Bob.
    case ring
    /// Alice rings Bob and Carol; Bob rings Alice.
    case group
    /// Alice and Carol talk, and Alice has invited Bob; Bob rings Alice.
    case invited

    /// The acts that are possible for each of the two in these calls.
    var acts: (alice: [Act], bob: [Act]) {
      switch self {
      case .none: ([.call, .callFromTablet, .nothing], [.call, .callFromTablet, .nothing])
      case .ring:
        (
          [.nothing, .callFromTablet, .call, .hold, .leave, .end],
          [.accept, .call, .callFromTablet, .decline, .nothing]
        )
      case .group, .invited:
        (
          [.accept, .holdAndAccept, .endAndAccept, .decline, .hold, .leave, .end, .nothing],
          [.accept, .holdAndAccept, .endAndAccept, .decline, .hold, .leave, .end, .nothing]
        )
      }
    }
  }

  @Test(arguments: Situation.allCases)
  func oneCallRemains(situation: Situation) throws {
    var worlds = 0
    for act in situation.acts.alice {
      for other in situation.acts.bob {
        for order in Self.orders {
          try check(World(situation, act, other, order), "\(situation): \(act) beside \(other), \(order)")
          worlds += 1
        }
      }
    }
    #expect(worlds > 80)
  }

  /// The orders of the first three requests of each person: whether the next one is Alice's.
  private static let orders: [[Bool]] = {
    func merged(_ one: Int, _ other: Int) -> [[Bool]] {
      if one == 0 || other == 0 {
        return [[Bool](repeating: true, count: one) + [Bool](repeating: false, count: other)]
      }
      return merged(one - 1, other).map { [true] + $0 } + merged(one, other - 1).map { [false] + $0 }
    }
    return merged(3, 3)
  }()

  private func check(_ world: World, _ words: String) throws {
    let both = world.calls.filter { $0.isJoined("alice") && $0.isJoined("bob") }
    #expect(both.count <= 1, "\(words): \(both.count) calls of the two")
    if world.alice.act.isMeant, world.bob.act.isMeant {
      #expect(both.count == 1, "\(words): they do not meet")
      #expect(both.allSatisfy { $0.isTalking("alice") && $0.isTalking("bob") }, "\(words): one holds the other")
    }
    for call in world.calls {
      let isMet = both.contains { $0.id == call.id }
      let isOneThere = call.isJoined("alice") || call.isJoined("bob")
      #expect(
        !isOneThere || call.joinedCount > 1 || call.ringingCount > 0, "\(words): one is alone in a call")
      guard !isMet, !both.isEmpty else { continue }
      let rung = call.members.filter { member in
        guard case .ringing(let ringing) = member.phase else { return false }
        return [member.user.text, ringing.by.text].allSatisfy { ["alice", "bob"].contains($0) }
      }
      #expect(rung.isEmpty, "\(words): they ring each other beside their call")
    }
  }
}

/// Alice and Bob, and what they have done.
private struct World {
  let alice: Person
  let bob: Person
  let stage = Stage()

  var calls: [Call] { Array(stage.node.control.calls.values) }

  init(_ situation: CrossingWorlds.Situation, _ act: CrossingWorlds.Act, _ other: CrossingWorlds.Act, _ order: [Bool])
    throws
  {
    alice = Person(stage, "alice", calling: "bob", act)
    bob = Person(stage, "bob", calling: "alice", other)
    switch situation {
    case .none: break
    case .ring: alice.own = try alice.phone.call(["bob"])
    case .group:
      _ = stage.connect("carol")
      alice.own = try alice.phone.call(["bob", "carol"])
      bob.own = try bob.phone.call(["alice"])
    case .invited:
      let carol = stage.connect("carol")
      let call = try alice.phone.call(["carol"])
      try carol.accept(call)
      bob.own = try bob.phone.call(["alice"])
      _ = alice.phone.ask(.call(call, .invite(Invite(callees: [bob.phone.user]))))
      alice.own = call
    }
    alice.look()
    bob.look()
    // A started press is completed, whatever the order.
    for isAlice in order + [true, false, true, false, true, false] { (isAlice ? alice : bob).step() }
  }
}

/// One person, who acts as the clients do.
private final class Person {
  let phone: Client
  let act: CrossingWorlds.Act
  var own: CallID?
  private let tablet: Client
  private let other: UserID
  /// The shown ring of the other person.
  private var ring: CallID?
  private var next: [(Person) -> Void] = []
  private var tries = 0

  init(_ stage: Stage, _ name: String, calling other: String, _ act: CrossingWorlds.Act) {
    phone = stage.connect(name)
    tablet = stage.connect(name, "tablet")
    self.act = act
    self.other = UserID(unchecked: other)
    next =
      switch act {
      case .call: [{ $0.start(on: $0.phone) }]
      case .callFromTablet: [{ $0.start(on: $0.tablet) }]
      case .accept: [{ $0.accept(or: nil) }]
      case .holdAndAccept: [{ $0.hold($0.own, true) }, { $0.accept(or: $0.own) }]
      case .endAndAccept: [{ $0.hold($0.own, true) }, { $0.accept(or: $0.own) }]
      case .decline: [{ $0.ask($0.ring, .decline(Decline())) }]
      case .hold: [{ $0.hold($0.own, true) }]
      case .leave: [{ $0.ask($0.own, .leave) }]
      case .end: [{ $0.ask($0.own, .end) }]
      case .nothing: []
      }
  }

  /// The next request.
  func step() {
    guard !next.isEmpty else { return }
    next.removeFirst()(self)
  }

  private func ask(_ call: CallID?, _ request: MemberRequest) {
    if let call { _ = phone.ask(.call(call, request)) }
  }

  /// Handles the events that have arrived.
  func look() {
    for event in phone.deliveries().map(\.message) {
      if case .ring(let ring) = event.body, ring.from == other { self.ring = event.call }
    }
  }

  private func hold(_ call: CallID?, _ isHeld: Bool) {
    ask(call, .hold(Hold(held: isHeld)))
  }

  /// A ring that is over may have been replaced by the caller; otherwise the previous call continues.
  private func accept(or before: CallID?) {
    guard let ring else { return }
    guard let code = phone.code(.call(ring, .accept(phone.join()))) else {
      if act == .endAndAccept { next.append { $0.ask(before, .leave) } }
      return
    }
    look()
    if code == .callEnded, self.ring != ring { return next.append { $0.accept(or: before) } }
    next.append { $0.hold(before, false) }
  }

  private func start(on device: Client) {
    tries += 1
    guard tries < 4, let error = device.error(device.start([other])), error.code == .callCrossed, let call = error.call
    else { return }
    next.append { $0.comeInto(call, on: device) }
  }

  private func comeInto(_ call: CallID, on device: Client) {
    guard let state = try? device.state(call), let member = state.members.first(where: { $0.user == phone.user }) else {
      return next.append { $0.start(on: device) }
    }
    let request: MemberRequest =
      switch member.state {
      case .ringing: .accept(device.join())
      case .joined where member.participants.contains(where: { $0.device == device.device.device }): .state
      case .joined: .transfer(device.join())
      default: .rejoin(device.join())
      }
    if device.code(.call(call, request)) != nil { next.append { $0.start(on: device) } }
  }
}

extension Call {
  fileprivate func isJoined(_ user: String) -> Bool { member(UserID(unchecked: user))?.isJoined == true }

  /// On one of its devices at least.
  fileprivate func isTalking(_ user: String) -> Bool {
    member(UserID(unchecked: user))?.participants.contains { !$0.isHeld } == true
  }
}
