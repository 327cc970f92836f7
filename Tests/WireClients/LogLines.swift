package import Logging
import Synchronization

/// Records what is logged.
package final class LogLines: LogHandler, Sendable {
  private let lines = Mutex<[(level: Logger.Level, text: String)]>([])

  package init() {}

  package var levels: [Logger.Level] { lines.withLock { $0.map(\.level) } }
  /// The message and metadata of each line.
  package var texts: [String] { lines.withLock { $0.map(\.text) } }

  package var metadata: Logger.Metadata {
    get { [:] }
    set {}
  }
  package var logLevel: Logger.Level {
    get { .debug }
    set {}
  }
  package subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { nil }
    set {}
  }

  package func log(event: LogEvent) {
    let metadata = (event.metadata ?? [:]).map { " \($0.key)=\($0.value)" }.sorted().joined()
    lines.withLock { $0.append((event.level, "\(event.message)\(metadata)")) }
  }
}
