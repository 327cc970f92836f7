import Calls
import Crypto
import LinuxIO
package import Logging
import MediaModel
import MediaPlane
import NIOCore
import NIOPosix
import Persistence
import Signaling
import Transport

/// A started server: every port is open.
package final class Server: Sendable {
  package static let version = "0.1.0"

  private let configuration: Configuration
  private let authenticator: BearerAuthenticator
  private let group: MultiThreadedEventLoopGroup
  /// For SDPs.
  private let reading: NIOThreadPool
  private let media: MediaWorkers
  private let control: ControlPlane
  private let signaling: SignalingServer
  private let backEnd: BackEnd?
  private let isDraining = SetOnce<Bool>()
  /// Keeps other servers out of the state folder as long as it lives.
  private let lock: StateFolder.Lock

  /// The ports that are really bound.
  package var stompPort: Int { signaling.stompPort }
  package var httpPort: Int { signaling.httpPort }
  package func mediaPort(of worker: Int) -> UInt16 { media.port(of: worker) }

  /// - Throws: `ConfigurationError`, in words for the operator; nothing is left open then.
  package init(_ configuration: Configuration, logger: Logger) async throws {
    self.configuration = configuration
    let files = OpenFiles.raised()
    let clock = WallClock()
    let folder = try StateFolder(configuration.state)
    lock = try folder.lock()
    let (store, stored) = try Self.store(folder, clock: clock)
    let log = LimitedLog(logger)
    let authenticator = try await BearerAuthenticator(configuration, folder, clock: clock, log: log)
    self.authenticator = authenticator
    let rules = configuration.calls(try configuration.turn.map(TURNCredentials.init), clock)
    let announced = try AnnouncedAddresses(configuration.media.announce)
    let certificate = DTLSCertificate()
    // Nothing happens on either plane before a client has connected, so neither misses the other while it is not set.
    let controlOnce = SetOnce<ControlPlane>()
    let signalingOnce = SetOnce<SignalingServer>()
    let media = try Self.mediaPlane(configuration, certificate: certificate) {
      controlOnce.value?.submit(.media($0))
    }
    reading = NIOThreadPool(numberOfThreads: 1)
    reading.start()
    group = MultiThreadedEventLoopGroup(numberOfThreads: max(1, availableProcessors().count / 2))
    let measurements = Measurements()
    let health = StoreHealth()
    do {
      backEnd = try BackEnd(configuration, answerTime: rules.answerTime, clock: clock, group: group)
    } catch {
      await Self.close(media, nil, group, reading)
      throw error
    }
    control = ControlPlane(
      calls: Node(
        configuration: rules, digest: { Array(SHA256.hash(data: $0)) },
        random: { UInt64.random(in: .min ... .max) }, restoring: stored, now: clock.now()),
      media: media, announced: announced, fingerprint: certificate.fingerprint, clock: clock, loop: group.next(),
      store: store, recorder: Recorder(file: store.path, logger: logger, health: health),
      archive: Archive(store: store, clock: clock, log: log),
      housekeeping: Housekeeping(
        store: store, health: health, clock: clock, historyDays: configuration.history.days, log: log),
      backEnd: backEnd, measurements: measurements, reading: reading,
      clients: ControlPlane.Clients(
        deliver: { signalingOnce.value?.deliver($0) }, charge: { signalingOnce.value?.charge($0, units: $1) })
    )
    controlOnce.set(control)
    do {
      let pages = try Pages(
        demo: configuration.demo ? authenticator.tokens : nil, clock: clock,
        unready: { [isDraining] in
          if signalingOnce.value == nil || isDraining.value != nil {
            return "not every port is open yet, or the server is about to end"
          }
          return authenticator.failure ?? health.statistics.failure
        },
        metrics: { [control, backEnd] in
          Metrics.text(
            media: media.statistics(), signaling: signalingOnce.value?.statistics, calls: await control.counts,
            waitingForDisk: await control.waitingForDisk,
            backlog: control.backlog,
            store: health.statistics, backEnd: backEnd, measured: measurements.values)
        })
      signaling = try await Self.signaling(
        configuration.signaling(files, mediaWorkers: media.workers, logger), group, authenticator, clock, control,
        pages,
        logger)
    } catch {
      await Self.close(media, backEnd, group, reading)
      throw error
    }
    self.media = media
    signalingOnce.set(signaling)
    control.begin()
  }

  /// Takes no new calls, and waits until none is left, at most `seconds`.
  package func drain(seconds: Int) async {
    isDraining.set(true)
    let (rest, waiting) = AsyncStream.makeStream(of: Void.self)
    control.drain { waiting.finish() }
    let timeout = group.next().scheduleTask(in: .seconds(Int64(seconds))) { waiting.finish() }
    for await _ in rest {}
    timeout.cancel()
  }

  /// Tells clients, closes the ports and ends the threads.
  package func stop() async {
    await signaling.stop()
    await control.stop()
    await Self.close(media, backEnd, group, reading)
  }

  private static func close(
    _ media: MediaWorkers, _ backEnd: BackEnd?, _ group: MultiThreadedEventLoopGroup, _ reading: NIOThreadPool
  ) async {
    await backEnd?.stop()
    media.stop()
    try? await group.shutdownGracefully()
    try? await reading.shutdownGracefully()
  }

  /// The text that the operator sees at the start.
  package var greeting: String {
    let scheme = configuration.tls == nil ? "http" : "https"
    var lines = ["Conclave \(Server.version)", "  web client   \(scheme)://localhost:\(httpPort)/"]
    let socket = scheme == "http" ? "ws" : "wss"
    let plain = configuration.listen.stomp == nil ? "" : "stomp://localhost:\(stompPort), "
    let secured = signaling.stompTLSPort.map { "stomps://localhost:\($0), " } ?? ""
    lines.append("  STOMP        \(plain)\(secured)\(socket)://localhost:\(httpPort)/stomp")
    let last = media.workers > 1 ? " to \(mediaPort(of: media.workers - 1))" : ""
    lines.append("  media        \(media.hasTCP ? "UDP, TCP" : "UDP") \(mediaPort(of: 0))\(last)")
    if authenticator.secretIsNew { lines.append("  A new secret for tokens was made: \(configuration.state)/secret") }
    if !configuration.auth.hasKeySet, configuration.auth.secretFile == nil {
      let program = CommandLine.arguments[0]
      lines.append("  Mint a token: \(program) token --state \(configuration.state) --user alice --device laptop")
    }
    if configuration.demo { lines.append("  Demo: from this machine a name is enough to sign in.") }
    return lines.joined(separator: "\n")
  }

  private static func store(_ folder: StateFolder, clock: WallClock) throws(ConfigurationError) -> (Store, Stored) {
    do {
      let store = try Store(path: folder.database)
      return (store, try store.load(now: clock.now()))
    } catch {
      throw ConfigurationError("\(error)")
    }
  }

  private static func signaling(
    _ configuration: SignalingServer.Configuration, _ group: MultiThreadedEventLoopGroup,
    _ authenticator: BearerAuthenticator,
    _ clock: WallClock, _ control: ControlPlane, _ pages: Pages, _ logger: Logger
  ) async throws -> SignalingServer {
    do {
      return try await SignalingServer.start(
        configuration, group: group, authenticator: authenticator, sink: control, logger: logger,
        clock: { clock.now() }, pages: { await pages.respond(to: $0) })
    } catch {
      throw ConfigurationError("\(error)")
    }
  }

  private static func mediaPlane(
    _ configuration: Configuration, certificate: DTLSCertificate,
    onEvent: @escaping @Sendable (MediaEvent) -> Void
  ) throws -> MediaWorkers {
    var layout = MediaPlaneConfiguration()
    if configuration.media.workers > 0 { layout.workers = configuration.media.workers }
    layout.tcp = configuration.media.tcp
    layout.firstPort = UInt16(configuration.media.port)
    do {
      return try MediaWorkers(
        layout, certificate: certificate, seed: UInt64.random(in: .min ... .max), onEvent: onEvent)
    } catch {
      throw ConfigurationError("media.port: \(error)")
    }
  }
}

extension Configuration {
  fileprivate func calls(_ turn: TURNCredentials?, _ clock: WallClock) -> CallConfiguration {
    var calls = CallConfiguration()
    if let turn { calls.ice = { turn.ice(for: $0.user, now: clock.now()) } }
    calls.maximumParticipants = limits.participants
    calls.maximumRinging = limits.ringing
    calls.neverStarts = Set(roles.filter(\.value.neverStarts).keys)
    calls.asksBackEnd = authorize != nil
    calls.hasWebhooks = webhooks != nil
    return calls
  }

  fileprivate func signaling(
    _ files: OpenFiles, mediaWorkers: Int, _ logger: Logger
  ) -> SignalingServer.Configuration {
    var signaling = SignalingServer.Configuration()
    signaling.host = listen.address == "::" ? nil : listen.address
    signaling.stompPort = listen.stomp
    signaling.stompTLSPort = listen.stompTLS
    signaling.httpPort = listen.http
    signaling.serverName = "conclave/\(Server.version)"
    signaling.tls = tls.map { .init(certificateChain: $0.certificate, privateKey: $0.key) }
    signaling.maximumConnections = files.connections(wanted: limits.connections, workers: mediaWorkers, tcp: media.tcp)
    if signaling.maximumConnections < limits.connections {
      logger.warning(
        "limits.connections is lowered: the system allows too few open files (LimitNOFILE, ulimit -n)",
        metadata: ["connections": "\(signaling.maximumConnections)", "files": "\(files.limit)"])
    }
    signaling.connectionsFromAddress = limits.addressConnections
    signaling.connectionsFromAddressBeforeLogin = limits.addressConnectionsBeforeLogin
    signaling.proxies = AddressList(listen.proxies) ?? .loopback
    signaling.connectionsOfUser = limits.userConnections
    signaling.subscriptionsOfUser = limits.userSubscriptions
    signaling.requestsOfUserPerSecond = limits.userRequestsPerSecond
    signaling.requestBurstOfUser = limits.userRequestBurst
    signaling.outboundBytesOfUser = limits.userOutbound
    signaling.inboundBytesOfUser = limits.userInbound
    signaling.outboundBytesOfAll = limits.totalOutbound
    signaling.destinations = destinations
    signaling.headers = limits.headers
    signaling.headerLine = limits.headerLine
    signaling.requestBody = limits.body
    signaling.keysBody = limits.keysBody
    signaling.connectTimeout = .seconds(limits.connectSeconds)
    signaling.subscriptions = limits.subscriptions
    signaling.transactions = limits.transactions
    signaling.framesInTransaction = limits.framesInTransaction
    signaling.requestsPerSecond = limits.requestsPerSecond
    signaling.requestBurst = limits.requestBurst
    signaling.outboundBytes = limits.outbound
    signaling.origins = listen.origins.contains("*") ? .any : .sameHost(also: listen.origins)
    return signaling
  }
}
