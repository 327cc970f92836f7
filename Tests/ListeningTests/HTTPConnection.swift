import Logging
import MediaModel
import NIOCore
import NIOEmbedded
import NIOPosix
import Synchronization

@testable import Listening

/// A connection of the HTTP port without a socket.
final class HTTPConnection {
  let loop = NIOAsyncTestingEventLoop()
  let channel: NIOAsyncTestingChannel
  let network = Network()
  /// The bytes that the server has written and `output` has not consumed.
  private var written = ByteBuffer()

  /// - Parameter routes: these come before the route for all other paths, which answers with the path.
  init(_ routes: [Route]) async throws {
    channel = NIOAsyncTestingChannel(loop: loop)
    let listeners = Listeners(
      ListeningConfiguration(), group: MultiThreadedEventLoopGroup.singleton,
      logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, clock: { Timestamp(milliseconds: 0) })
    let pages = Route(.all) { HTTPResponse(text: $0.path) }
    let service = HTTPService(listeners: listeners, webSockets: [], routes: routes + [pages])
    let (channel, network) = (channel, network)
    try await loop.executeInContext {
      try channel.pipeline.syncOperations.addHandler(network)
      try HTTPHandler.add(to: channel, service)
    }
    try await channel.connect(to: SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
  }

  func send(_ text: String) async throws { try await send(ByteBuffer(string: text)) }

  func send(_ bytes: ByteBuffer) async throws { try await channel.writeInbound(bytes) }

  /// Triggers a read of the channel, as a socket does after each read.
  func askForBytes() async throws {
    let channel = channel
    try await loop.executeInContext { channel.pipeline.syncOperations.read() }
  }

  /// Closes the connection from the client's side.
  func close() async throws {
    channel.close(promise: nil)
    await loop.run()
  }

  /// Waits for other threads.
  func until(_ isReached: () -> Bool) async throws {
    repeat {
      try Task.checkCancellation()
      await loop.run()
      await Task.yield()
    } while !isReached()
  }

  func hasWritten() async throws -> Bool {
    while var bytes = try await channel.readOutbound(as: ByteBuffer.self) { written.writeBuffer(&bytes) }
    return written.readableBytes > 0
  }

  /// Consumes what the server has written, once it is enough.
  func output(until isEnough: (String) -> Bool) async throws -> String {
    while true {
      if try await hasWritten(), isEnough(String(buffer: written)) {
        return String(buffer: exchange(&written, with: ByteBuffer()))
      }
      try Task.checkCancellation()
      await loop.run()
      await Task.yield()
    }
  }
}

/// Replaces the socket: counts reads, and can leave writes unfinished like a kernel with a full buffer.
final class Network: ChannelDuplexHandler, Sendable {
  typealias InboundIn = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  private struct State: Sendable {
    var reads = 0
    var holdsWrites = false
    var held: [EventLoopPromise<Void>] = []
  }

  private let state = Mutex(State())

  var reads: Int { state.withLock { $0.reads } }
  /// The waiting writes.
  var held: Int { state.withLock { $0.held.count } }
  var holdsWrites: Bool {
    get { state.withLock { $0.holdsWrites } }
    set { state.withLock { $0.holdsWrites = newValue } }
  }

  func release(_ error: (any Error)? = nil) {
    for promise in state.withLock({ exchange(&$0.held, with: []) }) {
      if let error { promise.fail(error) } else { promise.succeed() }
    }
  }

  func read(context: ChannelHandlerContext) {
    state.withLock { $0.reads += 1 }
    context.read()
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    context.write(data, promise: nil)
    guard let promise else { return }
    let isHeld = state.withLock { state in
      if state.holdsWrites { state.held.append(promise) }
      return state.holdsWrites
    }
    if !isHeld { promise.succeed() }
  }
}

/// A value that tasks can change.
final class Box<Value: Sendable>: Sendable {
  private let stored: Mutex<Value>

  init(_ value: Value) { stored = Mutex(value) }

  var value: Value { stored.withLock { $0 } }

  func change(_ change: @Sendable (inout Value) -> Void) { stored.withLock { value in change(&value) } }
}

/// Blocks tasks until it is opened.
final class Gate: Sendable {
  private let (stream, continuation) = AsyncStream.makeStream(of: Void.self)

  func open() { continuation.finish() }

  func pass() async { for await _ in stream {} }
}
