import CallMessages
import Contract
import MediaModel
import Testing

@testable import ConclaveServer

/// The order in which commands are handled, without a server.
struct CommandQueueTests {
  private var queue = CommandQueue(limits: CommandQueue.Limits(ofUser: 3, ofService: 5, ofAll: 7))

  private mutating func connect(_ session: UInt64, _ user: String, isService: Bool = false) {
    let device = Device(user: UserID(unchecked: user), device: DeviceID(unchecked: "d\(session)"))
    let identity = Identity(device: device, name: nil, isService: isService)
    _ = queue.append(.connect(SessionID(rawValue: session), identity))
    _ = queue.next()
  }

  private mutating func ask(_ session: UInt64, _ id: String) -> CommandQueue.Overflow? {
    queue.append(.request(SessionID(rawValue: session), id: id, .listCalls))
  }

  private func word(_ command: NodeCommand?) -> String? {
    switch command {
    case .request(_, let id, _): id
    case .offer(_, let id, _, _, _): "offer \(id)"
    case .disconnect(let session): "end \(session.rawValue)"
    case .timeout: "timeout"
    case nil: nil
    default: "other"
    }
  }

  private mutating func all() -> [String] {
    var words: [String] = []
    while let word = word(queue.next()) { words.append(word) }
    return words
  }

  @Test mutating func usersTakeTurnsAndEachKeepsItsOrder() {
    for session in UInt64(1)...2 { connect(session, "alice") }
    connect(3, "bob")
    for (session, id) in [(1, "a1"), (2, "a2"), (1, "a3"), (3, "b1"), (3, "b2")] as [(UInt64, String)] {
      #expect(ask(session, id) == nil)
    }
    #expect(all() == ["a1", "b1", "a2", "b2", "a3"])
  }

  @Test mutating func theServersOwnGoesFirst() {
    connect(1, "alice")
    _ = ask(1, "a1")
    #expect(queue.append(.timeout) == nil)
    #expect(all() == ["timeout", "a1"])
  }

  @Test mutating func oneUsersRequestsAreBoundedAndAnotherIsServed() {
    for session in UInt64(1)...2 { connect(session, "alice") }
    connect(3, "bob")
    #expect((0..<5).map { ask(UInt64(1 + $0 % 2), "a\($0)") } == [nil, nil, nil, .user, .user])
    #expect(ask(3, "b") == nil && queue.waiting == 4)
    #expect(queue.append(.disconnect(SessionID(rawValue: 1))) == nil, "an end is never refused")
    #expect(all() == ["a0", "b", "a1", "a2", "end 1"])
    #expect(ask(2, "again") == nil && queue.refused == [.user: 2])
  }

  @Test mutating func allTogetherAreBounded() {
    for session in UInt64(1)...4 { connect(session, "u\(session)") }
    let refusals = (0..<8).map { ask(UInt64(1 + $0 % 4), "\($0)") }
    #expect(refusals == Array(repeating: nil, count: 7) + [.all])
    #expect(all().count == 7 && queue.waiting == 0)
  }

  @Test mutating func aServiceHasABoundOfItsOwn() {
    connect(1, "app", isService: true)
    connect(2, "app")
    #expect((0..<6).map { ask(1, "\($0)") } == [nil, nil, nil, nil, nil, .user])
    #expect(ask(2, "u") == nil, "a user of the same id is somebody else")
  }

  @Test mutating func nothingOvertakesWhatIsMadeReadyElsewhere() {
    connect(1, "alice")
    connect(2, "bob")
    for id in ["m", "a2"] { _ = ask(1, id) }
    _ = ask(2, "b1")
    #expect(word(queue.next()) == "m")
    queue.hold(SessionID(rawValue: 1))
    _ = ask(1, "a3")
    #expect(all() == ["b1"], "bob does not wait")
    _ = queue.append(.disconnect(SessionID(rawValue: 1)))
    let offer = NodeCommand.offer(
      SessionID(rawValue: 1), id: "m", CallID(unchecked: "c"), .failure(RequestError(.mediaSDPInvalid, "")), [])
    queue.resume(SessionID(rawValue: 1), with: offer)
    #expect(all() == ["offer m", "a2", "a3", "end 1"])
  }

  @Test mutating func aHeldUserWithNothingElseGoesOn() {
    connect(1, "alice")
    _ = ask(1, "m")
    #expect(word(queue.next()) == "m")
    queue.hold(SessionID(rawValue: 1))
    #expect(queue.next() == nil)
    queue.resume(SessionID(rawValue: 1), with: .timeout)
    #expect(all() == ["timeout"])
    #expect(ask(1, "n") == nil)
    #expect(all() == ["n"])
  }

  @Test mutating func theServersOwnAloneAreTakenWhileClientsWait() {
    connect(1, "alice")
    _ = ask(1, "a1")
    _ = queue.append(.timeout)
    #expect(word(queue.next(takesAll: false)) == "timeout")
    #expect(queue.next(takesAll: false) == nil && queue.waiting == 1)
    #expect(all() == ["a1"])
  }
}
