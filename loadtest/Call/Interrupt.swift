import Dispatch
import Glibc
import Synchronization

/// SIGINT ends the measuring, not the program: the report still comes.
final class Interrupt: Sendable {
  private let came = Mutex(false)
  private let source: any DispatchSourceSignal

  init() {
    signal(SIGINT, SIG_IGN)
    source = DispatchSource.makeSignalSource(signal: SIGINT)
    source.setEventHandler { [weak self] in self?.came.withLock { $0 = true } }
    source.resume()
  }

  var hasCome: Bool { came.withLock { $0 } }
}
