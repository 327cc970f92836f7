import NIOCore
import NIOHTTP1
import Listening

/// The port of `listen.metrics`: health and metrics over plain HTTP, one request per connection.
final class MonitoringServer: Sendable {
  private let listener: BoundedListener
  var port: Int { listener.port }

  /// - Throws: `ConfigurationError` if the port cannot be opened.
  init(
    _ host: String, port: Int, group: any EventLoopGroup, pages: StatusPages
  ) async throws(ConfigurationError) {
    do {
      listener = try await BoundedListener(.tcp(host: host, port: port), group: group) { channel in
        try channel.pipeline.syncOperations.configureHTTPServerPipeline(withPipeliningAssistance: false)
        try channel.pipeline.syncOperations.addHandler(MonitoringHandler(pages))
      }
    } catch {
      throw ConfigurationError("listen.metrics: port \(port) of \(host) cannot be opened: \(error)")
    }
  }

  func stop() async { await listener.stop() }
}

private final class MonitoringHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let pages: StatusPages
  private var isAnswered = false

  init(_ pages: StatusPages) { self.pages = pages }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard case .head(let head) = unwrapInboundIn(data), !isAnswered else { return }
    isAnswered = true
    Self.respond(to: head, on: context.channel, pages)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  private static func respond(to head: HTTPRequestHead, on channel: any Channel, _ pages: StatusPages) {
    Task {
      let page = head.method == .GET ? await pages.response(to: String(head.uri.prefix { $0 != "?" })) : nil
      send(page ?? HTTPResponse(status: 404, text: "There is no such page.\n"), channel)
    }
  }

  private static func send(_ page: HTTPResponse, _ channel: any Channel) {
    var headers = HTTPHeaders([("content-length", "\(page.body.bytes.readableBytes)"), ("connection", "close")])
    headers.add(contentsOf: page.headers.map { ($0.name, $0.value) })
    let head = HTTPResponseHead(version: .http1_1, status: .init(statusCode: page.status), headers: headers)
    channel.write(HTTPServerResponsePart.head(head), promise: nil)
    channel.write(HTTPServerResponsePart.body(.byteBuffer(page.body.bytes)), promise: nil)
    channel.writeAndFlush(HTTPServerResponsePart.end(nil)).whenComplete { _ in channel.close(promise: nil) }
  }
}
