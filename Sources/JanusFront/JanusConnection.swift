import JSON
import JanusAPI
import Listening
import NIOCore
import NIOWebSocket
import Octets

/// One WebSocket: each message is a request. Requests are passed on in their order, also while the secrets of one are being judged.
///
/// Confined to its channel's event loop.
final class JanusConnection: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = WebSocketFrame

  private let services: JanusServices
  private let gate: LoginGate
  private let number: UInt64
  private var context: ChannelHandlerContext?
  private var rate: TokenBucket
  private var judged = JudgedSecrets()
  private var waiting = CircularBuffer<JSONTree>()
  private var isJudging = false
  private var isLoggedIn = false
  private var isReading = true
  private var pauseEnd: Scheduled<Void>?
  private var hasEnded = false
  private var unflushed = false

  init(_ services: JanusServices, gate: LoginGate) {
    self.services = services
    self.gate = gate
    number = services.clients.nextNumber()
    rate = TokenBucket(
      perSecond: services.configuration.requestsPerSecond, burst: services.configuration.requestBurst)
  }

  private var requester: Requester { .socket(number) }

  // MARK: The channel

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    let loop = context.eventLoop
    let connection = NIOLoopBound(self, eventLoop: loop)
    services.clients.add(requester) { message in
      loop.execute { connection.value.write(message) }
    }
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    end(.broken)
    pauseEnd?.cancel()
    self.context = nil
  }

  func channelInactive(context: ChannelHandlerContext) {
    end(.broken)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    end(.broken)
    context.close(promise: nil)
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event is WebSocketClosed { end(.closed) }
    context.fireUserInboundEventTriggered(event)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !hasEnded else { return }
    let bytes = Self.unwrapInboundIn(data)
    do {
      waiting.append(try JSONTree(reading: bytes))
      submitWaiting()
    } catch {
      services.sink.submit(.unreadable(requester, reason: "Invalid JSON: \(error.reason)"))
    }
    if let wait = rate.owe(now: context.eventLoop.now.uptimeNanoseconds) { pause(for: wait) }
    updateReading()
  }

  private func end(_ ending: SocketEnding) {
    guard !hasEnded else { return }
    hasEnded = true
    services.clients.remove(requester)
    services.sink.submit(.socketEnded(number, ending))
  }

  // MARK: Requests

  private func submitWaiting() {
    while !isJudging, !hasEnded, let request = waiting.first, let context {
      let secrets = request.secrets
      guard let grant = judged.grant(for: secrets, now: context.eventLoop.now.uptimeNanoseconds) else {
        return judge(secrets, context)
      }
      waiting.removeFirst()
      if grant.hasSecret || grant.token != nil || services.isOpen { logIn(context) }
      services.sink.submit(.request(JanusRequest(from: requester, value: request, grant: grant)))
    }
  }

  private func judge(_ secrets: JanusSecrets, _ context: ChannelHandlerContext) {
    isJudging = true
    let loop = context.eventLoop
    let connection = NIOLoopBound(self, eventLoop: loop)
    Task { [judge = services.judge] in
      let grant = await judge.grant(for: secrets)
      loop.execute { connection.value.judged(secrets, grant) }
    }
  }

  private func judged(_ secrets: JanusSecrets, _ grant: Grant) {
    isJudging = false
    guard !hasEnded, let context else { return }
    judged.note(grant, for: secrets, now: context.eventLoop.now.uptimeNanoseconds)
    submitWaiting()
    updateReading()
  }

  /// No other connection takes its place from now on.
  private func logIn(_ context: ChannelHandlerContext) {
    guard !isLoggedIn else { return }
    isLoggedIn = true
    gate.open()
    if !services.listeners.logIn(context.channel) { context.close(promise: nil) }
  }

  // MARK: Back pressure

  private func updateReading() {
    let reads = !isJudging && pauseEnd == nil
    guard reads != isReading else { return }
    isReading = reads
    try? context?.channel.syncOptions?.setOption(.autoRead, value: reads)
  }

  private func pause(for nanoseconds: UInt64) {
    guard pauseEnd == nil, let context else { return }
    let time = TimeAmount.nanoseconds(Int64(min(nanoseconds, 1_000_000_000)))
    pauseEnd = context.eventLoop.assumeIsolated().scheduleTask(in: time) { [weak self] in
      self?.pauseEnd = nil
      self?.updateReading()
    }
  }

  // MARK: Output

  private func write(_ message: JSONTree) {
    guard !hasEnded, let context else { return }
    let bytes = message.written
    let buffered = (try? context.channel.syncOptions?.getOption(.bufferedWritableBytes)) ?? 0
    guard buffered + bytes.readableBytes <= services.configuration.outbound else {
      services.listeners.counters.drop(.slowJanusReader)
      end(.broken)
      return context.close(promise: nil)
    }
    context.write(Self.wrapOutboundOut(WebSocketFrame(fin: true, opcode: .text, data: bytes)), promise: nil)
    guard !unflushed else { return }
    // The messages of one command leave together.
    unflushed = true
    context.eventLoop.assumeIsolated().execute { [weak self] in
      self?.unflushed = false
      self?.context?.flush()
    }
  }
}

/// The last judgment of a connection, which stands for some seconds: most requests carry the same secrets.
struct JudgedSecrets {
  private static let life: UInt64 = 10_000_000_000
  private var last: (secrets: JanusSecrets, grant: Grant, until: UInt64)?

  func grant(for secrets: JanusSecrets, now: UInt64) -> Grant? {
    guard let last, last.secrets == secrets, now < last.until else { return nil }
    return last.grant
  }

  mutating func note(_ grant: Grant, for secrets: JanusSecrets, now: UInt64) {
    last = (secrets, grant, now + Self.life)
  }
}
