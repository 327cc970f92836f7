import Forwarding
import LinuxIO
import MediaModel
import Transport

/// The other threads' handle of one worker.
struct WorkerHandle: Sendable {
  let queue: WorkerQueue<MediaCommand>
  let board: StatisticsBoard
  let port: UInt16
  let hasIPv6: Bool
  private let handshakes: HandshakeThread
  private let thread: OSThread

  /// Opens the port and starts the thread.
  init(
    _ address: WorkerAddress, _ configuration: MediaPlaneConfiguration, certificate: DTLSCertificate, seed: UInt64,
    exchange: RelayExchange?, onEvent: @escaping @Sendable (MediaEvent) -> Void
  ) throws(MediaPlaneError) {
    let index = address.worker
    let (socket, listener) = try Self.open(index, configuration)
    port = socket.port
    hasIPv6 = socket.hasIPv6
    do throws(SystemError) {
      let queue = try WorkerQueue<MediaCommand>()
      let board = StatisticsBoard(port: port)
      let relay = exchange.map { RelayPort(index, of: $0) }
      let handshakes = try HandshakeThread(index)
      self.handshakes = handshakes
      let sfu = SFU(
        configuration: configuration.forwarding, certificate: certificate, seed: seed, address: address, relay: relay,
        handshakes: handshakes)
      let worker = try Worker(
        socket: socket, listener: listener, sfu: sfu, relay: relay, handshakes: handshakes.results, queue: queue,
        board: board, onEvent: onEvent)
      let processors = availableProcessors()
      let processor = configuration.isPinned ? processors[index % processors.count] : nil
      thread = try OSThread(name: "media-\(index)", processor: processor) { worker.run() }
      self.queue = queue
      self.board = board
    } catch { throw .system(error) }
  }

  /// A port that is free for UDP may be in use for TCP. Another one is tried then.
  private static let tries = 32

  private static func open(
    _ index: Int, _ configuration: MediaPlaneConfiguration
  ) throws(MediaPlaneError) -> (UDPSocket, TCPListener?) {
    let port = configuration.firstPort == 0 ? 0 : configuration.firstPort + UInt16(index)
    var triesLeft = port == 0 ? tries : 1
    while true {
      do throws(PortError) {
        let socket = try UDPSocket(port: port, options: configuration.socket)
        guard configuration.tcp else { return (socket, nil) }
        return (socket, try TCPListener(port: socket.port, ipv6: socket.hasIPv6))
      } catch {
        triesLeft -= 1
        guard case .inUse(.tcp, _) = error, triesLeft > 0 else { throw .port(error) }
      }
    }
  }

  /// Ends the worker and waits for it.
  func stop() {
    queue.stop()
    thread.join()
    handshakes.stop()
  }
}
