import NIOPosix

/// The ports of a server for clients, operators and monitoring; all are open.
struct ServerPorts: Sendable {
  let monitoring: MonitoringServer?
  let admin: AdminServer
  let signaling: Signaling

  /// - Parameter drain: an operator wants the server to drain.
  /// - Throws: `ConfigurationError` if a port cannot be opened.
  init(
    _ parts: ServerParts, _ control: ControlPlane, _ guests: GuestEntry?, _ recordings: RecordingFiles?,
    _ rooms: RoomService?,
    drain: @escaping @Sendable () -> Void
  )
    async throws
  {
    let (configuration, group) = (parts.configuration, parts.services.group)
    let status = parts.statusPages(control, guests)
    let commands = parts.adminCommands(control, unready: status.unready, drain: drain)
    let pages = try Pages(
      demo: configuration.demo ? parts.state.authenticator.tokens : nil, guests: guests, clock: parts.state.clock,
      status: configuration.listen.metrics == nil ? status : nil, page: configuration.page)
    if let listener = configuration.listen.metrics {
      monitoring = try await MonitoringServer(
        listener.address ?? configuration.listen.address, port: listener.port, group: group, pages: status)
    } else {
      monitoring = nil
    }
    admin = try await AdminServer(path: StateFolder.adminSocket(in: configuration.state), group: group) {
      await commands.answer($0, from: $1)
    }
    signaling = try await Signaling.open(
      parts.signaling(configuration), incarnation: parts.state.incarnation, group: group,
      authenticator: parts.state.authenticator, clock: parts.state.clock,
      sink: control, rooms: rooms, routes: (recordings.map { [$0.route] } ?? []) + [pages.route],
      logger: parts.logger)
  }
}
