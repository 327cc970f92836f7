import CallMessages
import Connections
import Listening
import Logging
import MediaModel
import NIOCore

/// The parts that all STOMP connections of a server share.
final class STOMPServices: Sendable {
  let current: CurrentConfiguration
  let listeners: Listeners
  let clients: ConnectedClients
  let authenticator: any Authenticator
  let sink: any SignalingSink
  let broker: SharedBroker

  /// The current configuration.
  var configuration: FixedConfiguration { current.value }

  var counters: SignalingCounters { listeners.counters }
  var logger: Logger { listeners.logger }
  /// For log lines that strangers can cause.
  var log: LimitedLog { listeners.log }
  /// The wall clock in which tokens' expiries are expressed.
  var clock: @Sendable () -> Timestamp { listeners.clock }

  init(
    _ configuration: STOMPConfiguration, _ listeners: Listeners, _ clients: ConnectedClients,
    group: any EventLoopGroup, authenticator: any Authenticator, sink: any SignalingSink
  ) {
    current = CurrentConfiguration(configuration)
    self.listeners = listeners
    self.clients = clients
    self.authenticator = authenticator
    self.sink = sink
    broker = SharedBroker(loops: Array(group.makeIterator()), counters: listeners.counters)
  }
}
