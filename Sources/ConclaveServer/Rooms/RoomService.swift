import JanusAPI
import JanusFront
import Listening
import MediaPlane
import NIOPosix
import Transport

/// The rooms with the parts that their front needs.
struct RoomService: Sendable {
  let plane: RoomPlane
  let clients: JanusClients
  private let judge: RoomJudge
  private let settings: Configuration.Janus

  /// - Throws: `ConfigurationError`, in words for the operator.
  init(
    _ settings: Configuration.Janus, _ state: ServerState, _ services: ServerServices
  ) throws(ConfigurationError) {
    let clients = JanusClients()
    var gateway = try settings.gateway(version: Server.version, hasTCP: services.media.hasTCP)
    gateway.incarnation = state.incarnation
    plane = try RoomPlane(
      gateway,
      RoomPlane.Parts(
        loop: services.group.next(), workers: services.media, announced: state.announced,
        fingerprint: state.certificate.fingerprint, reading: services.reading, deliver: { clients.deliver($0) }))
    self.clients = clients
    judge = RoomJudge(
      try settings.secrets(), authenticator: settings.tokens ? state.authenticator : nil, clock: state.clock)
    self.settings = settings
  }

  func front(_ listeners: Listeners) -> JanusServer {
    JanusServer(
      JanusConfiguration(), listeners, clients, judge: judge, sink: plane, isOpen: settings.open)
  }

  /// The port that the front has to itself, if it is configured.
  func ports(of front: JanusServer) -> [HTTPEndpoint] {
    settings.listen.map { [front.port(host: $0.address, port: $0.port, usesTLS: true)] } ?? []
  }
}
