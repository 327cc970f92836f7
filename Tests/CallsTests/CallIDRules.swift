@testable import CallMachine
@testable import Calls
import Contract
import MediaModel
import Testing

import CallMessages

/// Call ids that clients choose (protocol section 4, rule 18).
struct CallIDRules {
  let stage = Stage()
  let alice: Client
  let id = CallID(unchecked: "6f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6e")

  init() { alice = stage.connect("alice") }

  @Test(arguments: [
    nil, "x", "6F0C2F6E-4D5E-4B52-9F0C-1F2A3B4C5D6E", "6f0c2f6e-4d5e-1b52-9f0c-1f2a3b4c5d6e",
    "6f0c2f6e-4d5e-4b52-cf0c-1f2a3b4c5d6e", "6f0c2f6e4d5e4b529f0c1f2a3b4c5d6e", "6f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6",
    "6f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6e0", "6f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6g",
    "6f0c2f6e_4d5e-4b52-9f0c-1f2a3b4c5d6e",
  ])
  func anIdIsARandomUUIDInLowerCase(text: String?) throws {
    let start = StartCall(
      id: text.map { CallID(unchecked: $0) }, callees: [], media: .audio, joinId: joinId(1),
      joinKey: alice.joinKey(joinId(1)))
    guard case .failed(let error) = alice.ask(.start(start)) else { return #expect(Bool(false)) }
    #expect(error.code == .requestInvalid && error.field == "id")
    #expect(stage.node.control.calls.isEmpty)
  }

  @Test func theSameStartAgainGetsItsFirstReply() throws {
    let bob = stage.connect("bob")
    let first: Joined = try alice.get(alice.start([bob.user], join: 1, id: id))
    #expect(first.call.id == id && first.participant == 1)
    #expect(try alice.get(alice.start([bob.user], join: 1, id: id), as: Joined.self) == first)
    #expect(bob.events().rings.count == 1)
    guard case .failed(let error) = alice.ask(alice.start([bob.user], join: 1, id: .random)) else {
      return #expect(Bool(false))
    }
    #expect(error.code == .requestInvalid && error.field == "joinId", "a joinId belongs to one call")
  }

  @Test func aKnownIdIsRefusedAndNobodyIsRung() throws {
    let bob = stage.connect("bob")
    let mallory = stage.connect("mallory")
    let victim = stage.connect("victim")
    _ = try alice.get(alice.start([bob.user], join: 1, id: id), as: Joined.self)
    func tries(_ stage: Stage, _ mallory: Client, _ victim: Client) {
      #expect(mallory.code(mallory.start([victim.user], id: id)) == .callExists)
      #expect(victim.events().rings.isEmpty)
    }
    tries(stage, mallory, victim)
    #expect(alice.code(alice.start([victim.user], join: 2, id: id)) == .callExists)
    _ = alice.ask(.call(id, .end))
    tries(stage, mallory, victim)
    #expect(mallory.code(.call(id, .state)) == .callNotFound, "it reveals only that the id is taken")
    stage.advance(.seconds(43_200))
    stage.restart(after: .seconds(40_000))
    tries(stage, stage.connect("mallory"), stage.connect("victim"))
  }

  @Test func idsAreKnownLongerThanCalls() throws {
    let stage = Stage { $0.maximumEndedCalls = 2 }
    let alice = stage.connect("alice")
    var ids: [CallID] = []
    for _ in 0..<10 {
      let call = try alice.call([])
      _ = alice.ask(.call(call, .end))
      ids.append(call)
    }
    #expect(alice.code(.call(ids[0], .state)) == .callNotFound)
    #expect(ids.allSatisfy { alice.code(alice.start([], id: $0)) == .callExists })
    stage.restart()
    let again = stage.connect("alice")
    #expect(ids.allSatisfy { again.code(again.start([], id: $0)) == .callExists })
  }

  @Test func aServiceMayLeaveItToTheServer() throws {
    let service = stage.connectService()
    func start(_ id: CallID?) -> Request { .start(StartCall(id: id, callees: [], media: .audio, as: alice.user)) }
    let made: StartedCall = try service.get(start(nil))
    #expect(made.call.id.text.utf8.count == 36)
    #expect(try service.get(start(id), as: StartedCall.self).call.id == id)
    #expect(service.code(start(id)) == .callExists)
    #expect(service.code(start(CallID(unchecked: "x"))) == .requestInvalid)
    #expect(alice.code(alice.start([], id: made.call.id)) == .callExists)
  }
}
