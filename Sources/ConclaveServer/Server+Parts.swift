import CallMessages
import Contract
import Logging
import MediaModel
import MediaPlane
import NIOPosix
import Listening
import Reels
import STOMPFront
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

  static func mediaPlane(
    _ configuration: Configuration, node: Incarnation, certificate: DTLSCertificate,
    wallClock: @escaping @Sendable () -> Int64 = { 0 },
    onReels: @escaping @Sendable ([ReelOutput]) -> Void = { _ in },
    onEvent: @escaping @Sendable (MediaEvent) -> Void
  ) throws -> MediaWorkers {
    var layout = MediaPlaneConfiguration()
    if configuration.media.workers > 0 { layout.workers = configuration.media.workers }
    layout.tcp = configuration.media.tcp
    layout.voices = configuration.media.voices
    layout.historyBudget = configuration.media.historyMiB << 20
    configuration.media.publishing.apply(to: &layout)
    layout.firstPort = UInt16(configuration.media.port)
    layout.reels = configuration.recordings.map { recordings in
      var reels = ReelTable.Configuration()
      reels.cameraHeight = recordings.cameraHeight
      reels.cameraMinimum = recordings.cameraMinimum
      return reels
    }
    do {
      return try MediaWorkers(
        layout, node: node, certificate: certificate, seed: UInt64.random(in: .min ... .max), wallClock: wallClock,
        onReels: onReels, onEvent: onEvent)
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
    calls.records = recordings?.start
    return calls
  }

  /// Sets the part of the configuration that a reload may change.
  func setLimits(_ calls: inout CallConfiguration) {
    calls.limits = limits.calls
    calls.links = links
    calls.neverStarts = Set(roles.filter(\.value.neverStarts).keys)
  }

  func signaling(_ files: OpenFiles, mediaWorkers: Int, _ logger: Logger) -> Signaling.Configuration {
    var signaling = Signaling.Configuration()
    signaling.listening.host = listen.address == "::" ? nil : listen.address
    signaling.listening.httpHost = listen.http.address
    signaling.listening.httpPort = listen.http.port
    signaling.listening.tls = tls.map { .init(certificateChain: $0.certificate, privateKey: $0.key) }
    signaling.listening.limits = limits.listening
    let wanted = limits.listening.connections
    signaling.listening.limits.connections = files.connections(
      wanted: wanted, workers: mediaWorkers, tcp: media.tcp)
    if signaling.listening.limits.connections < wanted {
      logger.warning(
        "limits.connections is lowered: the system allows too few open files (LimitNOFILE, ulimit -n)",
        metadata: ["connections": "\(signaling.listening.limits.connections)", "files": "\(files.limit)"])
    }
    signaling.listening.proxies = AddressList(listen.proxies) ?? .loopback
    signaling.listening.origins = listen.originPolicy
    signaling.clients = limits.clients
    signaling.stomp.host = listen.stomp?.address
    signaling.stomp.port = listen.stomp?.port
    signaling.stomp.tlsHost = listen.stompTLS.address
    signaling.stomp.tlsPort = listen.stompTLS.port
    signaling.stomp.serverName = "conclave/\(Server.version)"
    signaling.stomp.limits = limits.stomp
    signaling.stomp.destinations = destinations
    return signaling
  }
}
