@testable import CallMachine
@testable import Calls
import Contract
import MediaModel
import Testing

import CallMessages

struct LargeCalls {
  /// Rings go out by the hundred, everybody accepts, and one epoch includes them all.
  @Test func aCallOfManyComesTogether() throws {
    let stage = Stage()
    let alice = stage.connect("alice")
    let others = (0..<300).map { stage.connect("u\($0)") }
    let call = try alice.call([], policy: { $0.aloneSeconds = 60 })
    for start in stride(from: 0, to: others.count, by: 100) {
      let hundred = others[start..<min(start + 100, others.count)]
      #expect(alice.code(.call(call, .invite(Invite(callees: hundred.map(\.user))))) == nil)
      for other in hundred { try other.accept(call) }
    }
    stage.advance(.milliseconds(100))
    #expect(alice.events().rotations.last?.deliver?.count == 300)
    #expect(try alice.handOut(call, 2, to: others).delivered.count == 300)
    #expect(others.allSatisfy { $0.events().switches == [2] })
    stage.handle(.media(.speakers(call, [3, 1])))
    #expect(others.allSatisfy { $0.names() == [.speakers] })
    #expect(alice.code(.call(call, .end)) == nil)
    #expect(stage.node.control.timers.count == 0)
  }

  /// A newcomer's key does not wait for the announcement to everybody else. In a larger call the announcement waits
  /// longer for further changes.
  @Test(arguments: [(300, 100), (800, 200), (1_500, 300)])
  func theLeaderAndTheNewcomerAreToldFirst(count: Int, wait: Int) throws {
    let stage = Stage { $0.limits.participants = 2_000 }
    let alice = stage.connect("alice")
    let call = try alice.call([]) { $0.aloneSeconds = 3_600 }
    let link = try (alice.get(.call(call, .link(MakeLink(expiresIn: 3_600)))) as CallLink).link
    func come(_ name: String) throws -> Client {
      let client = stage.connect(name)
      let _: Joined = try client.get(.call(call, .join(client.join(link: link))))
      return client
    }
    let others = try (0..<count).map { try come("u\($0)") }
    stage.advance(.milliseconds(300))
    _ = try alice.handOut(call, 2, to: others)
    let told = stage.announced.count
    let newcomer = try come("newcomer")
    stage.advance(.milliseconds(wait - 1))
    #expect(stage.announced.count == told)
    stage.advance(.milliseconds(1))
    let order = stage.announced.dropFirst(told)
    #expect(order.count == count + 2)
    #expect(Array(order.prefix(2)) == [alice.session, newcomer.session])
  }

  /// A device is told of joins in fewer events than there are joins, and the bytes do not grow with the call.
  @Test func aJoinCostsADeviceLessThanAnEvent() throws {
    let stage = Stage()
    let alice = stage.connect("alice")
    let call = try alice.call([]) { $0.aloneSeconds = 3_600 }
    let link = try (alice.get(.call(call, .link(MakeLink(expiresIn: 3_600)))) as CallLink).link
    var clients: [Device: Client] = [:]
    var watcher: Client?
    func come(_ numbers: Range<Int>) throws {
      for number in numbers {
        let client = stage.connect("u\(number)")
        clients[client.device] = client
        watcher = watcher ?? client
        let _: Joined = try client.get(.call(call, .join(client.join(link: link))))
        try client.connectMedia(call)
        stage.advance(.milliseconds(30))
        for rotation in alice.events().rotations {
          _ = try alice.handOut(call, rotation.epoch, to: rotation.deliver?.compactMap { clients[$0.address] } ?? [])
        }
      }
    }
    try come(0..<100)
    for count in [100, 200] {
      let first = try #require(watcher)
      _ = first.events()
      try come(count..<count + 100)
      let events = first.events()
      #expect(events.count > 10 && events.count < 100, "\(events.count) events for 100 joins in a call of \(count)")
      let bytes = events.reduce(0) { $0 + $1.cost }
      #expect(bytes < 100 * 4_096, "\(bytes) bytes for 100 joins in a call of \(count)")
    }
  }
}
