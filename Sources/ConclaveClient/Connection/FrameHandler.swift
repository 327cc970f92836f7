import NIOCore
import STOMP

/// Turns a TCP connection into frames and back, beats its heart, and closes it when the server's stops. Lives on the channel's event loop.
final class FrameHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// An input to the connection's owner.
  enum Input: Sendable {
    /// The frames of one read, in their order.
    case frames([Frame])
    /// Nothing more comes.
    case closed
  }

  static let heartBeat = HeartBeat(sends: 10_000, wants: 10_000)

  private let inputs: AsyncStream<Input>.Continuation
  private var decoder = FrameDecoder(version: .v12, limits: .client)
  private var timers: HeartBeatTimers?
  private var beat: Scheduled<Void>?

  init(inputs: AsyncStream<Input>.Continuation) { self.inputs = inputs }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    var bytes = unwrapInboundIn(data)
    timers?.received(now: NIODeadline.now().uptimeNanoseconds)
    decoder.append(&bytes)
    var frames: [Frame] = []
    var isBroken = false
    do {
      while let frame = try decoder.next() {
        if frame.command == .connected { connected(frame, context: context) }
        frames.append(frame)
      }
    } catch {
      isBroken = true
    }
    if !frames.isEmpty { inputs.yield(.frames(frames)) }
    // Last, because it may end the inputs at once.
    if isBroken { context.close(promise: nil) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    beat?.cancel()
    inputs.yield(.closed)
    inputs.finish()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  private func connected(_ frame: Frame, context: ChannelHandlerContext) {
    decoder.version = frame.headers["version"].flatMap(Version.init) ?? .v10
    guard let server = HeartBeat(header: frame.headers["heart-beat"]) else { return }
    var timers = Self.heartBeat.agreed(with: server)
    timers.start(now: NIODeadline.now().uptimeNanoseconds)
    self.timers = timers
    schedule(context: context)
  }

  private func schedule(context: ChannelHandlerContext) {
    guard let timers, let due = [timers.beatDue, timers.peerDead].compactMap({ $0 }).min() else { return }
    let handler = NIOLoopBound(self, eventLoop: context.eventLoop)
    let context = NIOLoopBound(context, eventLoop: context.eventLoop)
    beat = context.value.eventLoop.scheduleTask(deadline: .uptimeNanoseconds(due)) {
      handler.value.beatDue(context: context.value)
    }
  }

  private func beatDue(context: ChannelHandlerContext) {
    let now = NIODeadline.now().uptimeNanoseconds
    if let dead = timers?.peerDead, dead <= now {
      context.close(promise: nil)
      return
    }
    // Requests are written past this handler; a beat beside them does no harm.
    if let due = timers?.beatDue, due <= now {
      context.writeAndFlush(wrapOutboundOut(FrameEncoder.heartBeat), promise: nil)
      timers?.wrote(now: now)
    }
    schedule(context: context)
  }
}
