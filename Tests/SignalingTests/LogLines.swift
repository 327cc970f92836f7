import Logging
import Synchronization

/// Keeps the levels of what is logged.
final class LogLines: LogHandler, Sendable {
  private let lines = Mutex<[Logger.Level]>([])

  var levels: [Logger.Level] { lines.withLock { $0 } }

  var metadata: Logger.Metadata {
    get { [:] }
    set {}
  }
  var logLevel: Logger.Level {
    get { .debug }
    set {}
  }
  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { nil }
    set {}
  }

  func log(event: LogEvent) { lines.withLock { $0.append(event.level) } }
}
