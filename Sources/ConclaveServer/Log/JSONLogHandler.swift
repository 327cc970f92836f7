import Foundation
import JSON
import Logging

/// Writes each log line as one JSON object on standard error (`logFormat` `json`): `time`, `level`, `message`, and the metadata beside them.
struct JSONLogHandler: LogHandler {
  var logLevel = Logger.Level.info
  var metadata: Logger.Metadata = [:]

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var line = Self.line(at: Date(), event.level, "\(event.message)", metadata.merging(event.metadata ?? [:]) { $1 })
    line.append(UInt8(ascii: "\n"))
    FileHandle.standardError.write(Data(line))
  }

  /// - Returns: the object without a line end. A metadata value is text; `time`, `level` and `message` take precedence over
  ///   its name.
  static func line(at time: Date, _ level: Logger.Level, _ message: String, _ metadata: Logger.Metadata) -> [UInt8] {
    var members = metadata.mapValues { "\($0)" }
    members["time"] = time.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true))
    members["level"] = level.rawValue
    members["message"] = message
    // Strings can always be encoded.
    return (try? JSONCoding.encode(members)) ?? []
  }
}
