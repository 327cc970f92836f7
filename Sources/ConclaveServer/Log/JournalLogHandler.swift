import Foundation
import Glibc
import Logging

/// Writes each log line to systemd's journal through standard error, preceded by its priority (sd-daemon(3)), so that `journalctl -p warning` finds it. The journal
/// adds the time.
struct JournalLogHandler: LogHandler {
  let label: String
  var logLevel = Logger.Level.info
  var metadata: Logger.Metadata = [:]

  init(label: String) { self.label = label }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let line = Self.line(event.level, label, "\(event.message)", metadata.merging(event.metadata ?? [:]) { $1 })
    FileHandle.standardError.write(Data((line + "\n").utf8))
  }

  /// - Returns: one line without its end. Line ends inside are escaped, because each line would be a separate entry.
  static func line(_ level: Logger.Level, _ label: String, _ message: String, _ metadata: Logger.Metadata) -> String {
    let members = metadata.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
    let words = [level.rawValue, "\(label):"] + members + [message]
    return "<\(priority(of: level))>" + words.joined(separator: " ").replacing("\n", with: "\\n")
  }

  /// Those of syslog(3).
  private static func priority(of level: Logger.Level) -> Int32 {
    switch level {
    case .trace, .debug: LOG_DEBUG
    case .info: LOG_INFO
    case .notice: LOG_NOTICE
    case .warning: LOG_WARNING
    case .error: LOG_ERR
    case .critical: LOG_CRIT
    }
  }

  /// Whether a descriptor leads to the journal.
  /// - Parameter stream: `JOURNAL_STREAM` of the environment, device and inode (systemd.exec(5)). A child whose standard error was redirected also has it.
  static func isJournal(_ descriptor: Int32, stream: String?) -> Bool {
    var status = stat()
    guard let stream, fstat(descriptor, &status) == 0 else { return false }
    return stream == "\(status.st_dev):\(status.st_ino)"
  }
}
