import Foundation
import JSON
import Signaling

/// The operator's settings, in a JSON file given by `--config`. Each has a default; an unknown name is an error. `docs/deploy.md` explains each.
package struct Configuration: Sendable {
  /// Folder of what survives a restart; made with mode 700 when it is missing.
  package var state = "/var/lib/conclave"
  package var listen = Listen()
  /// Certificate chain and key (PEM files). With them the HTTP port speaks TLS, and STOMP over TLS is opened.
  package var tls: TLS?
  package var media = Media()
  package var auth = Auth()
  package var limits = Limits()
  /// Prefixes under which clients may exchange messages of their own (protocol section 3).
  package var destinations: [String] = []
  /// Keyed by the names in the tokens' claim `roles` (protocol section 7).
  package var roles: [String: Role] = [:]
  /// Whether a link lets people without an account into its call. `serve --demo` sets it.
  package var guests = false
  package var webhooks: Webhooks?
  package var authorize: Authorize?
  package var turn: TURN?
  package var webPush: WebPush?
  package var telemetry: Telemetry?
  package var history = History()
  /// How long SIGTERM waits for the calls to end, in seconds.
  package var drain = 30
  /// The least of the log's lines.
  package var log = LogLevel.info
  package var logFormat = LogFormat.text
  /// Lets the page sign in with just a name, from loopback addresses alone. Set by `serve --demo`.
  package var demo = false

  package init() {}

  package struct Listen: Sendable {
    /// Local address of all TCP listeners; "::" takes IPv4 too.
    package var address = "::"
    /// nil closes the port without TLS.
    package var stomp: Int? = 61613
    package var stompTLS = 61614
    package var http = 8080
    /// A port of their own for health and metrics, which the HTTP port has no longer then.
    package var metrics: Int?
    /// Origins of web pages, besides the server's own, that may open a WebSocket; "*" lets all.
    package var origins: [String] = []
    /// Addresses and networks of reverse proxies, for which limits per address do not hold.
    package var proxies = ["127.0.0.0/8", "::1"]
  }

  package struct TLS: Sendable {
    package var certificate: String
    package var key: String
  }

  package struct Media: Sendable {
    /// Threads that forward media, each with a port of its own; 0 means one a core.
    package var workers = 0
    /// Participants of one call that a thread takes before the next one joins in, and tracks are relayed between them.
    package var callShare = 40
    /// UDP and TCP port of the first worker; 0 lets the system choose. The default is below the ports that Linux gives to outgoing connections (from 32768 on).
    package var port = 30000
    /// Whether participants may come over TCP too.
    package var tcp = true
    /// Addresses to announce instead of the machine's own, for a server behind NAT.
    package var announce: [String] = []
    /// The most microphones for which a participant is asked to offer slots. In a call with more of them, those that spoke last are forwarded.
    package var voices = 8
    /// Memory for retransmission of each thread, in MiB; beyond it the largest streams keep less.
    package var historyMiB = 256
    /// The most that is taken of a publisher.
    package var publishing = PublishingLimits()
  }

  package struct Auth: Sendable {
    /// File with the HS256 secret; default `secret` in the state folder, made on the first start.
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

  package enum LogLevel: String, Decodable, Sendable { case debug, info, notice, warning, error }
  package enum LogFormat: String, Decodable, Sendable { case text, json }
}

/// Why a configuration cannot be used, in words for the operator.
package struct ConfigurationError: Error, CustomStringConvertible {
  package var description: String
  package init(_ description: String) { self.description = description }
}

extension Configuration {
  /// - Throws: `ConfigurationError` that names the members which are wrong and what would be right.
  package init(json: [UInt8]) throws(ConfigurationError) {
    try self.init(unvalidated: json)
    try validate()
  }

  /// Reads a configuration file.
  package init(file: String) throws(ConfigurationError) {
    try self.init(json: Array(try Self.text(of: file).utf8))
  }

  /// The same, with values that may be out of range.
  package init(unvalidated file: String) throws(ConfigurationError) {
    try self.init(unvalidated: Array(try Self.text(of: file).utf8))
  }

  private init(unvalidated json: [UInt8]) throws(ConfigurationError) {
    do {
      self = try JSONCoding.decode(Configuration.self, from: json)
    } catch {
      throw ConfigurationError("\(error.field ?? "the file"): \(error.reason)")
    }
  }

  static func text(of file: String) throws(ConfigurationError) -> String {
    guard let text = try? String(contentsOfFile: file, encoding: .utf8) else {
      throw ConfigurationError("\(file): cannot be read; check its name and mode")
    }
    return text
  }

  /// - Throws: `ConfigurationError` with all that is wrong when values do not go together or are out of range.
  package func validate() throws(ConfigurationError) { try faults.throwAny() }

  /// The values that do not go together or are out of range.
  var faults: Faults {
    var faults = Faults()
    let ports: [(String, Int?)] = [
      ("listen.stomp", listen.stomp), ("listen.stompTLS", tls == nil ? nil : listen.stompTLS),
      ("listen.http", listen.http), ("listen.metrics", listen.metrics), ("media.port", media.port),
    ]
    for case (let name, let port?) in ports + [("listen.stompTLS", tls == nil ? listen.stompTLS : nil)]
    where !(0...65_535).contains(port) {
      faults.add("\(name): \(port) is not a port; take 1 to 65535, or 0 for any free one")
    }
    var names: [Int: String] = [:]
    for case (let name, let port?) in ports where port != 0 {
      if let other = names.updateValue(name, forKey: port), media.tcp || name != "media.port" {
        faults.add("\(name): \(port) is the port of \(other) already; take another")
      }
    }
    let socket = StateFolder.adminSocket(in: state)
    if socket.utf8.count > 107 { faults.add(StateFolder.tooLong(socket)) }
    if AddressList(listen.proxies) == nil {
      faults.add("listen.proxies: one is no address or network; take such as 10.0.0.7 or 10.0.0.0/8")
    }
    listen.checkOrigins(&faults)
    limits.check(&faults)
    checkBackEnd(&faults)
    faults.take { () throws(ConfigurationError) in try validateWebPush() }
    faults.take { () throws(ConfigurationError) in try validateTelemetry() }
    if !(0...256).contains(media.workers) {
      faults.add("media.workers: \(media.workers) is out of range; take 0 (one a core) to 256")
    }
    if media.callShare < 1 {
      faults.add("media.callShare: \(media.callShare) is too small; take 1 or more")
    }
    if !(1...32).contains(media.voices) {
      faults.add("media.voices: \(media.voices) is out of range; take 1 to 32")
    }
    if !(1...65_536).contains(media.historyMiB) {
      faults.add("media.historyMiB: \(media.historyMiB) is out of range; take 1 to 65536")
    }
    media.publishing.check(&faults)
    auth.check(&faults)
    return faults
  }
}

extension Configuration.Listen {
  var originPolicy: OriginPolicy { origins.contains("*") ? .any : .sameHost(also: origins) }

  /// An origin that no browser sends would never match.
  fileprivate func checkOrigins(_ faults: inout Faults) {
    for origin in origins where origin != "*" && WebOrigin(origin) == nil {
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

extension Configuration: Decodable {
  private enum CodingKeys: String, CodingKey, CaseIterable {
    case state, listen, tls, media, auth, limits, destinations, roles, guests, webhooks, authorize, turn, webPush,
      telemetry, history, drain, log, logFormat
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
    state = try container.decodeIfPresent(String.self, forKey: .state) ?? state
    listen = try container.decodeIfPresent(Listen.self, forKey: .listen) ?? listen
    tls = try container.decodeIfPresent(TLS.self, forKey: .tls)
    media = try container.decodeIfPresent(Media.self, forKey: .media) ?? media
    auth = try container.decodeIfPresent(Auth.self, forKey: .auth) ?? auth
    limits = try container.decodeIfPresent(Limits.self, forKey: .limits) ?? limits
    destinations = try container.decodeIfPresent([String].self, forKey: .destinations) ?? destinations
    roles = try container.decodeIfPresent([String: Role].self, forKey: .roles) ?? roles
    guests = try container.decodeIfPresent(Bool.self, forKey: .guests) ?? guests
    webhooks = try container.decodeIfPresent(Webhooks.self, forKey: .webhooks)
    authorize = try container.decodeIfPresent(Authorize.self, forKey: .authorize)
    turn = try container.decodeIfPresent(TURN.self, forKey: .turn)
    webPush = try container.decodeIfPresent(WebPush.self, forKey: .webPush)
    telemetry = try container.decodeIfPresent(Telemetry.self, forKey: .telemetry)
    history = try container.decodeIfPresent(History.self, forKey: .history) ?? history
    drain = try container.decodeIfPresent(Int.self, forKey: .drain) ?? drain
    log = try container.decodeIfPresent(LogLevel.self, forKey: .log) ?? log
    logFormat = try container.decodeIfPresent(LogFormat.self, forKey: .logFormat) ?? logFormat
  }
}

extension Configuration.Listen: Decodable {
  private enum CodingKeys: String, CodingKey, CaseIterable {
    case address, stomp, stompTLS, http, metrics, origins, proxies
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
    address = try container.decodeIfPresent(String.self, forKey: .address) ?? address
    if container.contains(.stomp) { stomp = try container.decodeIfPresent(Int.self, forKey: .stomp) }
    stompTLS = try container.decodeIfPresent(Int.self, forKey: .stompTLS) ?? stompTLS
    http = try container.decodeIfPresent(Int.self, forKey: .http) ?? http
    metrics = try container.decodeIfPresent(Int.self, forKey: .metrics)
    origins = try container.decodeIfPresent([String].self, forKey: .origins) ?? origins
    proxies = try container.decodeIfPresent([String].self, forKey: .proxies) ?? proxies
  }
}

extension Configuration.TLS: Decodable {
  private enum CodingKeys: String, CodingKey, CaseIterable { case certificate, key }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
    certificate = try container.decode(String.self, forKey: .certificate)
    key = try container.decode(String.self, forKey: .key)
  }
}

extension Configuration.Media: Decodable {
  private enum CodingKeys: String, CodingKey, CaseIterable {
    case workers, callShare, port, tcp, announce, voices, historyMiB, publishing
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
    workers = try container.decodeIfPresent(Int.self, forKey: .workers) ?? workers
    callShare = try container.decodeIfPresent(Int.self, forKey: .callShare) ?? callShare
    port = try container.decodeIfPresent(Int.self, forKey: .port) ?? port
    tcp = try container.decodeIfPresent(Bool.self, forKey: .tcp) ?? tcp
    voices = try container.decodeIfPresent(Int.self, forKey: .voices) ?? voices
    historyMiB = try container.decodeIfPresent(Int.self, forKey: .historyMiB) ?? historyMiB
    announce = try container.decodeIfPresent([String].self, forKey: .announce) ?? announce
    publishing = try container.decodeIfPresent(PublishingLimits.self, forKey: .publishing) ?? publishing
  }
}

extension Configuration.Auth: Decodable {
  private enum CodingKeys: String, CodingKey, CaseIterable {
    case secretFile, jwksFile, jwksURL, issuer, audience, userClaim
  }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
    secretFile = try container.decodeIfPresent(String.self, forKey: .secretFile)
    jwksFile = try container.decodeIfPresent(String.self, forKey: .jwksFile)
    jwksURL = try container.decodeIfPresent(String.self, forKey: .jwksURL)
    issuer = try container.decodeIfPresent(String.self, forKey: .issuer)
    audience = try container.decodeIfPresent(String.self, forKey: .audience)
    userClaim = try container.decodeIfPresent(String.self, forKey: .userClaim)
  }
}

extension Decoder {
  /// A container that refuses members `Key` does not list, so that a mistyped option is told and not ignored.
  func strictContainer<Key: CodingKey & CaseIterable>(
    keyedBy type: Key.Type
  ) throws -> KeyedDecodingContainer<Key> {
    let known = Set(type.allCases.map(\.stringValue))
    for key in try container(keyedBy: AnyKey.self).allKeys where !known.contains(key.stringValue) {
      throw DecodingError.dataCorrupted(
        .init(
          codingPath: codingPath + [key],
          debugDescription: "is not an option; there are \(known.sorted().joined(separator: ", "))"))
    }
    return try container(keyedBy: type)
  }
}

private struct AnyKey: CodingKey {
  var stringValue: String
  var intValue: Int? { nil }
  init(stringValue: String) { self.stringValue = stringValue }
  init?(intValue: Int) { nil }
}
