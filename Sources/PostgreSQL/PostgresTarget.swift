import CPostgreSQL
import Glibc

/// Where a database is, and who asks: a URL as libpq reads it (`postgresql://role@host,host/database?parameter=value`), and the role's password.
package struct PostgresTarget: Sendable {
  /// Without a password.
  let parameters: [String: String]
  let password: PostgresPassword?

  /// The parameters that a URL may have. A password is not among them, because URLs stand in configurations and lists of processes.
  private static let allowed: Set<String> = [
    "host", "hostaddr", "port", "dbname", "user", "target_session_attrs", "channel_binding", "sslmode", "sslrootcert",
    "sslcert", "sslkey", "sslcrl", "ssl_min_protocol_version",
  ]
  /// Debian's file of the authorities that a machine trusts.
  private static let authorities = "/etc/ssl/certs/ca-certificates.crt"

  /// A server elsewhere must prove with a certificate who it is, unless the URL has another `sslmode`.
  /// - Throws: `PostgresError.badURL`, `.parameterNotAllowed` or `.noLibrary`.
  package init(url: String, password: PostgresPassword?) throws(PostgresError) {
    guard url.hasPrefix("postgresql://") || url.hasPrefix("postgres://"), !url.utf8.contains(0) else { throw .badURL }
    var parameters = try Self.parse(url)
    for name in parameters.keys.sorted() where !Self.allowed.contains(name) { throw .parameterNotAllowed(name) }
    self.password = password
    if !Self.isLocal(parameters), parameters["sslmode"] == nil { parameters["sslmode"] = "verify-full" }
    if parameters["sslmode"]?.hasPrefix("verify-") == true, parameters["sslrootcert"] == nil,
      access(Self.authorities, R_OK) == 0
    {
      parameters["sslrootcert"] = Self.authorities
    }
    // If there are several hosts, only the primary takes writes.
    if parameters["target_session_attrs"] == nil { parameters["target_session_attrs"] = "read-write" }
    self.parameters = parameters
  }

  /// For the log: hosts, ports and database.
  package var place: String {
    let hosts = parts(of: "host", or: "hostaddr")
    let ports = parts(of: "port", or: "port")
    let places = hosts.enumerated().map { index, host in
      let port = ports.count == 1 ? ports[0] : index < ports.count ? ports[index] : ""
      let name = host.contains(":") ? "[\(host)]" : host
      return port.isEmpty || port == "5432" ? name : "\(name):\(port)"
    }
    return "postgresql://\(places.joined(separator: ","))/\(parameters["dbname"] ?? "")"
  }

  /// Whether all hosts are this machine.
  package var isLocal: Bool { Self.isLocal(parameters) }

  /// Whether a server that is not the one meant would be noticed.
  package var provesServer: Bool { isLocal || parameters["sslmode"] == "verify-full" }

  private func parts(of name: String, or other: String) -> [Substring] {
    (parameters[name] ?? parameters[other] ?? "").split(separator: ",", omittingEmptySubsequences: false)
  }

  private static func isLocal(_ parameters: [String: String]) -> Bool {
    let hosts = [parameters["host"], parameters["hostaddr"]].compactMap { $0 }.flatMap { $0.split(separator: ",") }
    return hosts.allSatisfy { host in
      host.hasPrefix("/") || host.hasPrefix("@") || host == "localhost" || host == "::1" || host.hasPrefix("127.")
    }
  }

  private static func parse(_ url: String) throws(PostgresError) -> [String: String] {
    let library = try PostgresLibrary.functions()
    // Its reason may repeat a part of the URL, so it is not shown.
    var reason: UnsafeMutablePointer<CChar>?
    let options = library.parse_options(url, &reason)
    library.free_memory(reason)
    guard let options else { throw .badURL }
    defer { library.free_options(options) }
    var parameters: [String: String] = [:]
    var option = options
    while let keyword = option.pointee.keyword {
      if let value = option.pointee.val { parameters[String(cString: keyword)] = String(cString: value) }
      option += 1
    }
    return parameters
  }
}

extension PostgresTarget: CustomStringConvertible, CustomReflectable {
  package var description: String { place }
  package var customMirror: Mirror { Mirror(self, children: []) }
}
