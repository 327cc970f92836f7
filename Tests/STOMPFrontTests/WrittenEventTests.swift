import CallMessages
import Contract
import MediaModel
import NIOCore
import STOMP
import Testing

@testable import Connections
@testable import STOMPFront

/// An event for many is encoded once on each event loop.
struct WrittenEventTests {
  @Test func theMessageOfTheLastEventIsUsedAgain() throws {
    let event = EncodedEvent(.keysSwitch, for: .events, ByteBuffer(string: "{}"))
    let same = EncodedEvent(.keysSwitch, for: .call(try #require(CallID("c1"))), ByteBuffer(string: "{}"))
    let written = WrittenEvent()
    let message = written.take(event)
    #expect(message.destination == "/user/queue/events" && message.headers["event"] == "keys.switch")
    #expect(message.headers["content-type"] == "application/json" && String(buffer: message.body) == "{}")
    // Marked, so that it is recognized.
    let marked = SharedMessage(destination: "/marked", headers: [:], body: message.body)
    written.keep(marked, of: event)
    #expect(written.take(event).destination == "/marked")
    #expect(written.take(event).destination == "/user/queue/events", "it was taken and not returned")
    written.keep(marked, of: event)
    #expect(written.take(same).destination == "/topic/calls/c1", "another object with the same text")
  }
}
