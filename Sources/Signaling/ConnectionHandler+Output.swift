import NIOCore
import STOMP

/// Bytes out: frames come together until they are flushed, and too much for the client ends the connection.
extension ConnectionHandler {
  struct Output {
    /// Frames written and not flushed yet, where their borders mean nothing: a WebSocket has a message for each.
    fileprivate var collected = ByteBuffer()
    /// Bytes that the kernel may not have taken yet: at most so many. A promise for each write would tell exactly, at a tenth of a delivery's cost.
    fileprivate var waitingBytes = 0
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
    guard hasRoom(for: bytes.readableBytes) else { return cutOff() }
    output.waitingBytes += bytes.readableBytes
    context.write(Self.wrapOutboundOut(bytes), promise: nil)
  }

  private func checkCollected() {
    if !hasRoom(for: output.collected.readableBytes) { cutOff() }
  }

  /// Asks the channel only when the bound is reached.
  private func hasRoom(for count: Int) -> Bool {
    let limit = services.configuration.outboundBytes
    guard output.waitingBytes + count > limit, let options = context?.channel.syncOptions else { return true }
    output.waitingBytes = (try? options.getOption(.bufferedWritableBytes)) ?? output.waitingBytes
    return output.waitingBytes + count <= limit
  }

  /// Nothing more would arrive, so there is no use in an ERROR. Media goes on and the client can connect again.
  private func cutOff() {
    output = Output()
    leave(.slowReader)
    context?.close(promise: nil)
  }
}
