import Foundation
import LinuxIO
import Logging
import MediaModel
import OutboundHTTP
import Listening
import Synchronization

/// The newest good key set of a file or a URL. It is read again when the file changes, every few minutes from a URL, and early if a token names a key
/// that the set lacks. An unusable set leaves the last good one in place.
final class KeySource: Sendable {
  enum Origin: Sendable {
    case file(String)
    case url(String)
  }

  private struct State {
    var keys: KeySet?
    var contents: [UInt8] = []
    /// nil before the file was checked; `.some(nil)` if it is missing.
    var stamp: FileStamp??
    var lastReading: Instant?
    var reading: Task<Void, Never>?
  }

  /// Between two checks of a file.
  private static let filePause = Duration.seconds(5)
  private static let urlPause = Duration.seconds(300)
  /// The least time between two readings, regardless of tokens, and while there is no set yet.
  private static let shortestPause = Duration.seconds(10)
  /// For a whole reading from a URL: a token that names an unknown key waits no longer.
  private static let answerTime = Duration.seconds(5)

  private let origin: Origin
  private let log: LimitedLog
  private let now: @Sendable () -> Instant
  private let state = Mutex(State())

  /// - Parameter now: a monotonic clock.
  init(_ origin: Origin, log: LimitedLog, now: @escaping @Sendable () -> Instant = { MonotonicClock.now() }) {
    self.origin = origin
    self.log = log
    self.now = now
  }

  var hasKeys: Bool { state.withLock { $0.keys != nil } }

  /// The first reading.
  /// - Throws: `ConfigurationError` if a file cannot be used. A URL may answer later: until then no token is valid, and that is logged.
  func start() async throws(ConfigurationError) {
    switch origin {
    case .file: try await readFile()
    case .url: await read()
    }
  }

  /// Looks for changes until its task is cancelled.
  func watch() async {
    while !Task.isCancelled {
      try? await Task.sleep(for: pause)
      if !Task.isCancelled { await read() }
    }
  }

  private var pause: Duration {
    switch origin {
    case .file: Self.filePause
    case .url: hasKeys ? Self.urlPause : Self.shortestPause
    }
  }

  /// The key that a token names; if the set lacks it, the set is read again.
  func key(for token: SignedToken) async throws(TokenError) -> VerificationKey {
    if let key = try key(in: state.withLock({ $0.keys }), for: token) { return key }
    await readForUnknownKey()
    guard let key = try key(in: state.withLock({ $0.keys }), for: token) else { throw .key }
    return key
  }

  /// nil if the set lacks it.
  private func key(in keys: KeySet?, for token: SignedToken) throws(TokenError) -> VerificationKey? {
    do throws(TokenError) {
      return try keys?.key(for: token)
    } catch {
      if error == .key { return nil }
      throw error
    }
  }

  /// Strangers may name any key, so readings are rate-limited. A token that arrives meanwhile waits for the reading under way or finds no
  /// key.
  private func readForUnknownKey() async {
    let time = now()
    let reading = state.withLock { state -> Task<Void, Never>? in
      if let reading = state.reading { return reading }
      if let last = state.lastReading, last.advanced(by: Self.shortestPause) > time { return nil }
      let reading = Task { await self.read() }
      (state.reading, state.lastReading) = (reading, time)
      return reading
    }
    await reading?.value
    if let reading { state.withLock { if $0.reading == reading { $0.reading = nil } } }
  }

  /// Reads the set, and keeps the last one if that fails.
  func read() async {
    state.withLock { $0.lastReading = now() }
    do {
      switch origin {
      case .file: try await readFile()
      case .url(let url): try accept(try await Self.answer(of: url))
      }
    } catch {
      // Our own errors reveal nothing of the contents, and an error of the HTTP client names only what went wrong.
      log.log(
        .keySet, .error, "the key set cannot be read, the last good one stays: check auth.jwksFile or auth.jwksURL",
        ["reason": "\(error)"])
    }
  }

  private func readFile() async throws(ConfigurationError) {
    guard case .file(let name) = origin else { return }
    // The stamp first: a file that changes in between is read again.
    let stamp = FileStamp(path: name)
    guard state.withLock({ exchange(&$0.stamp, with: .some(stamp)) != .some(stamp) }) else { return }
    guard let file = FileHandle(forReadingAtPath: name), let data = try? file.read(upToCount: KeySet.maximumBytes + 1)
    else { throw ConfigurationError("\(name): cannot be read; check its name and mode") }
    guard data.count <= KeySet.maximumBytes else {
      throw ConfigurationError("\(name): it has more than \(KeySet.maximumBytes) bytes")
    }
    do throws(ConfigurationError) {
      try accept(Array(data))
    } catch {
      throw ConfigurationError("\(name): \(error)")
    }
  }

  private static func answer(of url: String) async throws -> [UInt8] {
    // Minutes lie between two readings, so no connection is kept.
    let client = try HTTPClient()
    defer { client.stop() }
    let response = try await client.send(
      HTTPClient.Request(
        url: url, headers: [("accept", "application/jwk-set+json, application/json")], timeout: answerTime,
        maximumBody: KeySet.maximumBytes))
    guard response.status == 200 else { throw ConfigurationError("the answer's status is \(response.status)") }
    return response.body
  }

  private func accept(_ contents: [UInt8]) throws(ConfigurationError) {
    guard state.withLock({ $0.contents != contents }) else { return }
    let keys = try KeySet(json: contents)
    state.withLock { ($0.keys, $0.contents) = (keys, contents) }
    log.log(.keySet, .notice, "a key set was read", ["keys": "\(keys.count)"])
  }
}
