import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import Synchronization
import Testing

@testable import ConclaveServer

/// An app's back end on a free loopback port: records what is POSTed and answers as configured.
final class BackEndServer: Sendable {
  struct Received: Sendable {
    var path: String
    var headers: [String: String]
    var body: [UInt8]
    var text: String { String(decoding: body, as: UTF8.self) }
  }

  struct Answer: Sendable, CustomTestStringConvertible {
    var status = 200
    var body = ""
    var location: String?
    var retryAfter: String?
    var delay = TimeAmount.zero
    /// The body's bytes are sent one by one, with this pause.
    var drip: TimeAmount?
    /// The connection ends without an answer.
    var hangsUp = false

    var testDescription: String { "\(status) \(body.prefix(40)), \(body.utf8.count) bytes, after \(delay)" }
  }

  let port: Int
  private let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
  private let stored = Mutex<[Received]>([])
  private let open = Mutex<[ObjectIdentifier: any Channel]>([:])
  private let acceptedCount = Mutex(0)
  private let scheme: String

  /// - Parameters:
  ///   - certificate: the name of a certificate in ListeningTests/Vectors, for HTTPS.
  ///   - answer: the answer to the request of this number, from 0.
  init(certificate: String? = nil, answer: @escaping @Sendable (Int, Received) -> Answer) async throws {
    let server = SetOnce<BackEndServer>()
    let take = Box { received in server.value?.keep(received, answer) ?? Answer(status: 503) }
    let tls = try certificate.map { name in
      var configuration = TLSConfiguration.makeServerConfiguration(
        certificateChain: try NIOSSLCertificate.fromPEMFile(Self.file("\(name)-certificate")).map { .certificate($0) },
        privateKey: .privateKey(try NIOSSLPrivateKey(file: Self.file("\(name)-key"), format: .pem)))
      configuration.applicationProtocols = ["http/1.1"]
      return try NIOSSLContext(configuration: configuration)
    }
    scheme = tls == nil ? "http" : "https"
    let channel = try await ServerBootstrap(group: group)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          if let tls { try channel.pipeline.syncOperations.addHandler(NIOSSLServerHandler(context: tls)) }
          try channel.pipeline.syncOperations.configureHTTPServerPipeline()
          try channel.pipeline.syncOperations.addHandler(Handler(take: take))
          server.value?.count(channel)
        }
      }
      .bind(host: "127.0.0.1", port: 0).get()
    port = channel.localAddress?.port ?? 0
    server.set(self)
  }

  var url: String { "\(scheme)://127.0.0.1:\(port)/hook" }
  var received: [Received] { stored.withLock { $0 } }

  func stop() async { try? await group.shutdownGracefully() }

  /// The open connections.
  var connections: Int { open.withLock { $0.count } }
  /// The number of connections so far.
  var accepted: Int { acceptedCount.withLock { $0 } }

  /// Closes the open connections.
  func closeConnections() {
    for channel in open.withLock({ Array($0.values) }) { channel.close(promise: nil) }
  }

  /// A PEM file.
  static func file(_ name: String) -> String {
    URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../ListeningTests/Vectors/\(name).pem").path
  }

  private func keep(_ received: Received, _ answer: @Sendable (Int, Received) -> Answer) -> Answer {
    answer(
      stored.withLock {
        $0.append(received)
        return $0.count - 1
      }, received)
  }

  private func count(_ channel: any Channel) {
    let id = ObjectIdentifier(channel)
    acceptedCount.withLock { $0 += 1 }
    open.withLock { $0[id] = channel }
    channel.closeFuture.whenComplete { _ in self.open.withLock { $0[id] = nil } }
  }

  fileprivate struct Box: Sendable {
    let call: @Sendable (Received) -> Answer
    init(_ call: @escaping @Sendable (Received) -> Answer) { self.call = call }
  }

  fileprivate final class Handler: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart
    private let take: Box
    private var request = Received(path: "", headers: [:], body: [])

    init(take: Box) { self.take = take }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      switch unwrapInboundIn(data) {
      case .head(let head):
        let headers = head.headers.map { ($0.name.lowercased(), $0.value) }
        request = Received(path: head.uri, headers: Dictionary(headers) { a, _ in a }, body: [])
      case .body(let bytes): request.body += Array(buffer: bytes)
      case .end: answer(take.call(request), context)
      }
    }

    private func answer(_ answer: Answer, _ context: ChannelHandlerContext) {
      guard !answer.hangsUp else { return context.close(promise: nil) }
      var headers = HTTPHeaders([("content-length", "\(answer.body.utf8.count)")])
      if let location = answer.location { headers.add(name: "location", value: location) }
      if let pause = answer.retryAfter { headers.add(name: "retry-after", value: pause) }
      let head = HTTPResponseHead(version: .http1_1, status: .init(statusCode: answer.status), headers: headers)
      let bound = NIOLoopBound((context: context, handler: self), eventLoop: context.eventLoop)
      context.eventLoop.scheduleTask(in: answer.delay) {
        let (context, handler) = bound.value
        context.write(handler.wrapOutboundOut(.head(head)), promise: nil)
        if let pause = answer.drip { return Self.drip(Array(answer.body.utf8)[...], pause, bound) }
        context.write(handler.wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: answer.body)))), promise: nil)
        context.writeAndFlush(handler.wrapOutboundOut(.end(nil)), promise: nil)
      }
    }
  }
}

extension BackEndServer.Handler {
  fileprivate static func drip(
    _ bytes: ArraySlice<UInt8>, _ pause: TimeAmount,
    _ bound: NIOLoopBound<(context: ChannelHandlerContext, handler: BackEndServer.Handler)>
  ) {
    let (context, handler) = bound.value
    guard let first = bytes.first, context.channel.isActive else { return }
    context.writeAndFlush(handler.wrapOutboundOut(.body(.byteBuffer(ByteBuffer(bytes: [first])))), promise: nil)
    context.eventLoop.scheduleTask(in: pause) { drip(bytes.dropFirst(), pause, bound) }
  }
}

/// Waits for other threads, at most 10 s.
func eventually(_ condition: () -> Bool) async -> Bool {
  for _ in 0..<1000 {
    if condition() { return true }
    try? await Task.sleep(for: .milliseconds(10))
  }
  return condition()
}
