import Forwarding
import LinuxIO
package import MediaModel
package import Reels
package import Transport

/// The media plane: worker threads, each with its own port (UDP and TCP) and its own SFU.
///
/// The facade that the control plane uses, from any thread. A peer lives on one worker. The caller decides which, and informs the other workers of the same
/// call (`MediaCommand.mirror`). Commands go in through `submit`, events come out through the closure given at the start.
package final class MediaWorkers: Sendable {
  private let handles: [WorkerHandle]
  /// nil if calls are not recorded.
  private let reels: ReelHandle?
  /// The workers in the order of their numbers.
  package let addresses: [WorkerAddress]
  /// Whether the workers take TCP connections too.
  package let hasTCP: Bool

  /// Opens the ports and starts the workers.
  /// - Parameters:
  ///   - node: this run of the server, for the workers' addresses.
  ///   - seed: for the SFUs' random choices; from the system's generator in a server.
  ///   - wallClock: microseconds since 1970 when the monotonic clock was 0, for recordings.
  ///   - onReels: called on the thread that makes reels, in order, with what has to be stored. It must not block.
  ///   - onEvent: called on the workers' threads, in order for each worker. It must not block, because packets wait
  ///     behind it.
  package init(
    _ configuration: MediaPlaneConfiguration, node: Incarnation, certificate: DTLSCertificate, seed: UInt64,
    wallClock: @escaping @Sendable () -> Int64 = { 0 },
    onReels: @escaping @Sendable ([ReelOutput]) -> Void = { _ in },
    onEvent: @escaping @Sendable (MediaEvent) -> Void
  ) throws(MediaPlaneError) {
    let layout = configuration
    guard layout.workers > 0, layout.firstPort == 0 || Int(layout.firstPort) + layout.workers <= 65_536 else {
      throw .badLayout(workers: layout.workers, firstPort: layout.firstPort)
    }
    let addresses = (0..<layout.workers).map { WorkerAddress(node: node, worker: $0) }
    var handles: [WorkerHandle] = []
    var reels: ReelHandle?
    do throws(MediaPlaneError) {
      let exchange = try Self.exchange(layout, of: node)
      for address in addresses {
        handles.append(
          try WorkerHandle(
            address, layout, certificate: certificate, seed: seed &+ UInt64(address.worker), exchange: exchange,
            onEvent: onEvent))
      }
      if let configuration = layout.reels, let exchange {
        let boards = zip(addresses, handles).map { (worker: $0, board: $1.board) }
        reels = try Self.reels(configuration, exchange, boards, wallClock, onReels)
      }
    } catch {
      for handle in handles { handle.stop() }
      throw error
    }
    self.handles = handles
    self.reels = reels
    self.addresses = addresses
    hasTCP = layout.tcp
  }

  /// nil for a single worker without a recorder: it has nobody to send to.
  private static func exchange(
    _ layout: MediaPlaneConfiguration, of node: Incarnation
  ) throws(MediaPlaneError) -> RelayExchange? {
    guard layout.workers > 1 || layout.reels != nil else { return nil }
    do throws(SystemError) {
      return try RelayExchange(workers: layout.workers, of: node, hasRecorder: layout.reels != nil)
    } catch { throw .system(error) }
  }

  private static func reels(
    _ configuration: ReelTable.Configuration, _ exchange: RelayExchange,
    _ boards: [(worker: WorkerAddress, board: StatisticsBoard)], _ wallClock: @escaping @Sendable () -> Int64,
    _ onOutput: @escaping @Sendable ([ReelOutput]) -> Void
  ) throws(MediaPlaneError) -> ReelHandle {
    do throws(SystemError) {
      return try ReelHandle(
        configuration, exchange: exchange, boards: boards, wallClock: wallClock, onOutput: onOutput)
    } catch { throw .system(error) }
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

  /// Passes a command to the thread that makes reels, as `submit`. Without one it is dropped.
  package func submit(_ command: ReelCommand) { reels?.queue.submit(command) }

  /// nil if calls are not recorded.
  package var reelStatistics: ReelStatistics? { reels?.board.statistics }

  /// One for each worker, at most 100 ms old.
  package func statistics() -> [WorkerStatistics] { handles.map(\.board.statistics) }

  /// Carries out what was submitted, sends what is ready, ends the threads and closes the ports. Waits for that; must not be called from
  /// `onEvent`.
  package func stop() {
    reels?.stop()
    for handle in handles { handle.queue.stop() }
    for handle in handles { handle.stop() }
  }
}
