package import Calls
import Foundation
import JSON
import Logging
package import MediaModel
import UnixSignals

/// The program's commands: run the server, mint a token, forget a user.
package enum Commands {
  /// Runs the server until SIGINT, or until SIGTERM and the end of the calls. SIGHUP makes it read the configuration
  /// again.
  /// - Parameter load: reads the configuration.
  /// - Throws: `ConfigurationError` if it cannot start, in words for the operator.
  package static func serve(_ load: @escaping @Sendable () throws -> Configuration) async throws {
    let configuration = try load()
    try configuration.validate()
    let format = configuration.logFormat
    let level = SharedLogLevel(configuration.log)
    let isJournal = JournalLogHandler.isJournal(
      STDERR_FILENO, stream: ProcessInfo.processInfo.environment["JOURNAL_STREAM"])
    let logger = Logger(label: "conclave") { label -> any LogHandler in
      switch format {
      case .text where isJournal: SharedLevelHandler(JournalLogHandler(label: label), level)
      case .text: SharedLevelHandler(StreamLogHandler.standardError(label: label), level)
      case .json: SharedLevelHandler(JSONLogHandler(), level)
      }
    }
    // Trapped before the ports open, because a signal in between must not kill us half started.
    let signals = await UnixSignalsSequence(trapping: .sigint, .sigterm, .sighup)
    let server: Server
    do {
      server = try await Server(configuration, logger: logger, level: level)
    } catch let error as ConfigurationError {
      throw configuration.located(error)
    }
    FileHandle.standardOutput.write(Data((server.greeting + "\n").utf8))
    await Lifetime(server: server, logger: logger, load: load).run(until: signals)
    await server.stop()
  }

  /// Asks a running server by its admin socket.
  /// - Parameter asJSON: the unchanged reply instead of a table.
  /// - Returns: text for standard output.
  /// - Throws: `ConfigurationError`, in words for the operator.
  package static func administer(
    _ request: AdminRequest, configuration: Configuration, asJSON: Bool
  ) throws(ConfigurationError) -> String {
    try text(of: AdminClient(folder: configuration.state).ask(request), to: request.command, asJSON: asJSON)
  }

  /// Asks a running server for its status, as `administer`.
  /// - Returns: text for standard output, and whether the server accepts calls.
  package static func status(
    configuration: Configuration, asJSON: Bool
  ) throws(ConfigurationError) -> (text: String, isReady: Bool) {
    let reply = try AdminClient(folder: configuration.state).ask(AdminRequest(.status))
    let status = try readable { () throws(JSONError) in try JSONCoding.decode(AdminStatus.self, from: reply) }
    return (try text(of: reply, to: .status, asJSON: asJSON), status.notReady == nil)
  }

  private static func text(
    of reply: [UInt8], to command: AdminRequest.Command, asJSON: Bool
  ) throws(ConfigurationError) -> String {
    guard !asJSON else { return String(decoding: reply, as: UTF8.self) }
    return try readable { () throws(JSONError) in
      try AdminTables.text(of: reply, to: command, now: WallClock().now())
    }
  }

  private static func readable<Value>(_ read: () throws(JSONError) -> Value) throws(ConfigurationError) -> Value {
    do throws(JSONError) {
      return try read()
    } catch {
      throw ConfigurationError("the server's answer cannot be read: it is of another version, or use --json")
    }
  }

  /// The call that an operator names: by its id, or by the first characters of the id of a running call.
  /// - Throws: `ConfigurationError` if no running call's id begins like this, or several calls' ids do, in words for the operator.
  package static func call(_ text: String, configuration: Configuration) throws(ConfigurationError) -> CallID {
    if let call = CallID(text), text.utf8.count == 36 || call.isOfRoom { return call }
    let reply = try AdminClient(folder: configuration.state).ask(AdminRequest(.calls))
    let running = try readable { () throws(JSONError) in try JSONCoding.decode(AdminCalls.self, from: reply) }
    return try running.call(beginningWith: text.lowercased())
  }

  /// - Throws: `ConfigurationError` for text that is not the id of a user.
  package static func userID(_ text: String) throws(ConfigurationError) -> UserID {
    guard let user = UserID(text) else {
      throw ConfigurationError("an id is 1 to 128 bytes of A-Z a-z 0-9 . _ ~ @ + -")
    }
    return user
  }

  /// - Throws: `ConfigurationError` for text that is not the id of a report.
  package static func reportID(_ text: String) throws(ConfigurationError) -> ReportID {
    guard let report = ReportID(text) else { throw ConfigurationError("\(text) is no id of a report") }
    return report
  }

  /// - Throws: `ConfigurationError` for text that is not the id of a recording.
  package static func recordingID(_ text: String) throws(ConfigurationError) -> RecordingID {
    guard let recording = RecordingID(text.lowercased()) else {
      throw ConfigurationError("\(text) is no id of a recording: `conclave recordings` lists them")
    }
    return recording
  }

  /// A moment as people name it: a day (2026-11-25), a time (2026-11-25T14:55:00Z), or how long ago (90m, 24h, 7d).
  /// - Throws: `ConfigurationError` for any other text.
  package static func moment(_ text: String, now: Timestamp) throws(ConfigurationError) -> Timestamp {
    let units: [Character: Int64] = ["m": 60_000, "h": 3_600_000, "d": 86_400_000]
    if let unit = text.last.flatMap({ units[$0] }), let count = Int64(text.dropLast()), (0...1_000_000).contains(count)
    {
      return Timestamp(milliseconds: now.milliseconds - count * unit)
    }
    let day = Date.ISO8601FormatStyle(timeZone: .gmt).year().month().day()
    guard let date = (try? Date(text, strategy: .iso8601)) ?? (try? Date(text, strategy: day)) else {
      throw ConfigurationError("\(text): take a day (2026-11-25), a time (2026-11-25T14:55:00Z), or 90m, 24h, 7d")
    }
    return Timestamp(milliseconds: Int64(date.timeIntervalSince1970 * 1_000))
  }

  /// The same, from now.
  package static func moment(_ text: String) throws(ConfigurationError) -> Timestamp {
    try moment(text, now: WallClock().now())
  }

  /// Finds everything that `serve` would refuse, and changes nothing.
  /// - Returns: text for standard output.
  /// - Throws: `ConfigurationError` with a line for each thing that is wrong.
  package static func check(_ configuration: Configuration) async throws -> String {
    do throws(ConfigurationError) {
      let remark = try await Server.check(configuration)
      return ["The configuration is good.", remark].compactMap { $0 }.joined(separator: " ")
    } catch {
      throw configuration.located(error)
    }
  }

  /// Tries each TURN and STUN server of the configuration, as a client would.
  /// - Parameter trust: a PEM file of authorities to trust in addition to the system's.
  /// - Returns: a line for each, and whether it works.
  /// - Throws: `ConfigurationError` if there is none to try, in words for the operator.
  package static func checkTURN(
    _ configuration: Configuration, trust: String?
  ) async throws(ConfigurationError) -> [(line: String, isGood: Bool)] {
    try await TURNCheck(configuration, trust: trust, now: WallClock().now()).run()
  }

  /// Deletes everything stored about a user. A running server forgets the user within seconds, one that starts later
  /// immediately.
  /// - Throws: `ConfigurationError` for a bad id, and if there is no database or it cannot be written.
  package static func forget(user: String, configuration: Configuration) throws(ConfigurationError) {
    let user = try userID(user)
    let path = StateFolder.database(in: configuration.state)
    guard configuration.store != nil || FileManager.default.fileExists(atPath: path) else {
      throw ConfigurationError("\(path): there is no such file; name the server's state folder by --state or --config")
    }
    let store = try configuration.openStore(file: path, patience: 10)
    do throws(StoreError) {
      try store.forget(user)
    } catch {
      throw ConfigurationError(error.description)
    }
  }

  /// A token signed with the server's secret, valid for `seconds`.
  /// - Throws: `ConfigurationError` for a bad id or time, or if there is no secret to sign with.
  package static func mintToken(
    configuration: Configuration, user: String, device: String?, name: String?, roles: [String], scope: String?,
    seconds: Int
  ) throws -> String {
    let rule = "an id is 1 to 128 bytes of A-Z a-z 0-9 . _ ~ @ + -"
    guard let user = UserID(user) else { throw ConfigurationError("--user: \(rule)") }
    let deviceID = device.flatMap(DeviceID.init)
    guard (deviceID == nil) == (device == nil) else { throw ConfigurationError("--device: \(rule)") }
    guard (1...315_360_000).contains(seconds) else { throw ConfigurationError("--seconds: take 1 to 315360000") }
    guard !configuration.auth.hasKeySet else {
      throw ConfigurationError("with a key set your own issuer makes the tokens: the server has public keys only")
    }
    // Not created here, because a token by a secret that no server has is useless.
    let file = configuration.auth.secretFile ?? configuration.state + "/secret"
    guard let secret = try StateFolder.secret(at: file) else {
      throw ConfigurationError(
        "\(file): there is no secret that can be read; start the server once, be its user, or name its folder by --state"
      )
    }
    return try TokenAuthority(secret: secret).mint(
      user: user, device: deviceID, name: name, roles: roles, scope: scope,
      expiresAt: WallClock().now() + .seconds(seconds))
  }
}
