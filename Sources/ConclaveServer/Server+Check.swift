import Calls
import Foundation
import Glibc
import Logging
import MediaModel
import MediaPlane
import NIOCore
import NIOPosix
import Connections
import Listening
import Transport

extension Server {
  /// Finds everything that a start would refuse: values, secrets, keys, certificate, the state folder with its database, and ports, which are opened
  /// for a moment. It creates and changes nothing.
  /// - Returns: a remark for the operator, if any.
  /// - Throws: `ConfigurationError` with a line for each thing that a start would refuse.
  static func check(_ configuration: Configuration) async throws(ConfigurationError) -> String? {
    var faults = configuration.faults
    let folder = configuration.state
    checkSecrets(configuration, &faults)
    if let file = configuration.auth.jwksFile {
      let keys = KeySource(.file(file), log: LimitedLog(quiet))
      do { try await keys.start() } catch { faults.add(error.description) }
    }
    faults.take { () throws(ConfigurationError) in try StateFolder.checkAdminSocket(in: folder) }
    var remarks: [String] = []
    if let recordings = configuration.recordings,
      let remark = faults.value({ () throws(ConfigurationError) in try recordings.check(in: folder) }) ?? nil
    {
      remarks.append(remark)
    }
    if let remark = expiryRemark(configuration, now: WallClock().machineTime()) { remarks.append(remark) }
    if let remark = keyModeRemark(configuration) { remarks.append(remark) }
    if let url = configuration.auth.jwksURL {
      let keys = KeySource(.url(url), log: LimitedLog(quiet))
      try? await keys.start()
      if !keys.hasKeys {
        remarks.append("auth.jwksURL gives no key set now: a server starts, and lets nobody in until it does.")
      }
    }
    switch faults.value({ () throws(ConfigurationError) in try StateFolder.use(folder) }) {
    case .free(let lock)?:
      // Held meanwhile, so that no server starts and finds the database in use.
      withExtendedLifetime(lock) {
        faults.take { () throws(ConfigurationError) in remarks += try checkStore(configuration) }
      }
      await checkPorts(configuration, &faults)
    case .taken?: remarks.append("A server runs on \(folder), so neither the ports nor its database were tried.")
    case nil: await checkPorts(configuration, &faults)
    }
    try faults.throwAny()
    return remarks.isEmpty ? nil : remarks.joined(separator: " ")
  }

  /// A start accepts an expired certificate, but no client does.
  static func expiryRemark(_ configuration: Configuration, now: Timestamp) -> String? {
    guard let tls = configuration.tls,
      let expiry = TLSFiles(certificateChain: tls.certificate, privateKey: tls.key).expiry,
      expiry <= now
    else { return nil }
    let day = Date(timeIntervalSince1970: Double(expiry.milliseconds) / 1_000).formatted(.iso8601)
    return "The certificate in tls.certificate expired at \(day): renew it, for clients refuse it."
  }

  /// Programs that renew certificates may leave the key with any mode, so a start accepts it.
  static func keyModeRemark(_ configuration: Configuration) -> String? {
    var status = stat()
    guard let key = configuration.tls?.key, stat(key, &status) == 0, status.st_mode & S_IROTH != 0 else { return nil }
    return "Every user of this machine can read the private key in tls.key: take that right away with chmod o-rwx."
  }

  private static var quiet: Logger { Logger(label: "check-config") { _ in SwiftLogNoOpLogHandler() } }

  private static func checkSecrets(_ configuration: Configuration, _ faults: inout Faults) {
    func take(_ check: () throws(ConfigurationError) -> Void) { faults.take(check) }
    take { () throws(ConfigurationError) in _ = try AnnouncedAddresses(configuration.media.announce) }
    take { () throws(ConfigurationError) in _ = try configuration.turn.map(TURNCredentials.init) }
    take { () throws(ConfigurationError) in try configuration.janus?.check() }
    take { () throws(ConfigurationError) in _ = try configuration.webhooks?.secret?.bytes("webhooks", minimum: 32) }
    take { () throws(ConfigurationError) in _ = try configuration.authorize?.secret?.bytes("authorize", minimum: 32) }
    if let push = configuration.webPush {
      take { () throws(ConfigurationError) in try push.check() }
      take { () throws(ConfigurationError) in _ = try StateFolder.storedPushKey(in: configuration.state) }
    }
    if !configuration.auth.hasKeySet {
      let file = configuration.auth.secretFile
      take { () throws(ConfigurationError) in
        try checkSecret(file ?? configuration.state + "/secret", isMade: file == nil)
      }
    }
    if configuration.guests {
      take { () throws(ConfigurationError) in try checkSecret(configuration.state + "/guest-secret", isMade: true) }
    }
  }

  /// - Parameter isMade: created by a start if it is missing.
  private static func checkSecret(_ file: String, isMade: Bool) throws(ConfigurationError) {
    guard try StateFolder.secret(at: file) == nil else { return }
    guard isMade, access(file, F_OK) != 0 else {
      throw ConfigurationError("\(file): cannot be read; check its name and mode")
    }
  }

  // MARK: ports

  /// Opens each port that a start opens, including the certificate, and closes it.
  private static func checkPorts(_ configuration: Configuration, _ faults: inout Faults) async {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    checkMediaPorts(configuration, &faults)
    if let fault = await signalingFault(configuration, group, http: 0) {
      // Not specific to a port: all would report the same.
      faults.add(await signalingFault(configuration, group, http: configuration.listen.http) ?? fault)
    } else {
      let listen = configuration.listen
      let tries = [
        await signalingFault(configuration, group, http: listen.http),
        await signalingFault(configuration, group, stomp: listen.stomp),
        configuration.tls == nil ? nil : await signalingFault(configuration, group, hasTLS: true),
        await metricsFault(configuration, group),
      ]
      for case let fault? in tries { faults.add(fault) }
    }
    try? await group.shutdownGracefully()
  }

  /// Worker by worker, so that each occupied port is named.
  private static func checkMediaPorts(_ configuration: Configuration, _ faults: inout Faults) {
    let count = configuration.media.workers > 0 ? configuration.media.workers : MediaPlaneConfiguration().workers
    // Values out of range are already reported.
    guard (1...256).contains(count), (0...65_535).contains(configuration.media.port) else { return }
    guard configuration.media.port + count <= 65_536 else {
      return faults.add(
        "media.port: \(configuration.media.port) leaves no ports for \(count) workers; take a lower one")
    }
    let certificate = DTLSCertificate()
    var one = configuration
    one.media.workers = 1
    for worker in 0..<(configuration.media.port == 0 ? 1 : count) {
      one.media.port = configuration.media.port + (configuration.media.port == 0 ? 0 : worker)
      do {
        try mediaPlane(one, node: Incarnation(0), certificate: certificate) { _ in }.stop()
      } catch {
        faults.add("\(error)")
      }
    }
  }

  /// Why a server with only these ports could not start; 0 is any free one. nil if it could.
  private static func signalingFault(
    _ configuration: Configuration, _ group: MultiThreadedEventLoopGroup, http: ListenAddress = 0,
    stomp: ListenAddress? = nil, hasTLS: Bool = false
  ) async -> String? {
    let ports = [http.port, stomp?.port ?? 0, configuration.listen.stompTLS.port]
    guard ports.allSatisfy(ListenAddress.isPort.contains) else { return nil }
    var tried = configuration
    tried.listen.http = http
    tried.listen.stomp = stomp
    if !hasTLS { tried.tls = nil }
    do {
      let pages = try Pages(demo: nil, guests: nil, clock: WallClock(), status: nil)
      let signaling = try await Signaling.open(
        tried.signaling(OpenFiles.raised(), mediaWorkers: 1, quiet), incarnation: Incarnation(0), group: group,
        authenticator: NoClients(),
        clock: WallClock(), sink: NoClients(), routes: [pages.route], logger: quiet)
      await signaling.stop()
      return nil
    } catch {
      return "\(error)"
    }
  }

  private static func metricsFault(_ configuration: Configuration, _ group: MultiThreadedEventLoopGroup) async
    -> String?
  {
    guard let listener = configuration.listen.metrics, ListenAddress.isPort.contains(listener.port) else { return nil }
    let status = StatusPages(unready: { nil }, metrics: { "" })
    do {
      let host = listener.address ?? configuration.listen.address
      try await MonitoringServer(host, port: listener.port, group: group, pages: status).stop()
      return nil
    } catch {
      return "\(error)"
    }
  }
}

/// Lets nobody in while the ports are tried.
private struct NoClients: Authenticator, SignalingSink {
  func claims(of token: String) async -> Claims? { nil }
  func submit(_ command: NodeCommand) {}
}
