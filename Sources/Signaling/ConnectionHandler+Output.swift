import NIOCore
import STOMP

/// Bytes out: frames come together until they are flushed, and too much for the client ends the connection.
extension ConnectionHandler {
  struct Output {
    /// Frames written and not flushed yet, where their borders mean nothing: a WebSocket has a message for each.
    fileprivate var collected = ByteBuffer()
    /// Bytes that the kernel may not have taken yet: at most so many. A promise for each write would tell exactly, at a tenth of a delivery's cost.
    fileprivate var waitingBytes = 0
    /// What of it was reported to `SlowReaders`.
    fileprivate var reportedBytes = 0
    fileprivate(set) var needsFlush = false
  }

  private var isWebSocket: Bool { gate != nil }

  func write(_ bytes: ByteBuffer) {
    output.needsFlush = true
    if isWebSocket {
      pass(bytes)
    } else {
      output.collected.writeImmutableBuffer(bytes)
      checkCollected()
    }
  }

  /// Writes the frame that `encode` appends. What is too much for the client has not been written.
  func write(_ encode: (inout ByteBuffer) -> Session.Delivered) -> Session.Delivered {
    let delivered: Session.Delivered
    if isWebSocket {
      var bytes = ByteBuffer()
      delivered = encode(&bytes)
      if bytes.readableBytes > 0 { pass(bytes) }
    } else {
      delivered = encode(&output.collected)
      checkCollected()
    }
    if case .written = delivered { output.needsFlush = true }
    return isEnded ? .unknown : delivered
  }

  func flush() { if output.needsFlush { flush(now: now) } }

  /// For whoever flushes many at one time.
  func flush(now: UInt64) {
    guard output.needsFlush, let context else { return }
    output.needsFlush = false
    if output.collected.readableBytes > 0 { pass(exchange(&output.collected, with: ByteBuffer())) }
    session.wrote(now: now)
    context.flush()
  }

  private func pass(_ bytes: ByteBuffer) {
    guard let context else { return }
    guard hasRoom(for: bytes.readableBytes) else { return cutOff(.slowReader) }
    output.waitingBytes += bytes.readableBytes
    context.write(Self.wrapOutboundOut(bytes), promise: nil)
  }

  private func checkCollected() {
    if !hasRoom(for: output.collected.readableBytes) { cutOff(.slowReader) }
  }

  /// Asks the channel only when the bound is reached, or a step of what is reported.
  private func hasRoom(for count: Int) -> Bool {
    let limit = services.configuration.outboundBytes
    guard output.waitingBytes + count > min(limit, output.reportedBytes + Backlog.step), askChannel() else {
      return true
    }
    let bytes = output.waitingBytes + count
    guard bytes <= limit else { return false }
    if abs(bytes - output.reportedBytes) > Backlog.step { report(bytes) }
    return true
  }

  /// Whether `waitingBytes` is exact now.
  private func askChannel() -> Bool {
    guard let bytes = try? context?.channel.syncOptions?.getOption(.bufferedWritableBytes) else { return false }
    output.waitingBytes = bytes
    return true
  }

  private func report(_ bytes: Int) {
    guard let context else { return }
    output.reportedBytes = bytes
    services.slowReaders.report(id, of: share == nil ? nil : user, bytes: bytes, entry(context))
  }

  /// The client has read nearly all.
  func reportBacklog() {
    guard output.reportedBytes > 0, askChannel() else { return }
    report(output.waitingBytes < Backlog.step ? 0 : output.waitingBytes)
  }

  /// The channel is gone, with all that waited in it.
  func forgetBacklog() { if output.reportedBytes > 0 { report(0) } }

  /// Nothing more would arrive, so there is no use in an ERROR. Media goes on and the client can connect again.
  func cutOff(_ ending: SignalingStatistics.Ending) {
    output.collected = ByteBuffer()
    output.needsFlush = false
    leave(ending)
    context?.close(promise: nil)
  }
}
