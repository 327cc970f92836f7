package import Listening
import NIOCore

/// The parts that the front's connections and routes share.
struct JanusServices: Sendable {
  let configuration: JanusConfiguration
  let listeners: Listeners
  let clients: JanusClients
  let judge: any JanusJudge
  let sink: any JanusSink
  /// Requests need no secret.
  let isOpen: Bool
}

/// The front that speaks Janus's API, over WebSocket and by long polls.
///
/// ## Overview
/// Requests go to the sink as JSON values, with the rights that their secrets give. The messages of the rooms come back by `clients`.
package struct JanusServer: Sendable {
  private let services: JanusServices

  /// The paths on the HTTP port.
  private static let paths: Set<String> = ["/janus", "/janus/"]

  /// - Parameter isOpen: requests need no secret.
  package init(
    _ configuration: JanusConfiguration, _ listeners: Listeners, _ clients: JanusClients, judge: any JanusJudge,
    sink: any JanusSink,
    isOpen: Bool
  ) {
    services = JanusServices(
      configuration: configuration, listeners: listeners, clients: clients, judge: judge, sink: sink, isOpen: isOpen)
  }

  /// The WebSocket of the HTTP port.
  package var webSocket: WebSocketEndpoint { webSocket(at: Self.paths) }

  /// A port that the front has to itself, where Janus's clients look for it: its WebSocket is at the root, too.
  package func port(host: String?, port: Int, usesTLS: Bool) -> HTTPEndpoint {
    HTTPEndpoint(
      host: host, port: port, usesTLS: usesTLS, webSockets: [webSocket(at: Self.paths.union(["", "/"]))],
      routes: [route])
  }

  private func webSocket(at paths: Set<String>) -> WebSocketEndpoint {
    WebSocketEndpoint(
      paths: paths, subprotocols: ["janus-protocol"], needsSubprotocol: true,
      bounds: { [services] in
        .init(message: services.configuration.messageBytes, beforeLogin: services.configuration.bytesBeforeLogin)
      },
      addHandlers: { [services] channel, gate in
        try channel.pipeline.syncOperations.addHandler(JanusConnection(services, gate: gate))
      })
  }

  /// Requests and long polls over HTTP.
  package var route: Route {
    Route(.under("/janus"), methods: ["GET", "POST", "OPTIONS"], maximumBody: services.configuration.messageBytes) {
      [services] request, body in
      await JanusExchange(services, request).answer(body)
    }
  }
}
