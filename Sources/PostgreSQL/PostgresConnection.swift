import CPostgreSQL
import Glibc
import LinuxIO
import MediaModel

/// One connection to a server, by libpq. Its owner uses it on one thread at a time, which waits for the answers.
package final class PostgresConnection {
  /// The rules of a session: its name, and how long its statements may take and wait.
  package struct Settings: Sendable {
    /// `application_name`, by which operators and check-config find the session.
    package var name: String
    /// After that the server gives up a statement; nil: never. A commit must have none: it cancels the wait for a standby, not the commit.
    package var statement: Duration?
    /// After that the server gives up waiting for another transaction.
    package var lock: Duration
    /// After that the server ends a transaction in which nothing is asked.
    package var idle: Duration
    /// After that without a byte from the server the connection counts as lost.
    package var silence: Duration

    package init(name: String, statement: Duration?, lock: Duration, idle: Duration, silence: Duration) {
      self.name = name
      self.statement = statement
      self.lock = lock
      self.idle = idle
      self.silence = silence
    }
  }

  /// Pipeline mode is in libpq, `client_connection_check_interval` in the server, both from 14 on.
  package static let oldestVersion = 140_000

  let library: cpostgresql_library
  let handle: OpaquePointer
  let silence: Duration
  /// Names of the statements that the server knows, by their text.
  var prepared: [String: String] = [:]
  /// How many names were given.
  var numberOfNames = 0
  /// It was lost, and nothing more can be asked.
  var isLost = false
  private let warnings: Warnings

  /// libpq has an unretained pointer to it.
  private final class Warnings {
    let library: cpostgresql_library
    var count = 0

    init(_ library: cpostgresql_library) { self.library = library }

    func take(_ notice: OpaquePointer?) {
      let severity = library.error_field(notice, cpostgresql_severity_field()).map { String(cString: $0) }
      if severity == "WARNING" { count += 1 }
    }
  }

  /// Connects, for at most 3 seconds for each address of each host; a resolver that does not answer takes its own time.
  package init(_ target: PostgresTarget, _ settings: Settings) throws(PostgresError) {
    library = try PostgresLibrary.functions()
    silence = settings.silence
    warnings = Warnings(library)
    guard let handle = Self.connect(library, target, name: settings.name) else {
      throw .notConnected("there is no memory")
    }
    self.handle = handle
    guard library.status(handle) == CONNECTION_OK else {
      throw .notConnected(Self.line(library.error_message(handle).map { String(cString: $0) } ?? ""))
    }
    // The text of a warning is dropped: it would go to standard error.
    _ = library.set_notice_receiver(
      handle,
      { context, notice in
        guard let context else { return }
        Unmanaged<Warnings>.fromOpaque(context).takeUnretainedValue().take(notice)
      }, Unmanaged.passUnretained(warnings).toOpaque())
    guard library.set_nonblocking(handle, 1) == 0, library.enter_pipeline_mode(handle) == 1 else {
      throw .lost(after: nil)
    }
    try check()
    try apply(settings)
  }

  deinit { library.finish(handle) }

  /// As `server_version_num`: 150018 is 15.18.
  package var version: Int { Int(library.server_version(handle)) }
  package var usesTLS: Bool { library.uses_tls(handle) != 0 }
  /// The server's process as the connection was told. A pooler tells another one than the server itself does.
  package var announcedProcess: Int { Int(library.backend_pid(handle)) }

  /// How many warnings came since the last call.
  func takeWarnings() -> Int {
    defer { warnings.count = 0 }
    return warnings.count
  }

  private func check() throws(PostgresError) {
    guard version >= Self.oldestVersion else { throw .unsuitable(.version(version)) }
    let encoding = library.parameter(handle, "server_encoding").map { String(cString: $0) }
    guard encoding == "UTF8" else { throw .unsuitable(.encoding(Self.line(encoding ?? ""))) }
  }

  /// It uses a statement, and not the parameter `options`, which poolers refuse.
  private func apply(_ settings: Settings) throws(PostgresError) {
    func milliseconds(_ duration: Duration?) -> String { "\((duration?.nanoseconds ?? 0) / 1_000_000)" }
    _ = try run([
      PostgresStatement(
        """
        SELECT set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false),
          set_config('idle_in_transaction_session_timeout', $3, false), set_config('idle_session_timeout', '0', false),
          set_config('client_connection_check_interval', '1000', false),
          set_config('default_transaction_isolation', 'read committed', false), set_config('TimeZone', 'UTC', false)
        """, .text(milliseconds(settings.statement)), .text(milliseconds(settings.lock)),
        .text(milliseconds(settings.idle)))
    ])
  }

  private static func connect(
    _ library: cpostgresql_library, _ target: PostgresTarget, name: String
  ) -> OpaquePointer? {
    var parameters = target.parameters
    parameters["password"] = target.password?.text
    parameters["application_name"] = name
    parameters["client_encoding"] = "UTF8"
    // Otherwise a variable of the environment could name a server elsewhere.
    if parameters["host"] == nil, parameters["hostaddr"] == nil { parameters["host"] = "/var/run/postgresql" }
    parameters["connect_timeout"] = "3"
    // A server that is gone is noticed in 5 s.
    parameters["keepalives_idle"] = "2"
    parameters["keepalives_interval"] = "1"
    parameters["keepalives_count"] = "3"
    parameters["tcp_user_timeout"] = "4000"
    // Kerberos would be tried first, and its resolver waited for.
    parameters["gssencmode"] = "disable"
    let texts = parameters.sorted { $0.key < $1.key }
    let names = texts.map { strdup($0.key) }
    let values = texts.map { strdup($0.value) }
    defer {
      for text in names + values { free(text) }
    }
    let keywords = names.map { UnsafePointer($0) } + [nil]
    return library.connect(keywords, values.map { UnsafePointer($0) } + [nil], 0)
  }

  /// As one line of the log: there may be a line about each host.
  static func line(_ text: String) -> String {
    let lines = text.split { $0.isNewline }.map { $0.trimmingPrefix { $0.isWhitespace } }
    let printable = lines.joined(separator: "; ").unicodeScalars.filter {
      $0.value >= 0x20 && !(0x7f...0x9f).contains($0.value)
    }
    return String(String.UnicodeScalarView(printable.prefix(600)))
  }
}
