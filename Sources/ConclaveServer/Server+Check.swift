import Calls
import Foundation
import Glibc
import Logging
import MediaModel
import MediaPlane
import NIOCore
import NIOPosix
import Signaling
import Transport

extension Server {
  /// Looks for all that a start would refuse, without making or changing a file: values, secrets, keys, certificate, the state folder, and ports, which
  /// are opened for a moment. The database is not opened.
  /// - Returns: a remark for the operator, if any.
  /// - Throws: `ConfigurationError` for the first thing that a start would refuse.
  static func check(_ configuration: Configuration) async throws -> String? {
    try configuration.validate()
    _ = try AnnouncedAddresses(configuration.media.announce)
    _ = try configuration.turn.map(TURNCredentials.init)
    _ = try configuration.webhooks?.secret.bytes("webhooks", minimum: 32)
    _ = try configuration.authorize?.secret?.bytes("authorize", minimum: 32)
    if let push = configuration.webPush { try push.check() }
    let logger = Logger(label: "check-config") { _ in SwiftLogNoOpLogHandler() }
    if let file = configuration.auth.jwksFile { try await KeySource(.file(file), log: LimitedLog(logger)).start() }
    if !configuration.auth.hasKeySet { try checkSecret(configuration) }
    guard try StateFolder.check(configuration.state) else {
      return "A server runs on \(configuration.state), so the ports were not tried."
    }
    try await openPorts(configuration, logger)
    return nil
  }

  private static func checkSecret(_ configuration: Configuration) throws(ConfigurationError) {
    let file = configuration.auth.secretFile ?? configuration.state + "/secret"
    guard try StateFolder.secret(at: file) == nil else { return }
    guard configuration.auth.secretFile == nil, access(file, F_OK) != 0 else {
      throw ConfigurationError("\(file): cannot be read; check its name and mode")
    }
  }

  /// Opens what a start opens, the certificate included, and closes it.
  private static func openPorts(_ configuration: Configuration, _ logger: Logger) async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    let media: MediaWorkers
    do {
      media = try mediaPlane(configuration, certificate: DTLSCertificate()) { _ in }
    } catch {
      try? await group.shutdownGracefully()
      throw error
    }
    do {
      let pages = try Pages(demo: nil, guests: nil, clock: WallClock(), status: nil)
      if let port = configuration.listen.metrics {
        let status = StatusPages(unready: { nil }, metrics: { "" })
        try await MonitoringServer(configuration.listen.address, port: port, group: group, pages: status).stop()
      }
      let signaling = try await signaling(
        configuration.signaling(OpenFiles.raised(), mediaWorkers: media.workers, logger), group, NoClients(),
        WallClock(), NoClients(), pages, logger)
      await signaling.stop()
    } catch {
      media.stop()
      try? await group.shutdownGracefully()
      throw error
    }
    media.stop()
    try await group.shutdownGracefully()
  }
}

/// Lets nobody in while the ports are tried.
private struct NoClients: Authenticator, SignalingSink {
  func claims(of token: String) async -> Claims? { nil }
  func submit(_ command: NodeCommand) {}
}
