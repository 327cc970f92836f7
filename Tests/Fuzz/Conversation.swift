import Connections
import Contract
import Logging
import MediaModel
import NIOCore
import NIOEmbedded
import STOMP
import Synchronization

@testable import Listening
@testable import STOMPFront

import enum CallMessages.NodeCommand

// MARK: STOMP

/// A session of an admitted client, which gets back what it sends to a subscribed destination: subscriptions,
/// transactions, ACKs and time.
func driveSession(_ input: UnsafeMutableRawBufferPointer) {
  var configuration = Session.Configuration()
  configuration.subscriptions = 4
  configuration.transactions = 2
  configuration.framesInTransaction = 4
  configuration.transactionBytes = 1_024
  configuration.unacknowledged = 4
  var client = SessionClient(configuration)
  client.read(input.octets)
}

private struct SessionClient {
  private let configuration: Session.Configuration
  private var session: Session
  private var decoder = FrameDecoder(limits: FrameLimits())
  private var now: UInt64 = 1_000_000_000
  private var lastToken: UInt64 = 0
  /// Messages that wait for an ACK.
  private var waiting: Set<UInt64> = []
  private var isOver = false

  init(_ configuration: Session.Configuration) {
    self.configuration = configuration
    session = Session(configuration: configuration, now: now)
  }

  mutating func read(_ bytes: [UInt8]) {
    var bytes = ByteBuffer(bytes: bytes)
    decoder.append(&bytes)
    do {
      while !isOver, let frame = try decoder.next() {
        // A frame each second; a request for a RECEIPT takes longer, so that heart-beats and times run out.
        now += frame.headers["receipt"] == nil ? 1_000_000_000 : 12_000_000_000
        if let deadline = session.nextDeadline, deadline <= now { perform(session.handleTimeout(now: now)) }
        guard !isOver else { return }
        session.received(now: now)
        perform(session.handle(frame, admission: admission(of: frame), now: now))
        check()
      }
    } catch {
      perform(session.handle(error))
    }
  }

  private func admission(of frame: Frame) -> Session.Admission {
    guard let destination = frame.headers["destination"] else { return .allowed }
    if destination.hasPrefix("/asked"), frame.command == .subscribe { return .asked }
    if destination.hasPrefix("/once") { return .allowedOnce("once is enough") }
    return destination.hasPrefix("/no") ? .refused("not this one") : .allowed
  }

  private mutating func perform(_ actions: [Session.Action]) {
    for action in actions {
      guard !isOver else { fatalError("there is an action after the end") }
      switch action {
      case .authenticate:
        perform(
          session.accept(
            Welcome(session: "1", server: "s", user: "u", device: "d", expiresAt: 60_000_000_000), now: now))
        decoder.version = session.version
      case .write(let frame):
        sum &+= FrameEncoder(version: session.version).encode(frame).readableBytes
        session.wrote(now: now)
      case .heartBeat: session.wrote(now: now)
      case .ask(let subscription):
        perform(session.answer(refusal: subscription.destination.hasSuffix("!") ? "no" : nil))
      case .subscribed, .unsubscribed: break
      case .sent(let frame): deliver(frame)
      case .acknowledged(_, let token, _):
        guard waiting.remove(token) != nil else { fatalError("an ACK counts for no message, or a second time") }
      case .close: isOver = true
      }
    }
  }

  private mutating func deliver(_ frame: Frame) {
    let destination = frame.headers["destination"] ?? ""
    var message = SharedMessage(destination: destination, headers: frame.headers, body: frame.body)
    for subscription in session.subscriptions where subscription.destination == destination && !isOver {
      lastToken += 1
      var output = ByteBuffer()
      switch session.deliver(&message, to: subscription.key, token: lastToken, seq: lastToken, into: &output) {
      case .written(let isSettled):
        if !isSettled { waiting.insert(lastToken) }
        sum &+= output.readableBytes
      case .unknown: fatalError("a subscription is unknown")
      case .ended(let actions): perform(actions)
      }
    }
  }

  private func check() {
    precondition(session.isClosed == isOver)
    precondition(session.subscriptions.count <= configuration.subscriptions)
    precondition(session.transactionBytes <= configuration.transactionBytes)
  }
}

// MARK: HTTP

/// The pipeline of the HTTP port: requests and their answers, the upgrade, and STOMP over WebSocket after it.
func serveHTTP(_ input: UnsafeMutableRawBufferPointer) {
  let octets = input.octets
  wait {
    let loop = NIOAsyncTestingEventLoop()
    let pending = Pending()
    let listeners = Listeners(
      listening, group: loop, logger: Logger(label: "fuzz") { _ in SwiftLogNoOpLogHandler() },
      clock: { Timestamp(milliseconds: 1_000) })
    let clients = ConnectedClients(ClientLimits(), of: Incarnation(0), listeners, on: loop)
    let stomp = STOMPServer(
      front, listeners, clients, group: loop, authenticator: KnownUser(pending), sink: NoSink())
    let passing = Route(.under("/d"), methods: ["GET", "POST"], maximumBody: 64) { request, body in
      // The end of a body may never come, so nothing waits for its answer.
      do { for try await part in body { precondition(part.readableBytes <= 64) } } catch {
        return HTTPResponse(status: 400)
      }
      pending.begin()
      defer { pending.end() }
      return HTTPResponse(stream: HTTPStream(length: nil) { try await $0.write(ByteBuffer(string: request.path)) })
    }
    let pages = Route(.all) { request in
      pending.begin()
      defer { pending.end() }
      return HTTPResponse(text: request.path + (request.query ?? ""))
    }
    let service = HTTPService(listeners: listeners, webSockets: [stomp.webSocket], routes: [passing, pages])
    let channel = NIOAsyncTestingChannel(loop: loop)
    try? await loop.executeInContext { try HTTPHandler.add(to: channel, service) }
    try? await channel.connect(to: NIOCore.SocketAddress(ipAddress: "127.0.0.1", port: 1)).get()
    // A client whose bytes arrive in two pieces, and another whose second request arrives after the first answer.
    let cut = octets.firstRange(of: Array("\r\n\r\n".utf8))?.upperBound ?? octets.count / 2
    for piece in [octets[..<cut], octets[cut...]] {
      guard (try? await channel.writeInbound(ByteBuffer(bytes: piece))) != nil else { break }
      repeat { await loop.run() } while pending.isBusy
    }
    await loop.advanceTime(by: .seconds(1))
    _ = try? await channel.finish(acceptAlreadyClosed: true)
    // The loop's tasks would keep it alive.
    stomp.stop()
    clients.stop(message: "")
  }
}

private let listening: ListeningConfiguration = {
  var configuration = ListeningConfiguration()
  configuration.limits.httpBody = 512
  return configuration
}()

private let front: STOMPConfiguration = {
  var configuration = STOMPConfiguration()
  configuration.destinations = ["/topic/"]
  return configuration
}()

/// The answers being made on other threads.
private final class Pending: Sendable {
  private let count = Mutex(0)
  func begin() { count.withLock { $0 += 1 } }
  func end() { count.withLock { $0 -= 1 } }
  var isBusy: Bool { count.withLock { $0 > 0 } }
}

private struct KnownUser: Authenticator {
  private let pending: Pending
  init(_ pending: Pending) { self.pending = pending }

  func claims(of token: String) async -> Claims? {
    pending.begin()
    defer { pending.end() }
    guard let user = UserID(token) else { return nil }
    return Claims(user: user, name: nil, device: nil, isService: false, expiresAt: Timestamp(milliseconds: 100_000))
  }
}

private struct NoSink: SignalingSink {
  func submit(_ command: NodeCommand) {}
}
