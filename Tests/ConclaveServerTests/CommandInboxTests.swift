import CallMessages
import Contract
import MediaModel
import Synchronization
import Testing

@testable import ConclaveServer

/// How the loop is notified of commands, tested without a loop.
struct CommandInboxTests {
  private final class Count: Sendable {
    let count = Mutex(0)
    func add() { count.withLock { $0 += 1 } }
    var value: Int { count.withLock { $0 } }
  }

  private let inbox = CommandInbox()
  private let works = Count()
  private let session = SessionID(rawValue: 1)

  private func connect() {
    let device = Device(user: UserID(unchecked: "alice"), device: DeviceID(unchecked: "phone"))
    #expect(inbox.append(.connect(session, Identity(device: device, name: nil))))
  }

  private func next(goesOn: Bool = false) -> String? {
    switch inbox.next(takesAll: true, goesOn: goesOn) {
    case .connect: "connect"
    case .request(_, let id, _): id
    case .offer(_, let id, _, _, _): "offer \(id)"
    case nil: nil
    default: "other"
    }
  }

  private func ask(_ id: String) -> Bool { inbox.append(.request(session, id: id, .listCalls)) }

  @Test func theLoopIsToldOnceUntilItHasFoundNothing() {
    inbox.start { works.add() }
    connect()
    #expect(ask("a") && works.value == 1)
    #expect([next(), next()] == ["connect", "a"])
    #expect(ask("b") && works.value == 1, "it has not found the end yet")
    #expect([next(), next()] == ["b", nil])
    #expect(ask("c") && works.value == 2)
  }

  @Test func aLoopThatHasOtherWorkIsNotToldAgain() {
    inbox.start { works.add() }
    connect()
    _ = next()
    #expect(next(goesOn: true) == nil)
    inbox.wake()
    #expect(works.value == 1)
    #expect(next() == nil)
    inbox.wake()
    #expect(works.value == 2)
  }

  @Test func commandsFromBeforeTheStartAreHandled() {
    connect()
    inbox.start { works.add() }
    #expect(works.value == 1 && next() == "connect")
  }

  @Test func aPreparedCommandGoesBeforeTheOthersOfItsUser() {
    inbox.start { works.add() }
    connect()
    _ = next()
    inbox.hold(session)
    #expect(ask("a"))
    #expect(next() == nil)
    inbox.resume(
      session,
      with: .offer(session, id: "m", CallID(unchecked: "c"), .failure(RequestError(.mediaSDPInvalid, "")), []))
    #expect(works.value == 2, "the loop had found nothing")
    #expect([next(), next(), next()] == ["offer m", "a", nil])
  }

  @Test func oneRequestTooManyIsRefusedAndCounted() {
    connect()
    let taken = (0..<1_001).count { ask("\($0)") }
    #expect(taken == 1_000)
    #expect(inbox.backlog.waiting == 1_000 && inbox.backlog.refused == [.user: 1])
  }
}
