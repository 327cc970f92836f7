import Forwarding
import LinuxIO
package import MediaModel
package import Transport

/// The media plane: worker threads, each with its own port (UDP and TCP) and its own SFU.
///
/// The facade that the control plane uses, from any thread. A peer lives on one worker. The caller decides which, and informs the other workers of the same
/// call (`MediaCommand.mirror`). Commands go in through `submit`, events come out through the closure given at the start.
package final class MediaWorkers: Sendable {
  private let handles: [WorkerHandle]
  /// The workers in the order of their numbers.
  package let addresses: [WorkerAddress]
  /// Whether the workers take TCP connections too.
  package let hasTCP: Bool

  /// Opens the ports and starts the workers.
  /// - Parameters:
  ///   - node: this run of the server, for the workers' addresses.
  ///   - seed: for the SFUs' random choices; from the system's generator in a server.
  ///   - onEvent: called on the workers' threads, in order for each worker. It must not block, because packets wait
  ///     behind it.
  package init(
    _ configuration: MediaPlaneConfiguration, node: Incarnation, certificate: DTLSCertificate, seed: UInt64,
    onEvent: @escaping @Sendable (MediaEvent) -> Void
  ) throws(MediaPlaneError) {
    let layout = configuration
    guard layout.workers > 0, layout.firstPort == 0 || Int(layout.firstPort) + layout.workers <= 65_536 else {
      throw .badLayout(workers: layout.workers, firstPort: layout.firstPort)
    }
    let addresses = (0..<layout.workers).map { WorkerAddress(node: node, worker: $0) }
    var handles: [WorkerHandle] = []
    do throws(MediaPlaneError) {
      let exchange = try Self.exchange(workers: layout.workers, of: node)
      for address in addresses {
        handles.append(
          try WorkerHandle(
            address, layout, certificate: certificate, seed: seed &+ UInt64(address.worker), exchange: exchange,
            onEvent: onEvent))
      }
    } catch {
      for handle in handles { handle.stop() }
      throw error
    }
    self.handles = handles
    self.addresses = addresses
    hasTCP = layout.tcp
  }

  private static func exchange(workers: Int, of node: Incarnation) throws(MediaPlaneError) -> RelayExchange? {
    do throws(SystemError) { return workers > 1 ? try RelayExchange(workers: workers, of: node) : nil } catch {
      throw .system(error)
    }
  }

  deinit { stop() }

  /// Workers are numbered from 0.
  package var workers: Int { handles.count }

  /// The worker's port, of UDP and of TCP.
  package func port(of worker: Int) -> UInt16 { handles[worker].port }

  /// Every address at which the worker can be reached, for ICE candidates: reachable ones first, then loopback, then
  /// link-local.
  package func addresses(of worker: Int) -> [SocketAddress] {
    hostAddresses(ipv6: handles[worker].hasIPv6).map {
      SocketAddress(high: $0.high, low: $0.low, port: handles[worker].port, scope: $0.scope)
    }
  }

  /// Passes a command to a worker; may be called on any thread. Commands of one thread are carried out in order. After `stop`
  /// they are dropped.
  package func submit(_ command: MediaCommand, worker: Int) { handles[worker].queue.submit(command) }

  /// One for each worker, at most 100 ms old.
  package func statistics() -> [WorkerStatistics] { handles.map(\.board.statistics) }

  /// Carries out what was submitted, sends what is ready, ends the threads and closes the ports. Waits for that; must not be called from
  /// `onEvent`.
  package func stop() {
    for handle in handles { handle.queue.stop() }
    for handle in handles { handle.stop() }
  }
}
