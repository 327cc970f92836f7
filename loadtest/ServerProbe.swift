import ConclaveClient
import MediaModel
import NIOCore
import NIOPosix
import NIOSSL
import Synchronization

/// One connection before the test, to see whether a server answers there and accepts the tokens. Its messages say what
/// to change.
struct ServerProbe: Sendable {
  struct Failure: Error, CustomStringConvertible { var description: String }

  /// The outcome of the connection.
  enum Answer: Sendable {
    /// The first bytes received, up to the end of a STOMP frame if there is one.
    case bytes([UInt8])
    /// It was closed before any byte came.
    case closed
    /// Nothing came in this time.
    case silence(Duration)
    case notConnected(String)
    case tlsFailed(String)
  }

  let host: String
  let port: Int
  let usesTLS: Bool

  private static let silenceLimit = Duration.seconds(5)
  private static let answerLimit = 4_096

  /// Signs in with the CONNECT frame, and closes the connection.
  /// - Throws: `Failure` when a test there would be pointless.
  func check(_ connectFrame: [UInt8], within limit: Duration) async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let answer = await answer(to: connectFrame, group, within: min(limit, Self.silenceLimit))
    try? await group.shutdownGracefully()
    if let problem = problem(with: answer) { throw Failure(description: problem) }
  }

  private func answer(
    to connectFrame: [UInt8], _ group: MultiThreadedEventLoopGroup, within limit: Duration
  ) async -> Answer {
    let result = group.next().makePromise(of: Answer.self)
    let (usesTLS, host) = (usesTLS, host)
    let bootstrap = ClientBootstrap(group: group)
      .connectTimeout(.nanoseconds(limit.nanoseconds))
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if usesTLS {
            let context = try NIOSSLContext(configuration: .makeClientConfiguration())
            let name = host.contains(where: \.isLetter) && !host.contains(":") ? host : nil
            try channel.pipeline.syncOperations.addHandler(NIOSSLClientHandler(context: context, serverHostname: name))
          }
          try channel.pipeline.syncOperations.addHandler(FirstFrame(connectFrame, result, limit))
        }
      }
    do {
      let channel = try await bootstrap.connect(host: host, port: port).get()
      let answer = try? await result.futureResult.get()
      try? await channel.close()
      return answer ?? .closed
    } catch {
      result.succeed(.closed)
      return .notConnected(Self.words(error))
    }
  }

  private static func words(_ error: any Error) -> String {
    guard let error = error as? NIOConnectionError else { return "\(error)" }
    if let first = error.connectionErrors.first {
      if let failure = first.error as? IOError, failure.errnoCode == ECONNREFUSED { return "connection refused" }
      return "\(first.error)"
    }
    return "there is no such host"
  }

  /// Reads up to the NUL that ends a STOMP frame.
  private final class FirstFrame: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let connectFrame: [UInt8]
    private let result: EventLoopPromise<Answer>
    private let limit: Duration
    private var bytes: [UInt8] = []

    init(_ connectFrame: [UInt8], _ result: EventLoopPromise<Answer>, _ limit: Duration) {
      self.connectFrame = connectFrame
      self.result = result
      self.limit = limit
    }

    func channelActive(context: ChannelHandlerContext) {
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(bytes: connectFrame)), promise: nil)
      let (result, limit) = (result, limit)
      let bound = NIOLoopBound(self, eventLoop: context.eventLoop)
      context.eventLoop.scheduleTask(in: .nanoseconds(limit.nanoseconds)) {
        let bytes = bound.value.bytes
        result.succeed(bytes.isEmpty ? .silence(limit) : .bytes(bytes))
      }
      context.fireChannelActive()
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      bytes += unwrapInboundIn(data).readableBytesView.prefix(ServerProbe.answerLimit - bytes.count)
      if bytes.contains(0) || bytes.count >= ServerProbe.answerLimit { result.succeed(.bytes(bytes)) }
    }

    func channelInactive(context: ChannelHandlerContext) {
      result.succeed(bytes.isEmpty ? .closed : .bytes(bytes))
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
      // The connection itself shows the other problems.
      if error is NIOSSLError || error is BoringSSLError { result.succeed(.tlsFailed("\(error)")) }
      context.close(promise: nil)
    }
  }
}

// MARK: - Words

extension ServerProbe {
  private var place: String { "\(host):\(port)" }

  /// The problem and its solution; nil when the server accepted the connection.
  func problem(with answer: Answer) -> String? {
    switch answer {
    case .bytes(let bytes): return problem(with: bytes)
    case .closed:
      return "\(place) closed the connection without an answer: \(portAdvice), or look at the server's log and limits"
    case .silence(let time): return "\(place) did not answer CONNECT in \(time): \(portAdvice)"
    case .notConnected(let words):
      return "\(place): \(words); start the server, or give its address with --url (its configuration's listen.stomp)"
    case .tlsFailed(let words):
      if words.contains("CERTIFICATE_VERIFY") {
        return
          "\(place): its certificate is not trusted; use the name that is in it, or add its issuer to the system's authorities"
      }
      return "\(place): TLS failed (\(words)); a port without TLS is stomp://, the one with it listen.stompTLS"
    }
  }

  private var portAdvice: String {
    "is this the server's STOMP port? It is \(usesTLS ? "listen.stompTLS, usually 61614" : "listen.stomp, usually 61613")"
  }

  private func problem(with bytes: [UInt8]) -> String? {
    let text = String(decoding: bytes.prefix { $0 != 0 }.drop { $0 == 10 || $0 == 13 }, as: UTF8.self)
    if text.hasPrefix("CONNECTED") { return nil }
    if text.hasPrefix("ERROR") { return problem(withError: text) }
    if text.hasPrefix("HTTP/") { return "\(place) is an HTTP port: \(portAdvice)" }
    // An alert or a handshake record (RFC 8446 section 5.1).
    if bytes.count >= 2, bytes[0] == 0x15 || bytes[0] == 0x16, bytes[1] == 3 {
      return "\(place) is a TLS port: write stomps:// in --url, with a host name that is in its certificate"
    }
    let line = text.prefix { !$0.isNewline }.filter { $0.isASCII && !($0.asciiValue ?? 0 < 32) }.prefix(60)
    return "\(place) speaks another protocol (\(line.isEmpty ? "\(bytes.count) bytes" : "\"\(line)\"")): \(portAdvice)"
  }

  private func problem(withError frame: String) -> String {
    let message =
      frame.split(whereSeparator: \.isNewline).first { $0.hasPrefix("message:") }?.dropFirst("message:".count)
      ?? "no reason"
    guard message.contains("auth") || message.contains("Bad CONNECT") else {
      return "\(place) refused the connection: \(message); look at the server's log and limits"
    }
    return """
      \(place) refused the token: \(message); mint tokens with this server's secret (--state with the folder that its \
      configuration names, or --secret), or take its back end's own (--tokens)
      """
  }
}
