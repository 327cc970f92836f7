import Contract
import MediaModel
import Testing

@testable import Calls

struct LargeCalls {
  /// Rings go out by the hundred, everybody accepts, one epoch takes all in.
  @Test func aCallOfManyComesTogether() throws {
    let stage = Stage()
    let alice = stage.connect("alice")
    let others = (0..<300).map { stage.connect("u\($0)") }
    let call = try alice.call([], policy: { $0.aloneSeconds = 60 })
    for start in stride(from: 0, to: others.count, by: 100) {
      let hundred = others[start..<min(start + 100, others.count)]
      #expect(alice.code(.invite(call, Invite(callees: hundred.map(\.user)))) == nil)
      for other in hundred { try other.accept(call) }
    }
    stage.advance(.milliseconds(100))
    #expect(alice.events().rotations.last?.deliver?.count == 300)
    #expect(try alice.handOut(call, 2, to: others).delivered.count == 300)
    #expect(others.allSatisfy { $0.events().switches == [2] })
    stage.handle(.media(.speakers(call, [3, 1])))
    #expect(others.allSatisfy { $0.names() == [.speakers] })
    #expect(alice.code(.end(call)) == nil)
    #expect(stage.calls.control.timers.count == 0)
  }
}
