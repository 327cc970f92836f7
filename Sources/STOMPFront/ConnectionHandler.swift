import CallMessages
import Connections
import Listening
import Logging
import MediaModel
import NIOCore
import Octets
import STOMP

/// One STOMP connection, over TCP or WebSocket: bytes in, one buffer per frame out. It carries out the actions of its
/// `Session`.
///
/// Confined to its channel's event loop; deliveries come through the `ConnectionTable`.
final class ConnectionHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer
  typealias OutboundOut = ByteBuffer

  let id: SessionID
  let services: STOMPServices
  /// The limits of this connection for its whole life.
  let configuration: FixedConfiguration
  var session: Session
  var decoder: FrameDecoder
  var rate: TokenBucket
  var messageRate: TokenBucket
  /// The client of the connection, from the login on.
  private var identity: Identity?
  var shareUse = ShareUse()
  /// Events that the current frames acknowledge.
  private var acknowledged: (seqs: [UInt64], accepted: Bool) = ([], true)
  private(set) var loop: Loop?
  /// Shared by the connections of the loop.
  private(set) var written = WrittenEvent()
  /// Operations for the broker, collected while frames are read.
  var operations: [Broker.Operation] = []
  /// The addresses of the connection's subscriptions to the broker.
  var addresses: [UInt64: Broker.Address] = [:]
  private(set) var context: ChannelHandlerContext?
  /// Notified when the client has logged in.
  let gate: LoginGate?
  private var timer: (task: Scheduled<Void>, deadline: UInt64)?
  private var linger: Scheduled<Void>?
  var output = Output()
  private var isReading = true
  private var pauseEnd: Scheduled<Void>?
  private var isInputClosed = false
  private var phase = Phase.open

  private enum Phase { case open, loggedIn, ended }

  init(services: STOMPServices, gate: LoginGate?, now: UInt64) {
    self.services = services
    configuration = services.configuration
    self.gate = gate
    id = services.clients.sessionIDs.next()
    session = Session(configuration: configuration.session, now: now)
    decoder = FrameDecoder(limits: configuration.limits.frameBeforeLogin)
    rate = TokenBucket(
      perSecond: configuration.limits.requestsPerSecond, burst: configuration.limits.requestBurst)
    messageRate = TokenBucket(
      perSecond: configuration.limits.messagesPerSecond, burst: configuration.limits.messageBurst)
  }

  var isEnded: Bool { phase == .ended }

  /// The user of the connection, from the login on.
  var user: UserID? { identity?.device.user }

  /// The allowance shared by the user's connections, from the login to the end; nil for services.
  var share: UserShare? { shareUse.share }

  var now: UInt64 { context?.eventLoop.now.uptimeNanoseconds ?? 0 }

  // MARK: The channel

  func handlerAdded(context: ChannelHandlerContext) {
    self.context = context
    loop = services.broker.loop(of: context.eventLoop)
    if let loop { written = loop.written }
    services.clients.connections.insert(entry(context), for: id)
    armTimer()
  }

  func entry(_ context: ChannelHandlerContext) -> ConnectionTable.Entry {
    ConnectionTable.Entry(self, on: context.eventLoop)
  }

  func handlerRemoved(context: ChannelHandlerContext) {
    leave(.gone)
    forgetBacklog()
    timer?.task.cancel()
    linger?.cancel()
    pauseEnd?.cancel()
    self.context = nil
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard phase != .ended else { return services.counters.drop(.afterEnd) }
    var bytes = Self.unwrapInboundIn(data)
    session.received(now: now)
    decoder.append(&bytes)
    readFrames()
  }

  func channelInactive(context: ChannelHandlerContext) {
    leave(.gone)
    context.fireChannelInactive()
  }

  func channelWritabilityChanged(context: ChannelHandlerContext) {
    if context.channel.isWritable, output.reportedBytes > 0 { reportBacklog() }
    context.fireChannelWritabilityChanged()
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if event as? ChannelEvent == .inputClosed {
      isInputClosed = true
      leave(.gone)
      closeWhenWritten()
    }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // A reset, or failed TLS. The error may name addresses, so it is not logged.
    leave(.gone)
    context.close(promise: nil)
  }

  // MARK: Frames in

  /// Passes whole frames to the session, one at a time because each may change how the next is read.
  func readFrames() {
    do {
      while phase != .ended, !session.isWaiting, pauseEnd == nil, let frame = try decoder.next() {
        services.counters.update { $0.framesIn += 1 }
        if let wait = shareUse.countFrame(now: now) { pause(for: wait) }
        let destination = Destination(of: frame)
        let admission = configuration.rules.admission(
          of: destination, for: frame, isService: identity?.isService == true, isGuest: identity?.guestOf != nil)
        perform(session.handle(frame, admission: admission, now: now), of: destination)
      }
    } catch {
      if error.reason == .tls {
        services.log.log(.tlsOnPlainPort, .notice, "a TLS client came to the STOMP port without TLS")
      }
      perform(session.handle(error))
    }
    submitAcknowledgements()
    reportHeld()
    flushOperations()
    flush()
    updateReading()
    armTimer()
  }

  /// Ends the connection if the user's connections hold too many bytes of frames that are not handled yet.
  private func reportHeld() {
    guard phase != .ended, !shareUse.hold(decoder.bufferedBytes + session.transactionBytes) else { return }
    services.counters.drop(.userInboundFull)
    perform(
      session.fail(Violation(.limit, "this user sends too many unfinished frames and transactions: finish some first")))
  }

  /// Carries out the session's actions, without flushing.
  /// - Parameter destination: of the frame that caused the actions; nil if it was not read for them, as for a SEND that a COMMIT releases.
  func perform(_ actions: [Session.Action], of destination: Destination? = nil) {
    for action in actions {
      // One action may end the connection; a subsequent RECEIPT must not follow the ERROR.
      guard phase != .ended else { return }
      switch action {
      case .authenticate(let request): authenticate(request)
      case .write(let frame):
        services.counters.update { $0.framesOut += 1 }
        write(FrameEncoder(version: session.version).encode(frame))
      case .heartBeat: write(FrameEncoder.heartBeat)
      case .ask(let subscription): ask(subscription, destination)
      case .subscribed(let subscription): subscribed(subscription, destination)
      case .unsubscribed(let subscription): unsubscribed(subscription)
      case .sent(let frame):
        switch destination ?? Destination(of: frame) {
        case .request(let path): request(frame, path)
        case .userQueue(let user, let name): send(frame, as: "/user/queue/\(name)", to: .user(user, name))
        case .app(let address): send(frame, as: frame.headers["destination"] ?? "", to: address)
        case .channel, .ownQueue, nil: break
        }
      case .acknowledged(let receiver, let token, let accepted):
        if receiver.destination == Destination.events {
          acknowledge(token, accepted: accepted)
        } else {
          settle(token, of: receiver.key, accepted: accepted)
        }
      case .close(let end): finish(end)
      }
    }
  }

  // MARK: Time

  /// Makes the session be called at its next deadline. Deadlines usually move away, so an earlier timer is left to find that out.
  func armTimer() {
    guard let context, let deadline = session.nextDeadline else { return }
    if let timer, timer.deadline <= deadline { return }
    timer?.task.cancel()
    let task = context.eventLoop.assumeIsolated().scheduleTask(deadline: .uptimeNanoseconds(deadline)) {
      [weak self] () -> Void in
      self?.timerFired()
    }
    timer = (task, deadline)
  }

  private func timerFired() {
    timer = nil
    perform(session.handleTimeout(now: now))
    flush()
    armTimer()
  }

  // MARK: Login and end

  /// The client has logged in.
  /// - Parameter share: the user's limits; nil for services.
  func logIn(_ identity: Identity, _ share: UserShare?, expiresAt: UInt64) {
    phase = .loggedIn
    self.identity = identity
    shareUse.begin(share)
    gate?.open()
    decoder.limits = configuration.limits.frame
    services.counters.update { $0.sessions += 1 }
    services.logger.debug("logged in", metadata: ["session": "\(id.number)"])
    services.clients.connections.logIn(id, share)
    submit(.connect(id, identity))
    let welcome = Welcome(
      session: String(id.number), server: configuration.serverName, user: identity.device.user.text,
      device: identity.device.device.text, expiresAt: expiresAt)
    perform(session.accept(welcome, now: now))
    decoder.version = session.version
  }

  func submit(_ command: NodeCommand) {
    submitAcknowledgements()
    if phase == .loggedIn { services.sink.submit(command) }
  }

  /// Consecutive acknowledgements are one command: a client sends dozens of them a second in a large call.
  private func acknowledge(_ seq: UInt64, accepted: Bool) {
    if acknowledged.accepted != accepted { submitAcknowledgements() }
    acknowledged.seqs.append(seq)
    acknowledged.accepted = accepted
  }

  private func submitAcknowledgements() {
    guard !acknowledged.seqs.isEmpty else { return }
    let seqs = exchange(&acknowledged.seqs, with: [])
    if phase == .loggedIn { services.sink.submit(.acknowledge(id, seqs: seqs, accepted: acknowledged.accepted)) }
  }

  /// Ends the session and lets written bytes arrive: writing stops, and incoming bytes are read and discarded for a bounded time. If it closed
  /// immediately, the kernel would answer unread bytes with a reset, which destroys the ERROR on its way.
  private func finish(_ end: Session.End) {
    leave(SignalingStatistics.Ending(end))
    guard let context else { return }
    flush()
    context.triggerUserOutboundEvent(WebSocketEnd(end.closeCode), promise: nil)
    if isInputClosed { return closeWhenWritten() }
    updateReading()
    linger = context.eventLoop.assumeIsolated().scheduleTask(
      in: .nanoseconds(services.listeners.configuration.linger.nanoseconds)
    ) { [weak self] in
      self?.context?.close(promise: nil)
    }
    context.close(mode: .output, promise: nil)
  }

  private func closeWhenWritten() {
    guard let context else { return }
    // An empty write is complete when everything before it is.
    let promise = context.eventLoop.makePromise(of: Void.self)
    promise.futureResult.assumeIsolated().whenComplete { [weak self] _ in self?.context?.close(promise: nil) }
    context.writeAndFlush(wrap(ByteBuffer(), isText: true), promise: promise)
  }

  /// The session is over for the application. Takes effect once.
  func leave(_ ending: SignalingStatistics.Ending) {
    guard phase != .ended else { return }
    submit(.disconnect(id))
    let wasLoggedIn = phase == .loggedIn
    phase = .ended
    for key in addresses.keys { unsubscribe(key) }
    flushOperations()
    shareUse.end()
    services.clients.connections.remove(id)
    timer?.task.cancel()
    timer = nil
    services.counters.update { statistics in
      statistics.endings[ending, default: 0] += 1
      if wasLoggedIn { statistics.sessions -= 1 }
    }
    let metadata: Logger.Metadata = ["session": "\(id.number)", "ending": "\(ending.rawValue)"]
    if wasLoggedIn {
      services.logger.debug("ended", metadata: metadata)
    } else {
      services.log.log(.ending, .debug, "ended before the login", metadata)
    }
  }

  // MARK: Back pressure

  /// Reads nothing while an answer is awaited or the client has sent too fast, so that it cannot fill the memory
  /// meanwhile.
  func updateReading() {
    let reads = phase == .ended || (!session.isWaiting && pauseEnd == nil)
    guard reads != isReading else { return }
    isReading = reads
    try? context?.channel.syncOptions?.setOption(.autoRead, value: reads)
  }

  /// Handles no frame for this time, at most a second: the client's heart-beats are then checked.
  func pause(for nanoseconds: UInt64) {
    guard pauseEnd == nil, let context else { return }
    let time = TimeAmount.nanoseconds(Int64(min(nanoseconds, 1_000_000_000)))
    pauseEnd = context.eventLoop.assumeIsolated().scheduleTask(in: time) { [weak self] in
      self?.pauseEnd = nil
      self?.readFrames()
    }
  }
}
