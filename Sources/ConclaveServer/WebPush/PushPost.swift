import Contract
import MediaModel
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL

/// POSTs to push services, each over a separate connection to an address that was looked up and checked just before. Redirects are not followed, and only the status
/// of an answer is used.
final class PushPost: Sendable {
  enum Failure: String, Error, CaseIterable {
    /// The push service no longer knows the subscription.
    case gone
    /// It will not accept the push, however often it is sent.
    case refused
    /// It asked to retry later, or failed itself.
    case busy
    /// The name resolves to an address to which the server does not connect.
    case address
    /// No address, no connection, no TLS, or no readable answer.
    case unreachable
    case timeout
    /// The content cannot be encrypted for the subscription.
    case key

    var mayPass: Bool { [.busy, .unreachable, .timeout].contains(self) }
  }

  static let timeout = TimeAmount.seconds(10)
  private static let connectTimeout = TimeAmount.seconds(5)

  private let addresses: PushAddresses
  private let tls: NIOSSLContext
  private let group: any EventLoopGroup
  /// A name's lookup blocks its thread until the system's own timeout. There is a thread for each push under way, so a slow name server delays no other push.
  private let lookUps = NIOThreadPool(numberOfThreads: PushQueue.parallel)

  /// - Throws: if the trusted certificates cannot be read.
  init(addresses: PushAddresses, trust: String?, group: any EventLoopGroup) throws {
    self.addresses = addresses
    self.group = group
    tls = try Self.context(trust: trust)
    lookUps.start()
  }

  /// - Parameter trust: a PEM file of authorities that are trusted in addition to the system's.
  static func context(trust: String?) throws -> NIOSSLContext {
    var configuration = TLSConfiguration.makeClientConfiguration()
    configuration.applicationProtocols = ["http/1.1"]
    if let trust { configuration.additionalTrustRoots = [.file(trust)] }
    return try NIOSSLContext(configuration: configuration)
  }

  func stop() { lookUps.shutdownGracefully { _ in } }

  func post(_ body: [UInt8], to endpoint: PushEndpoint, headers: [(String, String)]) async throws(Failure) {
    let loop = group.next()
    let address: NIOCore.SocketAddress
    do {
      address = try await lookUps.runIfActive {
        try NIOCore.SocketAddress.makeAddressResolvingHost(endpoint.host, port: Int(endpoint.port))
      }
    } catch {
      throw .unreachable
    }
    guard addresses.includes(address) else { throw .address }
    let answer = loop.makePromise(of: HTTPResponseStatus.self)
    let timeout = loop.scheduleTask(in: Self.timeout) { answer.fail(Failure.timeout) }
    defer { timeout.cancel() }
    connect(to: address, for: endpoint, on: loop, answer) { channel in
      var head = HTTPRequestHead(version: .http1_1, method: .POST, uri: endpoint.target)
      head.headers = HTTPHeaders(headers + [("host", endpoint.authority), ("content-length", "\(body.count)")])
      head.headers.add(name: "connection", value: "close")
      channel.write(HTTPClientRequestPart.head(head), promise: nil)
      channel.write(HTTPClientRequestPart.body(.byteBuffer(ByteBuffer(bytes: body))), promise: nil)
      channel.writeAndFlush(HTTPClientRequestPart.end(nil), promise: nil)
    }
    do {
      try Self.check(Int(try await answer.futureResult.get().code))
    } catch let failure as Failure {
      throw failure
    } catch {
      throw .unreachable
    }
  }

  static func check(_ status: Int) throws(Failure) {
    switch status {
    case 200..<300: return
    case 404, 410: throw .gone
    case 408, 425, 429, 500...: throw .busy
    default: throw .refused
    }
  }

  private func connect(
    to address: NIOCore.SocketAddress, for endpoint: PushEndpoint, on loop: any EventLoop,
    _ answer: EventLoopPromise<HTTPResponseStatus>, send: @escaping @Sendable (any Channel) -> Void
  ) {
    let tls = tls
    let isAddress = (try? NIOCore.SocketAddress(ipAddress: endpoint.host, port: 0)) != nil
    let connected = ClientBootstrap(group: loop).connectTimeout(Self.connectTimeout)
      .channelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let pipeline = channel.pipeline.syncOperations
          try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: isAddress ? nil : endpoint.host))
          try pipeline.addHTTPClientHandlers()
          try pipeline.addHandler(PushAnswer(answer))
        }
      }
      .connect(to: address)
    connected.whenSuccess(send)
    connected.whenFailure { _ in answer.fail(Failure.unreachable) }
    // Also after the time limit.
    answer.futureResult.whenComplete { _ in connected.whenSuccess { $0.close(promise: nil) } }
  }
}

/// Takes the status of the first answer.
private final class PushAnswer: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart

  private let answer: EventLoopPromise<HTTPResponseStatus>

  init(_ answer: EventLoopPromise<HTTPResponseStatus>) { self.answer = answer }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // 1xx is not the answer yet (RFC 9110 section 15.2).
    if case .head(let head) = unwrapInboundIn(data), head.status.code >= 200 { answer.succeed(head.status) }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { answer.fail(PushPost.Failure.unreachable) }

  func channelInactive(context: ChannelHandlerContext) { answer.fail(PushPost.Failure.unreachable) }
}
