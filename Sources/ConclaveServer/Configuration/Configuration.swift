package import Calls
import Forwarding
import Foundation
import Glibc
import JSON
import Listening
import STOMPFront

/// The operator's settings, in a JSON file given by `--config`. Each has a default; an unknown name is an error. `docs/deploy.md` explains each.
package struct Configuration: Sendable {
  /// The folder of the state that survives a restart; created with mode 700 if it is missing.
  package var state = "/var/lib/conclave"
  package var listen = Listen()
  /// Certificate chain and key (PEM files). With them the HTTP port speaks TLS, and STOMP over TLS is opened.
  package var tls: TLS?
  package var media = Media()
  package var auth = Auth()
  package var limits = Limits()
  /// Prefixes under which clients may exchange their own messages (protocol section 3).
  package var destinations: [String] = []
  /// Keyed by the names in the tokens' claim `roles` (protocol section 7).
  package var roles: [String: Role] = [:]
  /// Whether a link lets people without an account into its call. `serve --demo` sets it.
  package var guests = false
  /// Links that are made without a call and last for days (protocol section 4, "Lasting links").
  package var links = LastingLinkBounds()
  package var webhooks: Webhooks?
  package var authorize: Authorize?
  package var turn: TURN?
  package var webPush: WebPush?
  package var telemetry: Telemetry?
  package var store: Store?
  package var history = History()
  package var recordings: Recordings?
  /// Rooms for clients of Janus; nil: there are none.
  package var janus: Janus?
  package var page = Page()
  /// How long SIGTERM waits for the calls to end, in seconds.
  package var drain = 30
  /// The lowest level of log lines that are written.
  package var log = LogLevel.info
  package var logFormat = LogFormat.text
  /// Lets the page sign in with only a name, and only from loopback addresses. Set by `serve --demo`.
  package var demo = false
  /// The file from which it was read.
  var source: ConfigurationText?

  package init() {}

  package struct Listen: Sendable {
    /// Local address of the TCP listeners that have no separate one; "::" also accepts IPv4.
    package var address = "::"
    /// nil closes the port without TLS.
    package var stomp = STOMPConfiguration().port.map { ListenAddress(port: $0) }
    package var stompTLS = ListenAddress(port: STOMPConfiguration().tlsPort)
    package var http = ListenAddress(port: ListeningConfiguration().httpPort)
    /// A separate port for health and metrics, which the HTTP port then no longer serves.
    package var metrics: ListenAddress?
    /// Origins of web pages, in addition to the server's own, that may open a WebSocket; "*" allows all.
    package var origins: [String] = []
    /// Addresses and networks of reverse proxies, to which limits per address do not apply.
    package var proxies = ["127.0.0.0/8", "::1"]
  }

  package struct TLS: Sendable {
    package var certificate = ""
    package var key = ""
  }

  package struct Media: Sendable {
    /// Threads that forward media, each with its own port; 0 means one per core.
    package var workers = 0
    /// The number of participants of one call on a thread before the next thread joins in and tracks are relayed
    /// between them.
    package var callShare = 40
    /// UDP and TCP port of the first worker; 0 lets the system choose. The default is below the ports that Linux uses for outgoing connections (from 32768 on).
    package var port = 30000
    /// Whether participants may connect over TCP, too.
    package var tcp = true
    /// Addresses to announce instead of the machine's own, for a server behind NAT.
    package var announce: [String] = []
    /// The most microphones for which a participant is asked to offer slots. In a call with more of them, those that spoke last are forwarded.
    package var voices = SFUConfiguration().voices
    /// Memory for retransmission per thread, in MiB; above it the largest streams keep less.
    package var historyMiB = SFUConfiguration().historyBudget >> 20
    /// The most that is accepted from a publisher.
    package var publishing = PublishingLimits()
  }

  package struct Auth: Sendable {
    /// File with the HS256 secret; by default `secret` in the state folder, created on the first start.
    package var secretFile: String?
    /// A key set (RFC 7517) as a file or a URL, instead of a secret; needs `issuer` and `audience`.
    package var jwksFile: String?
    package var jwksURL: String?
    package var issuer: String?
    package var audience: String?
    /// With a key set: the claim with the user's id; `sub` by default.
    package var userClaim: String?

    var hasKeySet: Bool { jwksFile != nil || jwksURL != nil }
  }

  /// The settings of the web client that hold until the person chooses otherwise.
  package struct Page: Sendable {
    /// Sign language and video first: the camera stays on, and frames come before pixels.
    package var videoFirst = false
    /// Guests who come by a new link wait until a member admits them.
    package var guestsWait = false

    package init() {}
  }

  package enum LogLevel: String, CaseIterable, Sendable { case debug, info, notice, warning, error }
  package enum LogFormat: String, CaseIterable, Sendable { case text, json }
}

/// Why a configuration cannot be used, in words for the operator.
package struct ConfigurationError: Error, CustomStringConvertible {
  package var description: String
  package init(_ description: String) { self.description = description }
}

extension Configuration {
  /// - Throws: `ConfigurationError` that names the wrong members and says what would be right.
  package init(json: [UInt8]) throws(ConfigurationError) {
    try self.init(unvalidated: json)
    try validate()
  }

  /// The file of an installed server.
  package static let installed = "/etc/conclave/config.json"

  /// `installed`, if it exists. A file that this user may not access counts as existing: its reader reports that.
  package static func installedFile(_ path: String = installed) -> String? {
    access(path, F_OK) == 0 || errno == EACCES ? path : nil
  }

  /// Reads a configuration file. Values may be out of range, which `validate` reports.
  package init(unvalidated file: String) throws(ConfigurationError) {
    let text = ConfigurationText(Array(try Self.text(of: file).utf8), file: file)
    do {
      self = try JSONCoding.decode(Configuration.self, from: text.bytes)
    } catch {
      throw text.error(error)
    }
    source = text
  }

  /// The same error with the position in the file of each member that it names.
  package func located(_ error: ConfigurationError) -> ConfigurationError { source?.located(error) ?? error }

  private init(unvalidated json: [UInt8]) throws(ConfigurationError) {
    do {
      self = try JSONCoding.decode(Configuration.self, from: json)
    } catch {
      throw ConfigurationText(json).error(error)
    }
  }

  static func text(of file: String) throws(ConfigurationError) -> String {
    guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
      let remedy =
        file == installed ? "be root or the server's user, or name another by --config" : "check its name and mode"
      throw ConfigurationError("\(file): cannot be read; \(remedy)")
    }
    return text
  }

  /// - Throws: `ConfigurationError` with all faults, if values contradict each other or are out of range.
  package func validate() throws(ConfigurationError) {
    try located { () throws(ConfigurationError) in try faults.throwAny() }
  }

  /// Errors of `body` get the position in the file.
  func located(_ body: () throws(ConfigurationError) -> Void) throws(ConfigurationError) {
    do throws(ConfigurationError) { try body() } catch { throw located(error) }
  }

  /// The values that contradict each other or are out of range.
  var faults: Faults {
    var faults = Faults()
    checkMembers("", &faults)
    checkPorts(&faults)
    let socket = StateFolder.adminSocket(in: state)
    if socket.utf8.count > 107 { faults.add(StateFolder.tooLong(socket)) }
    for proxy in listen.proxies where AddressList([proxy]) == nil {
      faults.add("listen.proxies: \"\(proxy)\" is no address or network; take such as 10.0.0.7 or 10.0.0.0/8")
    }
    listen.checkOrigins(&faults)
    checkBackEnd(&faults)
    faults.take { () throws(ConfigurationError) in try validateWebPush() }
    faults.take { () throws(ConfigurationError) in try validateTelemetry() }
    checkStore(&faults)
    auth.check(&faults)
    return faults
  }
}

extension Configuration {
  private func checkPorts(_ faults: inout Faults) {
    let opened: [(String, ListenAddress?)] = [
      ("listen.stomp", listen.stomp), ("listen.stompTLS", tls == nil ? nil : listen.stompTLS),
      ("listen.http", listen.http), ("listen.metrics", listen.metrics),
      ("media.port", ListenAddress(port: media.port, address: "::")),
    ]
    for case (let name, let listener?) in opened + [("listen.stompTLS", tls == nil ? listen.stompTLS : nil)]
    where !ListenAddress.isPort.contains(listener.port) && name != "media.port" {
      faults.add("\(name): \(listener.port) is not a port; take 1 to 65535, or 0 for any free one")
    }
    for (place, (name, listener)) in opened.enumerated() where media.tcp || name != "media.port" {
      let other = opened[..<place].last { other in
        guard let other = other.1, let listener else { return false }
        return listener.overlaps(other, usual: listen.address)
      }
      guard let other, let port = listener?.port else { continue }
      faults.add("\(name): \(port) is the port of \(other.0) already; take another")
    }
  }
}

extension Configuration.Listen {
  var originPolicy: OriginPolicy { origins.contains("*") ? .any : .sameHost(also: origins) }

  /// An origin that no browser sends would never match.
  fileprivate func checkOrigins(_ faults: inout Faults) {
    for origin in origins where origin != "*" && !OriginPolicy.hostless.contains(origin) && WebOrigin(origin) == nil {
      let scheme = origin.contains("://") ? "" : "https://"
      let known = origin.split(separator: "/", omittingEmptySubsequences: false).prefix(scheme.isEmpty ? 3 : 1)
      let remedy =
        WebOrigin(scheme + known.joined(separator: "/")).map { "take \"\($0.text)\"" }
        ?? "take scheme://host[:port], such as \"https://app.example\"; each origin is named by itself"
      faults.add("listen.origins: \"\(origin)\" is not the origin of any page; \(remedy)")
    }
  }
}

extension Configuration.Auth {
  fileprivate func check(_ faults: inout Faults) {
    if [secretFile, jwksFile, jwksURL].count(where: { $0 != nil }) > 1 {
      faults.add("auth: set one of secretFile, jwksFile and jwksURL, not several")
    }
    faults.take { () throws(ConfigurationError) in
      if let jwksURL { try Configuration.check(url: jwksURL, "auth.jwksURL") }
    }
    if let userClaim, userClaim.isEmpty || !hasKeySet {
      faults.add(
        "auth.userClaim: name a claim of the issuer's tokens, with a key set only; with a secret the user is in sub")
    }
    if hasKeySet, issuer?.isEmpty != false || audience?.isEmpty != false {
      faults.add("auth: with a key set, set issuer and audience too, and tokens must carry them")
    }
  }
}
