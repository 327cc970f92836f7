import Logging
import Synchronization

/// The lowest level of log lines that are written, shared by all loggers: it may change while the server runs.
package final class SharedLogLevel: Sendable {
  private let stored: Mutex<Logger.Level>

  package init(_ level: Configuration.LogLevel) { stored = Mutex(Self.level(level)) }

  var value: Logger.Level { stored.withLock { $0 } }

  func set(_ level: Configuration.LogLevel) { stored.withLock { $0 = Self.level(level) } }

  private static func level(_ level: Configuration.LogLevel) -> Logger.Level {
    switch level {
    case .debug: .debug
    case .info: .info
    case .notice: .notice
    case .warning: .warning
    case .error: .error
    }
  }
}

/// Passes lines on to another handler, from a level on that all loggers share.
struct SharedLevelHandler<Handler: LogHandler>: LogHandler {
  private var handler: Handler
  private let level: SharedLogLevel

  init(_ handler: Handler, _ level: SharedLogLevel) {
    self.handler = handler
    self.level = level
    self.handler.logLevel = .trace
  }

  var logLevel: Logger.Level {
    get { level.value }
    // Only the configuration sets it.
    set {}
  }

  var metadata: Logger.Metadata {
    get { handler.metadata }
    set { handler.metadata = newValue }
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { handler[metadataKey: key] }
    set { handler[metadataKey: key] = newValue }
  }

  func log(event: LogEvent) { handler.log(event: event) }
}
