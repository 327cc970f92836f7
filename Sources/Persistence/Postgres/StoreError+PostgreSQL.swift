import CallMessages
import PostgreSQL

/// PostgreSQL's errors, in words for the operator.
extension StoreError {
  init(_ error: any Error, place: String) {
    switch error {
    case let error as StoreError: self = error
    case let error as PostgresError: self.init(postgres: error, place)
    default: self = .unreadable(place)
    }
  }

  private init(postgres error: PostgresError, _ place: String) {
    switch error {
    case .noLibrary:
      self.init(.cannotOpen, "\(place): PostgreSQL's library is missing (libpq 14 or later); apt-get install libpq5")
    case .badURL:
      self.init(.cannotOpen, "store.url: take a URL such as postgresql://conclave@db.example/conclave")
    case .parameterNotAllowed("password"):
      self.init(
        .cannotOpen, "store.url: a password does not belong there; write it into the file of store.passwordFile")
    case .parameterNotAllowed(let name):
      self.init(.cannotOpen, "store.url: the parameter \(name) cannot be set; leave it out")
    case .unsuitable(.version(let number)):
      self.init(.cannotOpen, "\(place): PostgreSQL \(number / 10_000) is too old; take 14 or later")
    case .unsuitable(.encoding(let name)):
      self.init(
        .cannotOpen, "\(place): the database's encoding is \(name); make one with CREATE DATABASE … ENCODING 'UTF8'")
    case .notConnected(let reason): self.init(.unreachable, "\(place): \(reason); \(Self.remedy(for: reason))")
    case .lost(after: let silence?):
      self.init(
        .unreachable,
        "\(place): no answer for \(silence); look at the database's load and locks, at the network, and whether a synchronous "
          + "standby is gone")
    case .lost(after: nil): self.init(.unreachable, "\(place): the connection was lost; look whether the database runs")
    case .unconfirmed:
      self.init(
        .unreachable,
        "\(place): the database warned at a commit, which may not be on its standby; look at the server's log, at the standby and at "
          + "synchronous_commit")
    case .malformed: self = .unreadable(place)
    case .refused(let state): self.init(refused: state, place)
    }
  }

  private init(refused state: SQLState, _ place: String) {
    switch state {
    case "42501":
      self.init(
        .readOnly,
        "\(place): the role may not do that; make it the database's owner: ALTER DATABASE … OWNER TO …")
    case "25006":
      self.init(.readOnly, "\(place): this server is a standby, or read-only; name the primary in store.url")
    case "26000", "42P05", "08P01": self = .transactionPooler(place)
    case "42P01", "42703", "42883":
      self.init(.broken, "\(place): a table or function is missing; restore a backup, or take an empty database")
    case "55P03", "40001", "40P01":
      self.init(
        .busy,
        "\(place): another transaction holds a lock; look for it in pg_stat_activity, and whether a synchronous standby is gone"
      )
    case "57014": self.init(.busy, "\(place): a query took too long; look at the database's load and at autovacuum")
    case _ where state.category == "53":
      self.init(.full, "\(place): the server has no room (\(state)); look at its disk, memory and max_connections")
    case _ where state.category == "58" || state.category == "XX":
      self.init(.broken, "\(place): the server failed (\(state)); look at its log")
    // Never the message: it may contain what was to be written.
    default: self.init(.failed, "\(place): PostgreSQL error \(state); look at its log, and report it")
    }
  }

  /// libpq's and the server's sentences have no codes here; they may be in another language.
  static func remedy(for reason: String) -> String {
    let remedies = [
      ("password authentication failed", "check the role in store.url and store.passwordFile"),
      ("no password supplied", "write the role's password into a file and name it in store.passwordFile"),
      (
        "Peer authentication failed",
        "run as the system user that has the role's name, or let pg_hba.conf ask for a password"
      ),
      ("pg_hba.conf", "allow this machine and role in the server's pg_hba.conf"),
      ("certificate", "give the server a certificate for this name, or name its authority by sslrootcert in store.url"),
      ("does not support SSL", "let the server use TLS (ssl = on), or say sslmode=disable in store.url"),
      ("database \"", "make it: CREATE DATABASE conclave OWNER conclave ENCODING 'UTF8'"),
      ("role \"", "make it: CREATE ROLE conclave LOGIN PASSWORD '…'"),
      ("not translate host name", "check the host in store.url, and the resolver"),
      ("Connection refused", "start the server, and let it listen there (listen_addresses)"),
      ("No such file", "start the server, or check the folder of its socket in store.url"),
      ("timeout expired", "check the host in store.url, and the firewall"),
      ("read-only", "name the primary in store.url too, or wait for the end of the failover"),
      ("connection slots", "raise max_connections, or end other clients"),
      ("too many", "raise max_connections or the role's limit, or end other clients"),
      ("starting up", "wait a moment"), ("shutting down", "start it again"),
      ("startup parameter", "a pooler refuses it: name the server itself, or a pool in session mode"),
    ]
    return remedies.first { reason.contains($0.0) }?.1 ?? "check store.url, and whether the server runs"
  }

  static func transactionPooler(_ place: String) -> StoreError {
    StoreError(
      .cannotOpen,
      "\(place): a pooler in transaction mode stands in between; name the server itself, or a pool in session mode")
  }

  /// A later start has entered itself.
  static func fenced(_ place: String, _ own: FencingToken) -> StoreError {
    StoreError(
      .fenced,
      "\(place): a server that started later uses the database (this is start \(own.number)); end one of the two, or give "
        + "each its own database")
  }

  static func wentBack(_ place: String) -> StoreError {
    StoreError(
      .failed,
      "\(place): the database has lost transactions that it had confirmed, as when a standby that lags takes over. The state of "
        + "the calls is written again, and history of the last moments is lost; set synchronous_standby_names")
  }

  static func shared(_ place: String) -> StoreError {
    StoreError(.failed, "\(place): another process writes in this server's name; report it")
  }

  static func unreadable(_ place: String) -> StoreError {
    StoreError(
      .broken, "\(place): what is in the database cannot be read; restore a backup, or take an empty database")
  }
}

extension PostgresError {
  /// The same may work in a moment.
  var isTemporary: Bool {
    switch self {
    case .lost, .unconfirmed, .notConnected: true
    case .refused(let state): ["40001", "40P01", "55P03", "25006"].contains(state)
    case .noLibrary, .badURL, .parameterNotAllowed, .unsuitable, .malformed: false
    }
  }
}
