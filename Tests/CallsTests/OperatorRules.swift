import Contract
import MediaModel
import Testing

@testable import Calls

/// The operator's commands, and what an operator is shown.
struct OperatorRules {
  let stage = Stage()

  private func states(_ call: CallID) -> [String: MemberPhase] {
    let members = stage.node.inspection(of: call)?.members ?? []
    return Dictionary(uniqueKeysWithValues: members.map { ($0.user.text, $0.state) })
  }

  private var keyless: [ParticipantNumber: KeyState] {
    stage.takeOthers().reduce(into: [:]) {
      if case .keyless(_, let participant, let state) = $1 { $0[participant] = state }
    }
  }

  @Test func anEndedCallIsOverForAllAndKnownForItsReason() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    let call = try alice.call(["bob"])
    try bob.accept(call)
    #expect(stage.node.callSummaries.map(\.joined) == [2])
    stage.handle(.end(call))
    #expect(stage.node.callSummaries.isEmpty)
    #expect(stage.node.inspection(of: call)?.ended?.reason == .endedByInitiator)
    #expect(stage.node.inspection(of: call)?.ended?.by == nil)
    stage.handle(.end(call))
    #expect(stage.node.isIdle)
  }

  @Test func aDisconnectedUserLeavesItsCallsAndKeepsItsDevices() throws {
    let (alice, bob, carol) = (stage.connect("alice"), stage.connect("bob"), stage.connect("carol"))
    let call = try alice.call(["bob", "carol"])
    try bob.accept(call)
    try carol.accept(call)
    stage.handle(.disconnectUser(bob.user))
    #expect(stage.closed == [bob.session])
    #expect(states(call) == ["alice": .joined, "bob": .left, "carol": .joined])
    #expect(stage.node.connectedUsers.map(\.user.text).sorted() == ["alice", "carol"])
    #expect(!stage.node.isPresent(bob.user) && stage.node.isPresent(alice.user))
    #expect(stage.node.people.directory.hasKeys(bob.user))
    stage.handle(.disconnectUser(bob.user))
    stage.handle(.disconnectUser(UserID(unchecked: "stranger")))
    #expect(stage.closed == [bob.session])
    _ = stage.connect("bob")
    #expect(stage.node.isPresent(bob.user))
  }

  @Test func aRingThatNobodyAnsweredYetOutlivesTheCalleesConnection() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    let call = try alice.call(["bob"])
    stage.handle(.disconnectUser(bob.user))
    #expect(states(call) == ["alice": .joined, "bob": .ringing])
  }

  @Test func aParticipantThatGoesWithoutTheKeyIsTold() throws {
    let (alice, bob) = (stage.connect("alice"), stage.connect("bob"))
    let call = try alice.call(["bob"])
    try bob.accept(call)
    // Alice's device is asked for epoch 2, and makes no key.
    stage.advance(.seconds(1))
    let shown = stage.node.inspection(of: call)?.members.flatMap(\.participants) ?? []
    #expect(shown.last?.key == .missing && shown.last?.media == .never && shown.last?.signaling == true)
    _ = keyless
    _ = bob.ask(.leave(call))
    #expect(keyless == [2: .missing])
  }

  @Test func aParticipantAloneHasItsOwnKey() throws {
    let alice = stage.connect("alice")
    let call = try alice.call([])
    _ = alice.ask(.leave(call))
    #expect(keyless.isEmpty)
  }
}
