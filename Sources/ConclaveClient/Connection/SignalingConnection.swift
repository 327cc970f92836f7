package import Contract
import Foundation
package import MediaModel
package import NIOCore
import NIOPosix
import NIOSSL
import STOMP
import Synchronization

/// A device's STOMP connection to the server, which reconnects automatically: requests with replies, and events to acknowledge (protocol sections 2 and
/// 3).
package actor SignalingConnection {
  /// How long a reply may take.
  static let replyTimeout: Duration = .seconds(20)

  /// The state of the connection.
  package enum Status: Sendable, Hashable {
    case connected
    /// It broke and is being retried.
    case disconnected
    /// It is over permanently; the text is the server's.
    case ended(String)
  }

  /// While its reader is behind, the connection reads nothing more from the server. A pause of more than 19 s counts as a lost connection.
  package nonisolated let arrivals = ArrivalQueue()
  /// Only the newest two wait: if the second says that there is a connection, the first says that the previous one
  /// broke.
  package nonisolated let statuses: AsyncStream<Status>

  private let address: ServerAddress
  private let user: String
  private let device: String
  let token: @Sendable () async throws -> String
  private let group: any EventLoopGroup
  private let bodies: BodyDecoder
  private let statusSink: AsyncStream<Status>.Continuation

  /// Acknowledgements are written on any thread that has handled an event.
  private nonisolated let guardedChannel = Mutex<OpenChannel?>(nil)
  private nonisolated var openChannel: OpenChannel? {
    get { guardedChannel.withLock { $0 } }
    set { guardedChannel.withLock { $0 = newValue } }
  }
  private var connections = 0
  private var nextRequest = 0
  private var waiting: [String: Waiting] = [:]
  private var lastSeq: UInt64?
  private var loop: Task<Void, Never>?
  private var generator: any RandomNumberGenerator & Sendable = SystemRandomNumberGenerator()

  /// The destination of a reply.
  private enum Waiting {
    case request(CheckedContinuation<ByteBuffer, any Error>)
    case state(CallID, timeout: Task<Void, any Error>)
  }

  /// `token` is asked for a JWT at each connect, so that it can be a fresh one.
  package init(
    address: ServerAddress, user: String, device: String, group: any EventLoopGroup,
    work: PublicWork = PublicWork(capacity: 0), token: @escaping @Sendable () async throws -> String
  ) {
    self.address = address
    self.user = user
    self.device = device
    self.group = group
    bodies = BodyDecoder(work)
    self.token = token
    (statuses, statusSink) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(2))
  }

  /// Connects, and reconnects whenever the connection breaks, until `close`.
  package func open() {
    guard loop == nil else { return }
    loop = Task { await run() }
  }

  /// Breaks the connection, so that another one begins.
  package func restart() { openChannel?.close() }

  /// Sends DISCONNECT and ends the streams.
  package func close(reason: String = "closed") async {
    loop?.cancel()
    try? await openChannel?.disconnect()
    finish(reason)
  }

  /// Sends a request and returns the body of its reply.
  package func request<Reply: Decodable & Sendable>(
    _ request: Request, reply: Reply.Type
  ) async throws(SignalingError) -> Reply {
    do {
      let body = try await self.reply(to: request)
      return try bodies.decode(Reply.self, from: body)
    } catch let error as SignalingError {
      throw error
    } catch {
      throw .notUnderstood
    }
  }

  /// ACKs an event that was handled, or NACKs an envelope that did not open.
  package nonisolated func acknowledge(_ delivery: ReceivedEvent, accepted: Bool) {
    guard let openChannel, openChannel.number == delivery.connection else { return }
    // A switch of keys waits until the envelopes are acknowledged.
    var isAwaited = false
    if case .envelope = delivery.message.body { isAwaited = true }
    openChannel.acknowledge(delivery.frame, accepted: accepted, isAwaited: isAwaited)
  }

  /// Requests a call's state. The reply takes its place among the events, as an arrival: delivered separately, a state could overwrite events that were
  /// sent after it. Each request brings one arrival, so the caller's requests bound those that do not wait for room.
  package func askState(of call: CallID) {
    do {
      guard let openChannel else { throw SignalingError.disconnected }
      let (id, frame, timeout) = try prepare(.call(call, .state))
      waiting[id] = .state(call, timeout: timeout)
      openChannel.write(frame)
    } catch {
      arrivals.add(.state(call, .failure(.disconnected)))
    }
  }

  private func reply(to request: Request) async throws -> ByteBuffer {
    guard let openChannel else { throw SignalingError.disconnected }
    let (id, frame, timeout) = try prepare(request)
    defer { timeout.cancel() }
    return try await withCheckedThrowingContinuation { continuation in
      waiting[id] = .request(continuation)
      openChannel.write(frame)
    }
  }

  private func prepare(_ request: Request) throws -> (id: String, Frame, timeout: Task<Void, any Error>) {
    nextRequest += 1
    let id = String(nextRequest)
    let headers: Headers = ["request-id": id, "content-type": "application/json"]
    let (destination, body) = request.message
    let frame = Frame.send(
      to: destination, headers: headers, body: ByteBuffer(bytes: try JSONEncoder().encode(body)))
    let timeout = Task {
      try await Task.sleep(for: Self.replyTimeout)
      settle(id, .failure(.timedOut))
    }
    return (id, frame, timeout)
  }

  private func settle(_ id: String, _ result: Result<ByteBuffer, SignalingError>) {
    switch waiting.removeValue(forKey: id) {
    case .request(let continuation): continuation.resume(with: result.mapError { $0 as any Error })
    case .state(let call, let timeout):
      timeout.cancel()
      let state = result.flatMap { body in
        Result { try bodies.decode(CallState.self, from: body) }.mapError { _ in SignalingError.notUnderstood }
      }
      arrivals.add(.state(call, state))
    case nil: break
    }
  }
}

// MARK: - Connecting

extension SignalingConnection {
  /// The cause of one connection's end.
  private enum Ending { case lost, refused, final(String) }

  private func run() async {
    var failures = 0
    var backoff = Backoff()
    while !Task.isCancelled {
      let before = connections
      let ending = await serve()
      openChannel = nil
      for id in Array(waiting.keys) { settle(id, .failure(.disconnected)) }
      if Task.isCancelled { break }
      if case .final(let reason) = ending { return finish(reason) }
      failures = connections > before ? 0 : failures + 1
      if connections > before { backoff.succeeded() }
      if case .refused = ending, failures >= 3 { return finish("authentication failed") }
      statusSink.yield(.disconnected)
      try? await Task.sleep(for: backoff.next(using: &generator))
    }
  }

  /// One connection from its first byte to its last.
  private func serve() async -> Ending {
    let (inputs, source, demand) = FrameHandler.Inputs.make()
    guard let token = try? await token(), let channel = try? await connect(source, demand) else { return .lost }
    let hello = Frame.connect(
      host: address.host, passcode: token, device: device, versions: [.v12], heartBeat: FrameHandler.heartBeat)
    channel.writeAndFlush(FrameEncoder(version: .v12).encode(hello), promise: nil)
    var ending = Ending.lost
    for await frames in inputs {
      for frame in frames {
        switch frame.command {
        case .connected where isForThisDevice(frame): connected(frame, channel)
        case .connected:
          // Under another name it would get another device's rings, calls and devices.
          channel.close(promise: nil)
          return .final("the server took this device for another one")
        case .message: await message(frame)
        case .error: ending = Self.ending(frame)
        default: break
        }
      }
    }
    channel.close(promise: nil)
    return ending
  }

  private func connect(
    _ source: FrameHandler.Inputs.Sequence.Source, _ demand: FrameHandler.Demand
  ) async throws -> any Channel {
    let address = self.address
    let tls = try address.usesTLS ? NIOSSLContext(configuration: Self.clientTLS(address)) : nil
    let opened = group.any().makePromise(of: Void.self)
    do {
      let channel = try await ClientBootstrap(group: group)
        .channelOption(.socketOption(.tcp_nodelay), value: 1)
        .channelOption(
          .writeBufferWaterMark, value: .init(low: FrameHandler.writeLimit / 2, high: FrameHandler.writeLimit)
        )
        .connectTimeout(.seconds(10))
        .connect(host: address.host, port: address.port)
        // Not in the bootstrap's initializer: that runs for each address of the host, and the losers' handlers would end the winner's input.
        .flatMapThrowing { channel in
          guard channel.isActive else { throw ChannelError.eof }
          let pipeline = channel.pipeline.syncOperations
          if let tls {
            try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: address.certificateName))
          }
          if let path = address.webSocketPath {
            let opening = WebSocketOpening(of: address, path: path, opened: opened)
            try opening.addHandlers(to: channel) { FrameHandler(source, demand) }
          } else {
            try pipeline.addHandler(FrameHandler(source, demand))
            opened.succeed()
          }
          return channel
        }.get()
      try await opened.futureResult.get()
      return channel
    } catch {
      opened.fail(error)
      throw error
    }
  }

  static func clientTLS(_ address: ServerAddress) -> TLSConfiguration {
    var tls = TLSConfiguration.makeClientConfiguration()
    // Proxies that also speak HTTP/2 do not offer WebSockets over it to this client, which speaks HTTP/1.1 for recordings, too.
    if address.webSocketPath != nil { tls.applicationProtocols = ["http/1.1"] }
    return tls
  }

  private func connected(_ frame: Frame, _ channel: any Channel) {
    connections += 1
    let openChannel = OpenChannel(
      channel, version: frame.headers["version"].flatMap(Version.init) ?? .v10, number: connections)
    self.openChannel = openChannel
    openChannel.write(.subscribe(id: "replies", to: "/user/queue/replies"))
    openChannel.write(.subscribe(id: "events", to: "/user/queue/events", ack: .individual))
    statusSink.yield(.connected)
  }

  /// Whether the server connected the requested user and device.
  private func isForThisDevice(_ connected: Frame) -> Bool {
    Self.names(connected.headers["user-name"], connected.headers["device"], user, device)
  }

  static func names(_ namedUser: String?, _ namedDevice: String?, _ user: String, _ device: String) -> Bool {
    namedUser == user && namedDevice == device
  }

  private static func ending(_ error: Frame) -> Ending {
    let message = error.headers["message"] ?? ""
    if message.hasPrefix("Bad CONNECT") { return .refused }
    // A removed device that registered again by itself would undo what its user wanted.
    if message.hasPrefix("replaced by") || message.hasPrefix("this device was removed") { return .final(message) }
    return .lost
  }

  private func message(_ frame: Frame) async {
    if frame.headers["subscription"] == "replies" {
      reply(frame)
    } else if let event = event(frame) {
      await arrivals.send(.event(event))
    }
  }

  private func reply(_ frame: Frame) {
    guard let id = frame.headers["request-id"] else { return }
    guard frame.headers["status"] != "ok" else { return settle(id, .success(frame.body)) }
    guard let error = try? bodies.decode(LenientErrorReply.self, from: frame.body).error else {
      return settle(id, .failure(.notUnderstood))
    }
    if error.code == "call.crossed", let call = error.call { return settle(id, .failure(.crossed(call: call))) }
    settle(id, .failure(.refused(code: error.code, message: error.message)))
  }

  /// An error reply whose code may be any text: a newer server may know more codes.
  private struct LenientErrorReply: Decodable {
    struct Content: Decodable {
      var code: String
      var message: String
      var call: String?
    }
    var error: Content
  }

  /// nil if there is nothing to handle: it is then acknowledged.
  private func event(_ frame: Frame) -> ReceivedEvent? {
    guard let openChannel else { return nil }
    let redelivered = frame.headers["redelivered"] == "true"
    guard let seq = frame.headers["seq"].flatMap(UInt64.init),
      let name = frame.headers["event"].flatMap(EventName.init),
      let message = try? bodies.event(name, from: frame.body)
    else {
      // Something that a newer server sends and this client does not know.
      openChannel.acknowledge(frame, isAwaited: false)
      return nil
    }
    if let lastSeq, seq <= lastSeq, redelivered, name != .keysEnvelope {
      openChannel.acknowledge(frame, isAwaited: false)
      return nil
    }
    let gap = lastSeq.map { seq > $0 && seq - $0 > 1 } ?? false
    lastSeq = redelivered ? max(lastSeq ?? 0, seq) : seq
    return ReceivedEvent(
      message: message, seq: seq, followsGap: gap, frame: frame, connection: openChannel.number)
  }

  private func finish(_ reason: String) {
    for id in Array(waiting.keys) { settle(id, .failure(.disconnected)) }
    statusSink.yield(.ended(reason))
    statusSink.finish()
    arrivals.finish()
  }
}
