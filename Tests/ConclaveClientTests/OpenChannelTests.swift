import NIOCore
import NIOEmbedded
import STOMP
import Testing

@testable import ConclaveClient

/// Acknowledgements that nobody waits for are written together, and are never left behind.
struct OpenChannelTests {
  private let channel = NIOAsyncTestingChannel()
  private let open: OpenChannel

  init() { open = OpenChannel(channel, version: .v12, number: 1) }

  private func event(_ id: String) -> Frame { Frame(.message, ["ack": id]) }

  /// The ids, or commands, of the frames in the next write; nil when there was none.
  private func written() async throws -> [String]? {
    guard var bytes = try await channel.readOutbound(as: ByteBuffer.self) else { return nil }
    var decoder = FrameDecoder(version: .v12, limits: .client)
    decoder.append(&bytes)
    var ids: [String] = []
    while let frame = try decoder.next() { ids.append(frame.headers["id"] ?? frame.command.rawValue) }
    return ids
  }

  @Test func acknowledgementsThatNobodyAwaitsLeaveTogetherWithin100Milliseconds() async throws {
    for id in ["a", "b", "c"] { open.acknowledge(event(id), isAwaited: false) }
    await channel.testingEventLoop.advanceTime(by: .milliseconds(99))
    #expect(try await written() == nil)
    await channel.testingEventLoop.advanceTime(by: .milliseconds(1))
    #expect(try await written() == ["a", "b", "c"])
    open.acknowledge(event("d"), isAwaited: false)
    await channel.testingEventLoop.advanceTime(by: .milliseconds(100))
    #expect(try await written() == ["d"], "the next ones have a timer of their own")
  }

  @Test func anAwaitedAcknowledgementLeavesAtOnceBehindTheOthers() async throws {
    open.acknowledge(event("a"), isAwaited: false)
    open.acknowledge(event("envelope"), isAwaited: true)
    await channel.testingEventLoop.advanceTime(by: .zero)
    #expect(try await written() == ["a", "envelope"])
  }

  @Test func aRequestTakesThemAlong() async throws {
    open.acknowledge(event("a"), isAwaited: false)
    open.write(Frame(.send, ["destination": "/app/calls/list"]))
    await channel.testingEventLoop.advanceTime(by: .zero)
    #expect(try await written() == ["a", "SEND"])
    await channel.testingEventLoop.advanceTime(by: .milliseconds(100))
    #expect(try await written() == nil, "nothing is left for the timer")
  }

  @Test func manyLeaveAtOnce() async throws {
    let long = String(repeating: "x", count: 8_000)
    open.acknowledge(event(long), isAwaited: false)
    await channel.testingEventLoop.advanceTime(by: .zero)
    #expect(try await written() == nil)
    open.acknowledge(event(long), isAwaited: false)
    await channel.testingEventLoop.advanceTime(by: .zero)
    #expect(try await written() == [long, long])
  }

  /// The server chooses the ids. An id that fills the buffer alone must not leave the next acknowledgements without a timer.
  @Test func anAcknowledgementThatFillsTheBufferLeavesATimerForTheNext() async throws {
    let long = String(repeating: "x", count: 8_185)
    open.acknowledge(event(long), isAwaited: false)
    await channel.testingEventLoop.advanceTime(by: .milliseconds(100))
    #expect(try await written() == [long])
    open.acknowledge(event("a"), isAwaited: false)
    await channel.testingEventLoop.advanceTime(by: .milliseconds(100))
    #expect(try await written() == ["a"])
  }
}
