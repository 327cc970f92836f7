import CallMessages
import Connections
import Listening
import NIOCore
import NIOWebSocket
import STOMP

/// Output: frames accumulate until they are flushed, and too much for the client ends the connection.
extension ConnectionHandler {
  struct Output {
    /// Frames written and not flushed yet, if their boundaries have no meaning: a WebSocket has a message for each.
    fileprivate var collected = ByteBuffer()
    /// The most bytes that the kernel may not have taken yet. A promise for each write would be exact, at a tenth of a delivery's cost.
    fileprivate var waitingBytes = 0
    /// The part that was reported to `SlowReaders`.
    fileprivate(set) var reportedBytes = 0
    fileprivate(set) var needsFlush = false
    /// Its loop flushes it shortly.
    fileprivate var isFlushedSoon = false
  }

  /// How long output that nobody acts on immediately waits for more.
  static let patience = TimeAmount.milliseconds(100)

  private var isWebSocket: Bool { gate != nil }

  /// Writes one of the server's own frames, which are text.
  func write(_ bytes: ByteBuffer) {
    output.needsFlush = true
    if isWebSocket {
      pass(bytes, isText: true)
    } else {
      output.collected.writeImmutableBuffer(bytes)
      checkCollected()
    }
  }

  /// Writes the frame that `encode` appends, unless it exceeds the client's bound.
  /// - Parameter isText: whether the frame is UTF-8, which a WebSocket indicates to the client.
  func write(isText: Bool, _ encode: (inout ByteBuffer) -> Session.Delivered) -> Session.Delivered {
    let delivered: Session.Delivered
    if isWebSocket {
      var bytes = ByteBuffer()
      delivered = encode(&bytes)
      if bytes.readableBytes > 0 { pass(bytes, isText: isText) }
    } else {
      delivered = encode(&output.collected)
      checkCollected()
    }
    if case .written = delivered { output.needsFlush = true }
    return isEnded ? .unknown : delivered
  }

  func flush() { if output.needsFlush { flush(now: now) } }

  /// For callers that flush several connections at one time.
  func flush(now: UInt64) {
    guard output.needsFlush, let context else { return }
    output.needsFlush = false
    if output.collected.readableBytes > 0 {
      pass(exchange(&output.collected, with: ByteBuffer()), isText: true)
    }
    session.wrote(now: now)
    services.counters.update { $0.flushes += 1 }
    context.flush()
    if output.waitingBytes > output.reportedBytes + Backlog.step { reportBacklog() }
  }

  /// Delays the flush until something urgent is written, or for `patience`.
  func flushSoon() {
    guard output.needsFlush, !output.isFlushedSoon else { return }
    guard let loop else { return flush() }
    output.isFlushedSoon = true
    loop.flushSoon(self)
  }

  /// The delay of `flushSoon` is over.
  func flushNow(now: UInt64) {
    output.isFlushedSoon = false
    flush(now: now)
    armTimer()
  }

  private func pass(_ bytes: ByteBuffer, isText: Bool) {
    guard let context else { return }
    guard hasRoom(for: bytes.readableBytes) else { return cutOff(.slowReader) }
    output.waitingBytes += bytes.readableBytes
    context.write(wrap(bytes, isText: isText), promise: nil)
  }

  /// The bytes in the form for the next handler: a WebSocket's frame (RFC 6455 section 5.6), or unchanged.
  func wrap(_ bytes: ByteBuffer, isText: Bool) -> NIOAny {
    guard isWebSocket else { return Self.wrapOutboundOut(bytes) }
    return NIOAny(WebSocketFrame(fin: true, opcode: isText ? .text : .binary, data: bytes))
  }

  private func checkCollected() {
    if !hasRoom(for: output.collected.readableBytes) { cutOff(.slowReader) }
  }

  /// Asks the channel only if the bound is reached.
  private func hasRoom(for count: Int) -> Bool {
    let limit = configuration.limits.outbound
    guard output.waitingBytes + count > limit else { return true }
    askChannel()
    return output.waitingBytes + count <= limit
  }

  /// Makes `waitingBytes` exact.
  private func askChannel() {
    guard let bytes = try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes) else { return }
    output.waitingBytes = bytes
  }

  /// Reports the bytes that the kernel has not accepted, if they have changed by a step. Only after a flush: bytes that were not offered to the kernel do not
  /// make a client slow.
  func reportBacklog() {
    askChannel()
    let bytes = output.waitingBytes < Backlog.step ? 0 : output.waitingBytes
    if abs(bytes - output.reportedBytes) >= Backlog.step || bytes == 0 && output.reportedBytes > 0 { report(bytes) }
  }

  private func report(_ bytes: Int) {
    guard let context else { return }
    output.reportedBytes = bytes
    services.clients.slowReaders.report(id, of: share == nil ? nil : user, bytes: bytes, entry(context))
  }

  /// The channel is gone, with everything that waited in it.
  func forgetBacklog() { if output.reportedBytes > 0 { report(0) } }

  /// Nothing more would arrive, so an ERROR is of no use. Media goes on and the client can connect again.
  func cutOff(_ ending: SignalingStatistics.Ending) {
    output.collected = ByteBuffer()
    output.needsFlush = false
    leave(ending)
    context?.close(promise: nil)
  }
}
