import Glibc
import NIOCore
import NIOPosix
import Synchronization

/// Listens for short exchanges with an operator's tools: few connections at once, each with a deadline, so that a client that hangs blocks nothing.
final class BoundedListener: Sendable {
  static let maximumConnections = 32
  static let deadline = TimeAmount.seconds(10)

  private let channel: any Channel
  var port: Int { channel.localAddress?.port ?? 0 }

  enum Address: Sendable {
    /// An old socket file there is replaced.
    case unix(path: String)
    case tcp(host: String, port: Int)
  }

  /// - Parameter pipeline: adds the handlers of a connection.
  init(
    _ address: Address, group: any EventLoopGroup,
    pipeline: @escaping @Sendable (any Channel) throws -> Void
  ) async throws {
    let counter = Counter()
    let bootstrap = ServerBootstrap(group: group)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          guard counter.take() else { throw TooManyConnections() }
          let deadline = channel.eventLoop.scheduleTask(in: Self.deadline) { channel.close(promise: nil) }
          channel.closeFuture.whenComplete { _ in
            deadline.cancel()
            counter.giveBack()
          }
          try pipeline(channel)
        }
      }
    switch address {
    case .unix(let path):
      channel = try await bootstrap.bind(unixDomainSocketPath: path, cleanupExistingSocketFile: true).get()
    case .tcp(let host, let port):
      do {
        channel = try await bootstrap.bind(host: host, port: port).get()
      } catch let error as IOError where host == "::" && [EAFNOSUPPORT, EADDRNOTAVAIL].contains(error.errnoCode) {
        // A machine without IPv6.
        channel = try await bootstrap.bind(host: "0.0.0.0", port: port).get()
      }
    }
  }

  func stop() async { try? await channel.close() }

  private struct TooManyConnections: Error {}

  private final class Counter: Sendable {
    private let openCount = Mutex(0)

    func take() -> Bool {
      openCount.withLock { count in
        guard count < BoundedListener.maximumConnections else { return false }
        count += 1
        return true
      }
    }

    func giveBack() { openCount.withLock { $0 -= 1 } }
  }
}
