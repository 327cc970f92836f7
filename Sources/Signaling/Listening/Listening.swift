import Glibc
import Logging
import MediaModel
import NIOCore
import NIOPosix
import NIOSSL

/// Opens ports and builds the pipelines of incoming connections.
struct Listening {
  let services: SharedServices
  let group: any EventLoopGroup

  func stomp(_ host: String?, port: Int, tls: Certificates?) async throws -> any Channel {
    let services = services
    let bootstrap = bootstrap(tls: tls, for: .stomp) { channel in
      try channel.pipeline.syncOperations.addHandler(
        ConnectionHandler(services: services, gate: nil, now: channel.eventLoop.now.uptimeNanoseconds))
    }
    // A client may close its half and still read the ERROR, and so may we. Under TLS NIOSSL itself answers a client's close_notify, after what we
    // write meanwhile. With half-closure it would leave that to us, and wait 5 s for a close_notify after a FIN.
    return try await bind(bootstrap.childChannelOption(.allowRemoteHalfClosure, value: tls == nil), host, port: port)
  }

  func http(_ host: String?, port: Int, tls: Certificates?) async throws -> any Channel {
    let services = services
    let bootstrap = bootstrap(tls: tls, for: .http) { channel in
      try HTTPHandler.add(to: channel, services)
    }
    return try await bind(bootstrap, host, port: port)
  }

  private func bootstrap(
    tls: Certificates?, for purpose: Certificates.Purpose,
    pipeline: @escaping @Sendable (any Channel) throws -> Void
  ) -> ServerBootstrap {
    let services = services
    return ServerBootstrap(group: group)
      .serverChannelOption(.backlog, value: 1_024)
      .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
      .serverChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          try channel.pipeline.syncOperations.addHandler(AcceptPause(services: services))
        }
      }
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          guard services.admission.admit(channel) else { throw TooManyConnections() }
          if let tls {
            let handler = NIOSSLServerHandler(context: tls.context(for: purpose))
            try channel.pipeline.syncOperations.addHandlers(handler, HandshakeWatch(services: services))
          }
          try pipeline(channel)
        }
      }
      .childChannelOption(.socketOption(.so_keepalive), value: 1)
      .childChannelOption(.tcpOption(.tcp_nodelay), value: 1)
      // For clients without heart-beats: a peer that is gone is detected within a minute and a half.
      .childChannelOption(.tcpOption(.init(rawValue: TCP_KEEPIDLE)), value: 60)
      .childChannelOption(.tcpOption(.init(rawValue: TCP_KEEPINTVL)), value: 10)
      .childChannelOption(.tcpOption(.init(rawValue: TCP_KEEPCNT)), value: 3)
      // Unread bytes wait in this process, where they are counted, and not in the kernel.
      .childChannelOption(.tcpOption(.init(rawValue: TCP_NOTSENT_LOWAT)), value: 128 << 10)
      // A connection is writable again when the backlog can forget it.
      .childChannelOption(
        .writeBufferWaterMark, value: .init(low: Backlog.step / 2, high: Backlog.step))
  }

  /// - Parameter own: the listener's address; nil for the common one.
  private func bind(_ bootstrap: ServerBootstrap, _ own: String?, port: Int) async throws -> any Channel {
    let host = own ?? services.configuration.host
    do {
      return try await bind(bootstrap, host: host, port: port)
    } catch {
      throw ListenError(error, host: host, port: port)
    }
  }

  private func bind(_ bootstrap: ServerBootstrap, host: String?, port: Int) async throws -> any Channel {
    if let host { return try await bootstrap.bind(host: host, port: port).get() }
    do {
      return try await bootstrap.bind(host: "::", port: port).get()
    } catch let error as IOError where error.errnoCode == EAFNOSUPPORT || error.errnoCode == EADDRNOTAVAIL {
      // A machine without IPv6.
      return try await bootstrap.bind(host: "0.0.0.0", port: port).get()
    }
  }
}

private struct TooManyConnections: Error {}

/// Why the server cannot listen, in words for the operator.
package struct ListenError: Error, CustomStringConvertible {
  package var description: String

  /// A port that cannot be opened.
  init(_ error: any Error, host: String?, port: Int) {
    let code = (error as? IOError)?.errnoCode
    let reason = code.map { String(cString: strerror($0)) } ?? "\(error)"
    let advice =
      switch code {
      case EADDRINUSE: "is another server running? listen.* sets the ports"
      case EACCES: "ports below 1024 need root or CAP_NET_BIND_SERVICE; listen.* sets the ports"
      case EADDRNOTAVAIL: "listen.address is to be one of this machine's own"
      default: "check listen.*"
      }
    description = "port \(port) of \(host ?? "all addresses") cannot be opened: \(reason); \(advice)"
  }

  /// A certificate that cannot be used.
  init(_ error: any Error, _ files: SignalingServer.Configuration.TLS) {
    description =
      Self.fault("tls.certificate", files.certificateChain, wants: "a certificate", "CERTIFICATE-----")
      ?? Self.fault("tls.key", files.privateKey, wants: "a private key", "PRIVATE KEY-----")
      ?? "tls: \(files.certificateChain) and \(files.privateKey) cannot be used (\(error)); take PEM files, the certificate's chain and the key that fits it"
  }

  /// Tells why a file cannot be used by itself: it cannot be read, or holds something else, as when the two are swapped.
  /// - Parameter mark: ends the first line of what is wanted (RFC 7468).
  private static func fault(_ member: String, _ name: String, wants kind: String, _ mark: String) -> String? {
    guard let file = fopen(name, "r") else {
      return "\(member): \(name) cannot be read: \(String(cString: strerror(errno))); check its name and mode"
    }
    defer { fclose(file) }
    var bytes = [UInt8](repeating: 0, count: 1 << 16)
    bytes.removeLast(bytes.count - fread(&bytes, 1, bytes.count, file))
    guard !String(decoding: bytes, as: UTF8.self).contains(mark) else { return nil }
    return "\(member): \(name) has not \(kind) in PEM; are tls.certificate and tls.key swapped?"
  }
}

/// Counts TLS handshakes that fail and logs some of them, without the remote address.
final class HandshakeWatch: ChannelInboundHandler {
  typealias InboundIn = ByteBuffer

  private let services: SharedServices

  init(services: SharedServices) { self.services = services }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    if case NIOSSLError.handshakeFailed(let reason) = error {
      services.counters.drop(.tlsHandshake)
      services.log.log(.tlsHandshake, .info, "a TLS handshake failed", ["reason": "\(reason)"])
    }
    context.fireErrorCaught(error)
  }
}
