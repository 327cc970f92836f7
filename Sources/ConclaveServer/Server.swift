import Calls
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
  package static let version = "0.2.0"

  /// As at the start.
  private let configuration: Configuration
  /// As last read.
  private let current: LiveValue<Configuration>
  private let files: OpenFiles
  private let logger: Logger
  private let level: SharedLogLevel
  private let turn: LiveValue<TURNCredentials?>
  private let guests: GuestEntry?
  private let authenticator: BearerAuthenticator
  private let group: MultiThreadedEventLoopGroup
  /// For reading SDPs.
  private let reading: NIOThreadPool
  private let media: MediaWorkers
  private let control: ControlPlane
  private let signaling: SignalingServer
  private let backEnd: BackEnd?
  private let webPush: WebPush?
  private let spans: SpanExporter?
  private let isDraining = SetOnce<Bool>()
  private let admin: AdminServer
  private let monitoring: MonitoringServer?
  /// An operator wants the server to drain: `conclave drain`.
  package let drainOrders: AsyncStream<Void>
  /// Keeps other servers out of the state folder as long as it lives.
  private let lock: StateFolder.Lock

  /// The ports that are really bound.
  package var stompPort: Int { signaling.stompPort }
  package var httpPort: Int { signaling.httpPort }
  package var metricsPort: Int? { monitoring?.port }
  package func mediaPort(of worker: Int) -> UInt16 { media.port(of: worker) }

  /// - Parameter level: of the logger, which a reload may change.
  /// - Throws: `ConfigurationError`, in words for the operator. Nothing is left open then.
  package init(_ configuration: Configuration, logger: Logger, level: SharedLogLevel? = nil) async throws {
    self.configuration = configuration
    current = LiveValue(configuration)
    self.logger = logger
    self.level = level ?? SharedLogLevel(configuration.log)
    let files = OpenFiles.raised()
    self.files = files
    let clock = WallClock()
    let folder = try StateFolder(configuration.state)
    lock = try folder.lock()
    let (store, stored) = try Self.store(folder, clock: clock)
    let log = LimitedLog(logger)
    let authenticator = try await BearerAuthenticator(configuration, folder, clock: clock, log: log)
    self.authenticator = authenticator
    let turn = LiveValue(try configuration.turn.map(TURNCredentials.init))
    self.turn = turn
    var rules = configuration.calls(turn, clock)
    let announced = try AnnouncedAddresses(configuration.media.announce)
    let certificate = DTLSCertificate()
    // Nothing happens on either plane before a client has connected, so neither misses the other before it is set.
    let controlOnce = SetOnce<ControlPlane>()
    let signalingOnce = SetOnce<SignalingServer>()
    let media = try Self.mediaPlane(configuration, certificate: certificate) { event in
      if case .tooMuch = event {
        return log.log(
          .mediaFlood, .warning, "participants send more media than media.publishing lets them; the rest is dropped")
      }
      controlOnce.value?.submit(.media(event))
    }
    reading = NIOThreadPool(numberOfThreads: 1)
    reading.start()
    group = MultiThreadedEventLoopGroup(numberOfThreads: max(1, availableProcessors().count / 2))
    let measurements = Measurements()
    let health = StoreHealth()
    do {
      webPush = try Self.webPush(configuration.webPush, folder, clock: clock, group: group) {
        controlOnce.value?.submit(.pushGone($0, endpoint: $1))
      }
      rules.pushKey = webPush?.publicKey
      backEnd = try BackEnd(configuration, answerTime: rules.answerTime, clock: clock, group: group)
    } catch {
      await Self.close(media, nil, nil, group, reading)
      throw error
    }
    spans = configuration.telemetry.map { [group] in SpanExporter($0, group: group) }
    let archive = Archive(store: store, clock: clock, log: log)
    control = ControlPlane(
      node: Node(
        configuration: rules, hashing: .sha256,
        random: { UInt64.random(in: .min ... .max) }, restoring: stored, now: clock.now()),
      media: media, callShare: configuration.media.callShare, announced: announced,
      fingerprint: certificate.fingerprint, clock: clock, loop: group.next(),
      store: store, recorder: Recorder(file: store.path, logger: logger, health: health),
      archive: archive,
      housekeeping: Housekeeping(
        store: store, health: health, clock: clock, historyDays: configuration.history.days, log: log),
      backEnd: backEnd, webPush: webPush, measurements: measurements, log: CallLog(logger),
      telemetry: spans.map(Telemetry.init), reading: reading,
      clients: ControlPlane.Clients(
        deliver: { signalingOnce.value?.deliver($0) }, charge: { signalingOnce.value?.charge($0, $1) },
        refusal: { signalingOnce.value?.refusal($0) })
    )
    controlOnce.set(control)
    guests = authenticator.guests.map { [control] tokens in
      GuestEntry(
        tokens: tokens, clock: clock, proxies: AddressList(configuration.listen.proxies) ?? .loopback,
        calls: GuestEntry.CallLookup(
          admits: { await control.admitsGuest(by: $0, to: $1) }, runs: { await control.runs($0) }),
        origins: configuration.listen.originPolicy)
    }
    let status = StatusPages(
      unready: { [isDraining] in
        if isDraining.value != nil { return "the server is draining: it takes no new calls" }
        if signalingOnce.value == nil { return "not every port is open yet" }
        return authenticator.failure ?? health.statistics.failure
      },
      metrics: { [control, backEnd, webPush, spans, guests] in
        Metrics.text(
          media: media.statistics(), signaling: signalingOnce.value?.statistics, calls: await control.counts,
          outcomes: await control.callCounts,
          waitingForDisk: await control.waitingForDisk,
          backlog: control.backlog, guests: guests?.counts,
          store: health.statistics, backEnd: backEnd, webPush: webPush, spans: spans, measured: measurements.values,
          process: ProcessFacts())
      })
    let (orders, ordering) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    drainOrders = orders
    let commands = AdminCommands(
      control: control, archive: archive, media: media, logger: logger, startedAt: MonotonicClock.now(),
      signaling: { signalingOnce.value?.statistics }, unready: status.unready,
      isDraining: { [isDraining] in isDraining.value != nil }, drain: { ordering.yield() })
    do {
      let pages = try Pages(
        demo: configuration.demo ? authenticator.tokens : nil, guests: guests, clock: clock,
        status: configuration.listen.metrics == nil ? status : nil)
      if let listener = configuration.listen.metrics {
        monitoring = try await MonitoringServer(
          listener.address ?? configuration.listen.address, port: listener.port, group: group, pages: status)
      } else {
        monitoring = nil
      }
      admin = try await AdminServer(path: StateFolder.adminSocket(in: configuration.state), group: group) {
        await commands.answer($0, from: $1)
      }
      signaling = try await Self.signaling(
        configuration.signaling(files, mediaWorkers: media.workers, logger), group, authenticator, clock, control,
        pages,
        logger)
    } catch {
      await spans?.stop()
      await Self.close(media, backEnd, webPush, group, reading)
      throw error
    }
    self.media = media
    signalingOnce.set(signaling)
    control.begin()
  }

  /// How long SIGTERM lets the calls end by themselves.
  package var drainSeconds: Int { current.value.drain }

  /// Applies the values of another configuration that a running server accepts, and reports which have to wait for the
  /// next start.
  /// - Throws: `ConfigurationError` if a secret or the certificate cannot be used. Nothing has changed then.
  package func reload(_ new: Configuration) async throws(ConfigurationError) {
    let credentials = try new.turn.map(TURNCredentials.init)
    var taken = configuration
    taken.takeLive(new)
    do {
      try signaling.use(taken.signaling(files, mediaWorkers: media.workers, logger))
    } catch {
      throw ConfigurationError("\(error)")
    }
    turn.set(credentials)
    guests?.setOrigins(taken.listen.originPolicy)
    let rules = taken
    await control.configure { rules.setLimits(&$0) }
    level.set(new.log)
    let changed = current.value.changes(to: new).live
    let waiting = configuration.changes(to: new).waiting
    current.set(new)
    logger.notice("the configuration was read again", metadata: ["changed": "\(changed.joined(separator: ", "))"])
    guard !waiting.isEmpty else { return }
    logger.warning(
      "these members of the configuration count from the next start on",
      metadata: ["members": "\(waiting.joined(separator: ", "))"])
  }

  /// Accepts no new calls, and waits until none is left, for at most `seconds`; nil has no limit.
  package func drain(seconds: Int?) async {
    isDraining.set(true)
    let (rest, waiting) = AsyncStream.makeStream(of: Void.self)
    control.drain { waiting.finish() }
    let timeout = seconds.map { group.next().scheduleTask(in: .seconds(Int64($0))) { waiting.finish() } }
    for await _ in rest {}
    timeout?.cancel()
  }

  /// Notifies clients, closes the ports and ends the threads.
  package func stop() async {
    await admin.stop()
    await monitoring?.stop()
    await signaling.stop()
    await control.stop()
    await spans?.stop()
    await Self.close(media, backEnd, webPush, group, reading)
  }

  private static func close(
    _ media: MediaWorkers, _ backEnd: BackEnd?, _ webPush: WebPush?, _ group: MultiThreadedEventLoopGroup,
    _ reading: NIOThreadPool
  ) async {
    webPush?.stop()
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
    if let port = metricsPort { lines.append("  metrics      http://localhost:\(port)/metrics") }
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
}
