import LinuxIO
import MediaModel
import Synchronization

/// The way into a worker from other threads: commands in order, and the wish to stop.
final class WorkerQueue: Sendable {
  private struct Waiting {
    var commands: [MediaCommand] = []
    var isStopping = false
  }

  private let waiting = Mutex(Waiting())
  private let wake: EventFD

  init() throws(SystemError) { wake = try EventFD() }

  /// Readable while there is something to take.
  var descriptor: Int32 { wake.descriptor }

  /// Any thread. Commands after `stop` are dropped.
  func submit(_ command: MediaCommand) {
    let isFirst = waiting.withLock { waiting in
      guard !waiting.isStopping else { return false }
      waiting.commands.append(command)
      return waiting.commands.count == 1
    }
    if isFirst { wake.signal() }
  }

  /// Any thread: the worker carries out what was submitted before, then ends.
  func stop() {
    waiting.withLock { $0.isStopping = true }
    wake.signal()
  }

  /// The worker: exchanges the waiting commands for the empty `taken`, so that both arrays keep their memory. Returns whether to stop after them.
  func take(into taken: inout [MediaCommand]) -> Bool {
    wake.drain()
    return waiting.withLock { waiting in
      swap(&waiting.commands, &taken)
      return waiting.isStopping
    }
  }
}
