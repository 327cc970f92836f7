import Foundation
import Glibc
import JSON
import NIOCore
import NIOPosix

/// The admin socket: a Unix socket in the state folder, for root and the server's own user.
final class AdminServer: Sendable {
  typealias Answer = @Sendable (AdminRequest, _ user: UInt32) async -> [UInt8]

  private let listener: BoundedListener
  private let path: String

  /// - Parameters:
  ///   - path: in a folder to which nobody else has access.
  ///   - answer: called once for each request in order, with the user id of the process that sent it.
  /// - Throws: `ConfigurationError` if the socket cannot be created.
  init(path: String, group: any EventLoopGroup, answer: @escaping Answer) async throws(ConfigurationError) {
    self.path = path
    do {
      listener = try await BoundedListener(.unix(path: path), group: group) { channel in
        try channel.pipeline.syncOperations.addHandler(AdminHandler(answer))
      }
    } catch {
      throw ConfigurationError("\(path): the admin socket cannot be made: \(error)")
    }
    chmod(path, 0o600)
  }

  func stop() async {
    await listener.stop()
    unlink(path)
  }

  /// root, or the server's own user.
  static func admits(_ user: UInt32) -> Bool { user == 0 || user == geteuid() }
}

/// One request on one connection.
private final class AdminHandler: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let answer: AdminServer.Answer
  private var input = ByteBuffer()
  private var isAnswering = false

  init(_ answer: @escaping AdminServer.Answer) { self.answer = answer }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard !isAnswering else { return }
    var bytes = unwrapInboundIn(data)
    input.writeBuffer(&bytes)
    let line = input.readableBytesView.firstIndex(of: UInt8(ascii: "\n"))
    guard let line else {
      if input.readableBytes > AdminRequest.maximumBytes { fail("the request is too long", context.channel) }
      return
    }
    isAnswering = true
    Self.respond(to: Array(input.readableBytesView[..<line]), on: context.channel, answer)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) { context.close(promise: nil) }

  private func fail(_ reason: String, _ channel: any Channel) {
    isAnswering = true
    Self.finish(Self.text(of: AdminFailure(error: reason)), channel)
  }

  private static func respond(to line: [UInt8], on channel: any Channel, _ answer: @escaping AdminServer.Answer) {
    Task {
      do {
        finish(try await reply(to: line, on: channel, answer), channel)
      } catch {
        finish(text(of: error as? AdminFailure ?? AdminFailure(error: "\(error)")), channel)
      }
    }
  }

  private static func reply(
    to line: [UInt8], on channel: any Channel, _ answer: AdminServer.Answer
  ) async throws -> [UInt8] {
    guard let user = try await peer(of: channel), AdminServer.admits(user) else {
      throw AdminFailure(error: "only root and the server's own user may ask")
    }
    guard line.count <= AdminRequest.maximumBytes else { throw AdminFailure(error: "the request is too long") }
    let request: AdminRequest
    do throws(JSONError) {
      request = try JSONCoding.decode(AdminRequest.self, from: line)
    } catch {
      throw AdminFailure(error: "\(error.field ?? "the request"): \(error.reason)")
    }
    return await answer(request, user)
  }

  /// The user id of the process at the other end (unix(7), SO_PEERCRED).
  private static func peer(of channel: any Channel) async throws -> UInt32? {
    guard let socket = channel as? any SocketOptionProvider else { return nil }
    let credentials: Credentials = try await socket.unsafeGetSocketOption(
      level: .socket, name: .init(rawValue: SO_PEERCRED)
    ).get()
    return credentials.user
  }

  /// `struct ucred`.
  private struct Credentials: Sendable {
    var process: Int32
    var user: UInt32
    var group: UInt32
  }

  private static func text(of failure: AdminFailure) -> [UInt8] { (try? JSONCoding.encode(failure)) ?? [] }

  private static func finish(_ reply: [UInt8], _ channel: any Channel) {
    var buffer = channel.allocator.buffer(bytes: reply)
    buffer.writeString("\n")
    channel.writeAndFlush(buffer).whenComplete { _ in channel.close(promise: nil) }
  }
}
