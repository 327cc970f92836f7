import Calls
package import Logging
import MediaModel
import MediaPlane
import NIOCore
import NIOPosix

/// A started server: every port is open.
package final class Server: Sendable {
  package static let version = "0.2.0"

  private let parts: ServerParts
  /// The configuration as last read.
  private let current: LiveValue<Configuration>
  private let level: SharedLogLevel
  private let control: ControlPlane
  private let guests: GuestEntry?
  private let recordings: RecordingFiles?
  /// nil without rooms.
  private let rooms: RoomService?
  /// The service of recordings at work without being asked.
  private let upkeep: Task<Void, Never>?
  private let ports: ServerPorts
  /// An operator wants the server to drain: `conclave drain`.
  package let drainOrders: AsyncStream<Void>

  /// The ports that are really bound.
  package var stompPort: Int { ports.signaling.stompPort }
  package var httpPort: Int { ports.signaling.httpPort }
  package var metricsPort: Int? { ports.monitoring?.port }
  package func mediaPort(of worker: Int) -> UInt16 { parts.services.media.port(of: worker) }

  /// - Parameter level: of the logger, which a reload may change.
  /// - Throws: `ConfigurationError`, in words for the operator. Nothing is left open then.
  package init(_ configuration: Configuration, logger: Logger, level: SharedLogLevel? = nil) async throws {
    current = LiveValue(configuration)
    self.level = level ?? SharedLogLevel(configuration.log)
    let (state, stored) = try await ServerState.open(configuration, logger)
    let links = ServerLinks()
    let services = try await ServerServices(configuration, state, links)
    parts = ServerParts(configuration: configuration, logger: logger, state: state, services: services, links: links)
    control = parts.controlPlane(restoring: stored)
    links.control.set(control)
    guests = parts.guestEntry(control)
    recordings = parts.recordingFiles()
    upkeep = services.recordings?.run(log: state.log)
    let (orders, ordering) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    drainOrders = orders
    do {
      rooms = try parts.rooms()
      ports = try await ServerPorts(parts, control, guests, recordings, rooms) { ordering.yield() }
    } catch {
      upkeep?.cancel()
      await services.stop()
      throw error
    }
    links.signaling.set(ports.signaling)
    control.begin()
  }

  /// How long SIGTERM lets the calls end by themselves.
  package var drainSeconds: Int { current.value.drain }

  /// Applies the values of another configuration that a running server accepts, and reports which have to wait for the
  /// next start.
  /// - Throws: `ConfigurationError` if a secret or the certificate cannot be used. Nothing has changed then.
  package func reload(_ new: Configuration) async throws(ConfigurationError) {
    let credentials = try new.turn.map(TURNCredentials.init)
    var taken = parts.configuration
    taken.takeLive(new)
    do {
      try ports.signaling.use(parts.signaling(taken))
    } catch {
      throw ConfigurationError("\(error)")
    }
    parts.state.turn.set(credentials)
    guests?.setOrigins(taken.listen.originPolicy)
    recordings?.setOrigins(taken.listen.originPolicy)
    let rules = taken
    await control.configure { rules.setLimits(&$0) }
    level.set(new.log)
    let changed = current.value.changes(to: new).live
    let waiting = parts.configuration.changes(to: new).waiting
    current.set(new)
    parts.logger.notice(
      "the configuration was read again", metadata: ["changed": "\(changed.joined(separator: ", "))"])
    guard !waiting.isEmpty else { return }
    parts.logger.warning(
      "these members of the configuration count from the next start on",
      metadata: ["members": "\(waiting.joined(separator: ", "))"])
  }

  /// Accepts no new calls, and waits until none is left, for at most `seconds`; nil has no limit.
  package func drain(seconds: Int?) async {
    parts.links.isDraining.set(true)
    let (rest, waiting) = AsyncStream.makeStream(of: Void.self)
    control.drain { waiting.finish() }
    rooms?.plane.drain()
    let timeout = seconds.map { parts.services.group.next().scheduleTask(in: .seconds(Int64($0))) { waiting.finish() } }
    for await _ in rest {}
    timeout?.cancel()
  }

  /// Notifies clients, closes the ports and ends the threads.
  package func stop() async {
    upkeep?.cancel()
    await ports.admin.stop()
    await ports.monitoring?.stop()
    await rooms?.plane.stop()
    await ports.signaling.stop()
    await control.stop()
    await parts.services.stop()
    // The media plane hands on segments until its end.
    await parts.links.recordings.value?.stop()
  }

  /// The text that the operator sees at the start.
  package var greeting: String {
    let (configuration, media) = (parts.configuration, parts.services.media)
    let scheme = configuration.tls == nil ? "http" : "https"
    var lines = ["Conclave \(Server.version)", "  web client   \(scheme)://localhost:\(httpPort)/"]
    let socket = scheme == "http" ? "ws" : "wss"
    let plain = configuration.listen.stomp == nil ? "" : "stomp://localhost:\(stompPort), "
    let secured = ports.signaling.stompTLSPort.map { "stomps://localhost:\($0), " } ?? ""
    lines.append("  STOMP        \(plain)\(secured)\(socket)://localhost:\(httpPort)/stomp")
    if rooms != nil {
      let own = ports.signaling.roomPort.map { ", \(socket)://localhost:\($0)/" } ?? ""
      lines.append("  rooms        \(socket)://localhost:\(httpPort)/janus\(own)")
    }
    let last = media.workers > 1 ? " to \(mediaPort(of: media.workers - 1))" : ""
    if let port = metricsPort { lines.append("  metrics      http://localhost:\(port)/metrics") }
    lines.append("  media        \(media.hasTCP ? "UDP, TCP" : "UDP") \(mediaPort(of: 0))\(last)")
    if parts.state.authenticator.secretIsNew {
      lines.append("  A new secret for tokens was made: \(configuration.state)/secret")
    }
    if !configuration.auth.hasKeySet, configuration.auth.secretFile == nil {
      let program = CommandLine.arguments[0]
      lines.append("  Mint a token: \(program) token --state \(configuration.state) --user alice --device laptop")
    }
    if configuration.demo { lines.append("  Demo: from this machine a name is enough to sign in.") }
    return lines.joined(separator: "\n")
  }
}
