import NIOCore
import STOMP
import Synchronization

/// One connection to the server while it is open. Any thread may write.
///
/// Acknowledgements for which nobody waits are sent together: in a call of a thousand each device gets dozens of events a second, and a write for each costs
/// both sides more than the event.
final class OpenChannel: Sendable {
  /// How long an acknowledgement may wait for others, or for a request. The server keeps 1,000 events for a device, many times as many as arrive meanwhile.
  private static let patience = TimeAmount.milliseconds(100)
  /// Bytes of acknowledgements from which on they no longer wait.
  private static let limit = 8 << 10

  /// The ordinal of this connection among the device's.
  let number: Int
  private let channel: any Channel
  private let version: Version
  private let acknowledgements = Mutex(Acknowledgements())

  private struct Acknowledgements {
    var bytes = ByteBuffer()
    var isScheduled = false
  }

  init(_ channel: any Channel, version: Version, number: Int) {
    self.channel = channel
    self.version = version
    self.number = number
  }

  func write(_ frame: Frame) { channel.writeAndFlush(bytes(of: frame), promise: nil) }

  /// ACKs or NACKs an event: immediately if the server waits for it, otherwise within `patience`.
  func acknowledge(_ event: Frame, accepted: Bool = true, isAwaited: Bool) {
    let frame = Frame.acknowledge(event, accepted: accepted, version: version)
    guard !isAwaited else { return write(frame) }
    let (isFull, isFirst) = acknowledgements.withLock { waiting in
      waiting.bytes.writeImmutableBuffer(FrameEncoder(version: version).encode(frame))
      defer { waiting.isScheduled = true }
      return (waiting.bytes.readableBytes >= Self.limit, !waiting.isScheduled)
    }
    if isFull { flush() }
    if isFirst { channel.eventLoop.scheduleTask(in: Self.patience) { self.timeout() } }
  }

  /// Sends DISCONNECT; returns when the connection is closed.
  func disconnect() async throws {
    try await channel.writeAndFlush(bytes(of: .disconnect()))
    try await channel.close()
  }

  /// Breaks the connection.
  func close() { channel.close(promise: nil) }

  private func timeout() {
    acknowledgements.withLock { $0.isScheduled = false }
    flush()
  }

  private func flush() {
    let bytes = takeAcknowledgements()
    if bytes.readableBytes > 0 { channel.writeAndFlush(bytes, promise: nil) }
  }

  /// A frame, preceded by the waiting acknowledgements.
  private func bytes(of frame: Frame) -> ByteBuffer {
    var bytes = takeAcknowledgements()
    bytes.writeImmutableBuffer(FrameEncoder(version: version).encode(frame))
    return bytes
  }

  private func takeAcknowledgements() -> ByteBuffer {
    acknowledgements.withLock { waiting in
      defer { waiting.bytes = ByteBuffer() }
      return waiting.bytes
    }
  }
}
