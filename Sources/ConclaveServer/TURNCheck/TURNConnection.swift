import Foundation
import NIOCore
import NIOPosix
import NIOSSL

/// One conversation with a TURN server, over the transport that its URL names.
struct TURNConnection: Sendable {
  enum Result: Sendable {
    case ended(TURNConversation.Outcome)
    case silence
    /// It was closed before the end of the conversation.
    case closed
    case refused
    case noHost
    /// Bytes of another protocol.
    case other(isHTTP: Bool)
    case tlsFailed(String)
    case failed(String)
  }

  let url: TURNServerURL
  /// A PEM file of authorities to trust in addition to the system's.
  let trust: String?
  let limit: TimeAmount

  func converse(_ conversation: TURNConversation, on loop: any EventLoop) async -> Result {
    let result = loop.makePromise(of: Result.self)
    let name = url.host.contains(where: \.isLetter) && !url.host.contains(":") ? url.host : nil
    do {
      let tls = url.transport == .tls ? try NIOSSLContext(configuration: configuration) : nil
      let limit = limit
      let isStream = url.transport != .udp
      let connecting =
        isStream
        ? ClientBootstrap(group: loop).connectTimeout(limit).connect(host: url.host, port: url.port)
        : DatagramBootstrap(group: loop).connect(host: url.host, port: url.port)
      let channel = try await connecting.flatMapThrowing { channel in
        let pipeline = channel.pipeline.syncOperations
        if let tls { try pipeline.addHandler(NIOSSLClientHandler(context: tls, serverHostname: name)) }
        if !isStream { try pipeline.addHandler(DatagramBytes()) }
        try pipeline.addHandler(TURNHandler(conversation, result, isStream: isStream, limit: limit))
        return channel
      }.get()
      let answer = try await result.futureResult.get()
      try? await channel.close()
      return answer
    } catch {
      result.succeed(.closed)
      return Self.failure(error)
    }
  }

  private var configuration: TLSConfiguration {
    var tls = TLSConfiguration.makeClientConfiguration()
    if let trust { tls.additionalTrustRoots = [.file(trust)] }
    return tls
  }

  private static func failure(_ error: any Error) -> Result {
    if let error = error as? NIOConnectionError {
      guard let first = error.connectionErrors.first?.error else { return .noHost }
      return failure(first)
    }
    if let error = error as? IOError { return error.errnoCode == ECONNREFUSED ? .refused : .failed("\(error)") }
    if let error = error as? ChannelError, case .connectTimeout = error { return .silence }
    let isUnknown = error is SocketAddressError || error is SocketAddressError.UnknownHost
    return isUnknown ? .noHost : .failed("\(error)")
  }
}
