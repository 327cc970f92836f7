package import Connections
package import Listening
import MediaModel
package import NIOCore
import STOMP

/// The front that speaks STOMP, over TCP and WebSocket.
///
/// ## Overview
/// Clients' commands go to the sink, and the control plane's answers come by the `ConnectedClients`. Between them is one `ConnectionHandler` per connection, on
/// an event loop of the caller's group.
package final class STOMPServer: Sendable {
  private let services: STOMPServices
  private let chores: RepeatedTask

  /// The paths of the WebSocket.
  private static let paths: Set<String> = ["/stomp", "/stomp/", "/stomp/websocket", "/ws", "/ws/"]

  /// - Parameters:
  ///   - group: the event loops of the listeners.
  ///   - authenticator: verifies tokens.
  ///   - sink: gets the commands of all sessions.
  package init(
    _ configuration: STOMPConfiguration, _ listeners: Listeners, _ clients: ConnectedClients,
    group: any EventLoopGroup, authenticator: any Authenticator, sink: any SignalingSink
  ) {
    let services = STOMPServices(
      configuration, listeners, clients, group: group, authenticator: authenticator, sink: sink)
    self.services = services
    let pause = TimeAmount.nanoseconds(configuration.choreInterval.nanoseconds)
    chores = group.next().scheduleRepeatedTask(initialDelay: pause, delay: pause) { _ in
      services.broker.expire(now: NIODeadline.now().uptimeNanoseconds)
    }
  }

  /// The ports that the listeners have to open: the one without TLS, if it is configured, and then the one with TLS, if there is a certificate.
  package var ports: [TCPEndpoint] {
    let configuration = services.configuration.values
    var ports: [TCPEndpoint] = []
    if let port = configuration.port { ports.append(endpoint(configuration.host, port, usesTLS: false)) }
    if services.listeners.configuration.tls != nil {
      ports.append(endpoint(configuration.tlsHost, configuration.tlsPort, usesTLS: true))
    }
    return ports
  }

  private func endpoint(_ host: String?, _ port: Int, usesTLS: Bool) -> TCPEndpoint {
    TCPEndpoint(host: host, port: port, usesTLS: usesTLS) { [services] channel in
      try channel.pipeline.syncOperations.addHandler(
        ConnectionHandler(services: services, gate: nil, now: channel.eventLoop.now.uptimeNanoseconds))
    }
  }

  package var webSocket: WebSocketEndpoint {
    WebSocketEndpoint(
      // CONNECT settles the version, so a client need not offer any.
      paths: Self.paths, subprotocols: ["v12.stomp", "v11.stomp", "v10.stomp"],
      bounds: { [services] in
        let limits = services.configuration.limits
        return .init(message: limits.messageBytes, beforeLogin: 2 * limits.frameBeforeLogin.head)
      },
      addHandlers: { [services] channel, gate in
        try channel.pipeline.syncOperations.addHandler(
          ConnectionHandler(services: services, gate: gate, now: channel.eventLoop.now.uptimeNanoseconds))
      })
  }

  /// Applies the limits of another configuration. Ports and addresses stay, and open connections keep their own limits.
  package func use(_ configuration: STOMPConfiguration) { services.current.set(configuration) }

  /// Ends the periodic work. The listeners and the clients stop by themselves.
  package func stop() { chores.cancel() }
}
