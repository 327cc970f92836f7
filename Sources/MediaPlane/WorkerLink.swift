import Forwarding
import LinuxIO
import MediaModel
import Transport

/// What the other threads hold of one worker.
struct WorkerLink: Sendable {
  let queue: CommandQueue
  let board: StatisticsBoard
  let port: UInt16
  let hasIPv6: Bool
  private let thread: OSThread

  /// Opens the port and starts the thread.
  init(
    _ index: Int, _ configuration: MediaPlaneConfiguration, certificate: DTLSCertificate, seed: UInt64,
    onEvent: @escaping @Sendable (MediaEvent) -> Void
  ) throws(MediaPlaneError) {
    let socket: UDPSocket
    do {
      let port = configuration.firstPort == 0 ? 0 : configuration.firstPort + UInt16(index)
      socket = try UDPSocket(port: port, options: configuration.socket)
    } catch { throw .socket(error) }
    port = socket.port
    hasIPv6 = socket.hasIPv6
    do throws(SystemError) {
      let queue = try CommandQueue()
      let board = StatisticsBoard(port: port)
      let sfu = SFU(configuration: configuration.forwarding, certificate: certificate, seed: seed)
      let worker = try Worker(socket: socket, sfu: sfu, queue: queue, board: board, onEvent: onEvent)
      let processors = availableProcessors()
      let processor = configuration.isPinned ? processors[index % processors.count] : nil
      thread = try OSThread(name: "media-\(index)", processor: processor) { worker.run() }
      self.queue = queue
      self.board = board
    } catch { throw .system(error) }
  }

  /// Ends the worker and waits for it.
  func stop() {
    queue.stop()
    thread.join()
  }
}
