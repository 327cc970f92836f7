import NIOCore
import STOMP
import Synchronization

/// Converts a TCP connection into frames and back, sends heart-beats, and closes the connection when the server's stop. Lives on the channel's event loop.
///
/// Its memory is bounded in both directions: while `Inputs.highest` reads wait for the connection's owner, nothing is read from the socket, and a server that
/// does not read what is written to it loses the connection.
final class FrameHandler: ChannelDuplexHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  /// The frames of one read, in their order, for the connection's owner. The sequence ends with the connection.
  enum Inputs {
    /// Reads that may wait, and how few wait when reading resumes.
    static let highest = 32
    static let lowest = 8

    typealias Sequence = NIOAsyncSequenceProducer<
      [Frame], NIOAsyncSequenceProducerBackPressureStrategies.HighLowWatermark, Demand
    >

    static func make() -> (Sequence, Sequence.Source, Demand) {
      let demand = Demand()
      let new = Sequence.makeSequence(
        elementType: [Frame].self,
        backPressureStrategy: .init(lowWatermark: lowest, highWatermark: highest), finishOnDeinit: true,
        delegate: demand)
      return (new.sequence, new.source, demand)
    }
  }

  /// Tells the handler that its frames are wanted again.
  final class Demand: NIOAsyncSequenceProducerDelegate {
    fileprivate let resume = Mutex<(@Sendable () -> Void)?>(nil)

    // The lock is held during the call: once the handler is removed, its event loop may end and accept no more work.
    func produceMore() { resume.withLock { $0?() } }
    func didTerminate() { produceMore() }
  }

  static let heartBeat = HeartBeat(sends: 10_000, wants: 10_000)
  /// Bytes that may be written before the server reads any of them: more than the largest request.
  static let writeLimit = 4 << 20

  private let inputs: Inputs.Sequence.Source
  private let demand: Demand
  /// Whether the owner has more than it can handle, and whether a read was deferred for that.
  private var isPaused = false
  private var isReadDue = false
  private var decoder = FrameDecoder(version: .v12, limits: .client)
  private var timers: HeartBeatTimers?
  private var beat: Scheduled<Void>?

  init(_ inputs: Inputs.Sequence.Source, _ demand: Demand) {
    self.inputs = inputs
    self.demand = demand
  }

  func handlerAdded(context: ChannelHandlerContext) {
    let loop = context.eventLoop
    let handler = NIOLoopBound(self, eventLoop: loop)
    let context = NIOLoopBound(context, eventLoop: loop)
    demand.resume.withLock { $0 = { loop.execute { handler.value.resume(context: context.value) } } }
  }

  func handlerRemoved(context: ChannelHandlerContext) { demand.resume.withLock { $0 = nil } }

  func read(context: ChannelHandlerContext) {
    if isPaused { isReadDue = true } else { context.read() }
  }

  private func resume(context: ChannelHandlerContext) {
    isPaused = false
    if isReadDue { context.read() }
    isReadDue = false
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if !context.channel.isWritable { context.close(promise: nil) }
    context.fireChannelWritabilityChanged()
  }

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
    if !frames.isEmpty, inputs.yield(frames) == .stopProducing { isPaused = true }
    // Last, because it may end the inputs immediately.
    if isBroken { context.close(promise: nil) }
  }

  func channelInactive(context: ChannelHandlerContext) {
    beat?.cancel()
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
    // Requests are written bypassing this handler; a beat beside them does no harm.
    if let due = timers?.beatDue, due <= now {
      context.writeAndFlush(wrapOutboundOut(FrameEncoder.heartBeat), promise: nil)
      timers?.wrote(now: now)
    }
    schedule(context: context)
  }
}
