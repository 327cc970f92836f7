import Calls
import Contract
import Logging
import MediaModel
import MediaPlane
import NIOPosix
import Signaling
import Transport

/// The parts of a server as the configuration describes them.
extension Server {
  /// - Parameter gone: called with a user and an endpoint that the push service no longer knows.
  static func webPush(
    _ configuration: Configuration.WebPush?, _ folder: StateFolder, clock: WallClock,
    group: MultiThreadedEventLoopGroup, gone: @escaping @Sendable (UserID, String) -> Void
  ) throws(ConfigurationError) -> WebPush? {
    guard let configuration else { return nil }
    let key = ApplicationServerKey(try folder.pushKey(), contact: configuration.contact)
    return WebPush(key: key, post: try configuration.post(), clock: clock, loop: group.next(), gone: gone)
  }

  static func signaling(
    _ configuration: SignalingServer.Configuration, _ incarnation: Incarnation, _ group: MultiThreadedEventLoopGroup,
    _ authenticator: any Authenticator, _ clock: WallClock, _ control: any SignalingSink, _ pages: Pages,
    _ logger: Logger
  ) async throws -> SignalingServer {
    do {
      return try await SignalingServer.start(
        configuration, incarnation: incarnation, group: group, authenticator: authenticator, sink: control,
        logger: logger, clock: { clock.machineTime() }, pages: { await pages.respond(to: $0) })
    } catch {
      throw ConfigurationError("\(error)")
    }
  }

  static func mediaPlane(
    _ configuration: Configuration, node: Incarnation, certificate: DTLSCertificate,
    onEvent: @escaping @Sendable (MediaEvent) -> Void
  ) throws -> MediaWorkers {
    var layout = MediaPlaneConfiguration()
    if configuration.media.workers > 0 { layout.workers = configuration.media.workers }
    layout.tcp = configuration.media.tcp
    layout.voices = configuration.media.voices
    layout.historyBudget = configuration.media.historyMiB << 20
    configuration.media.publishing.apply(to: &layout)
    layout.firstPort = UInt16(configuration.media.port)
    do {
      return try MediaWorkers(
        layout, node: node, certificate: certificate, seed: UInt64.random(in: .min ... .max), onEvent: onEvent)
    } catch {
      throw ConfigurationError("media.port: \(error)")
    }
  }
}

extension Configuration {
  func calls(_ turn: LiveValue<TURNCredentials?>, _ clock: WallClock) -> CallConfiguration {
    var calls = CallConfiguration()
    calls.ice = { turn.value?.ice(for: $0.user, now: clock.machineTime()) ?? ICE() }
    setLimits(&calls)
    calls.asksBackEnd = authorize != nil
    return calls
  }

  /// Sets the part of the configuration that a reload may change.
  func setLimits(_ calls: inout CallConfiguration) {
    calls.limits = limits.calls
    calls.neverStarts = Set(roles.filter(\.value.neverStarts).keys)
  }

  func signaling(
    _ files: OpenFiles, mediaWorkers: Int, _ logger: Logger
  ) -> SignalingServer.Configuration {
    var signaling = SignalingServer.Configuration()
    signaling.host = listen.address == "::" ? nil : listen.address
    signaling.stompHost = listen.stomp?.address
    signaling.stompPort = listen.stomp?.port
    signaling.stompTLSHost = listen.stompTLS.address
    signaling.stompTLSPort = listen.stompTLS.port
    signaling.httpHost = listen.http.address
    signaling.httpPort = listen.http.port
    signaling.serverName = "conclave/\(Server.version)"
    signaling.tls = tls.map { .init(certificateChain: $0.certificate, privateKey: $0.key) }
    signaling.limits = limits.signaling
    let wanted = limits.signaling.connections
    signaling.limits.connections = files.connections(wanted: wanted, workers: mediaWorkers, tcp: media.tcp)
    if signaling.limits.connections < wanted {
      logger.warning(
        "limits.connections is lowered: the system allows too few open files (LimitNOFILE, ulimit -n)",
        metadata: ["connections": "\(signaling.limits.connections)", "files": "\(files.limit)"])
    }
    signaling.proxies = AddressList(listen.proxies) ?? .loopback
    signaling.destinations = destinations
    signaling.origins = listen.originPolicy
    return signaling
  }
}
