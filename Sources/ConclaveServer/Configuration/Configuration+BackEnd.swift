import Contract
import Foundation

extension Configuration {
  /// POSTs of the service topics' events to the app's back end (protocol section 11).
  package struct Webhooks: Sendable {
    package var url = ""
    /// nil is a mistake.
    package var secret: Secret?
    /// Names of the wanted events; empty for all.
    package var events: [String] = []
  }

  /// Where the app's back end is asked which users a user may reach (protocol section 7).
  package struct Authorize: Sendable {
    package var url = ""
    /// nil for the secret of the webhooks.
    package var secret: Secret?
  }

  /// The servers that `ice.servers` tells clients (protocol section 6).
  package struct TURN: Sendable {
    package var urls: [String] = []
    /// Shared with coturn (`static-auth-secret`); nil if all URLs are of STUN.
    package var secret: Secret?
    /// How long a credential is valid.
    package var seconds = 86_400
  }

  package struct Role: Sendable {
    /// Its holders may not start calls or invite.
    package var neverStarts = false
  }

  package struct History: Sendable {
    package var days = 90
  }

  /// Events that the service topics carry.
  static let backEndEvents = EventName.allCases.filter { $0.declaration.recipients.contains(.services) }.map(\.rawValue)

  func checkBackEnd(_ faults: inout Faults) {
    if let webhooks {
      faults.take { () throws(ConfigurationError) in try Self.check(url: webhooks.url, "webhooks.url") }
      if webhooks.secret == nil { faults.add("webhooks.secretFile: is missing; set it, or webhooks.secret") }
      for name in webhooks.events where !Self.backEndEvents.contains(name) {
        faults.add("webhooks.events: \(name) is never sent; there are \(Self.backEndEvents.joined(separator: ", "))")
      }
    }
    if let authorize {
      faults.take { () throws(ConfigurationError) in try Self.check(url: authorize.url, "authorize.url") }
      if authorize.secret == nil, webhooks == nil {
        faults.add("authorize: set secretFile or secret, or webhooks, whose secret is then used")
      }
    }
    turn?.check(&faults)
    for prefix in destinations {
      faults.take { () throws(ConfigurationError) in try Self.check(prefix: prefix) }
    }
  }

  static func check(url: String, _ name: String) throws(ConfigurationError) {
    guard let parts = URLComponents(string: url), ["http", "https"].contains(parts.scheme), parts.host?.isEmpty == false
    else { throw ConfigurationError("\(name): take an http or https URL with a host, as https://app.example/conclave") }
    guard parts.user == nil, parts.password == nil else {
      throw ConfigurationError("\(name): leave user and password out; they are not sent")
    }
  }

  /// Accepts prefixes of an app's own destinations (protocol section 3), refuses the reserved ones.
  private static func check(prefix: String) throws(ConfigurationError) {
    let segments = prefix.split(separator: "/", omittingEmptySubsequences: false).dropFirst()
    guard prefix.hasPrefix("/"), segments.count > 1, let kind = segments.first,
      ["topic", "queue", "exchange"].contains(kind),
      !segments.dropLast().contains(""), !segments.contains("."), !segments.contains("..")
    else {
      throw ConfigurationError(
        "destinations: \(prefix) is no prefix of an app's destinations; begin it with /topic/, /queue/ or /exchange/")
    }
    let rest = segments.dropFirst().joined(separator: "/")
    for reserved in ["calls", "service"] where kind != "queue" && (rest == reserved || rest.hasPrefix(reserved + "/")) {
      throw ConfigurationError("destinations: \(prefix) is the server's own; take another name than \(reserved)")
    }
  }
}

extension Configuration.TURN {
  fileprivate func check(_ faults: inout Faults) {
    if !(1...16).contains(urls.count) { faults.add("turn.urls: name 1 to 16") }
    for url in urls {
      guard let scheme = url.split(separator: ":").first, ["turn", "turns", "stun", "stuns"].contains(scheme),
        url.utf8.count > scheme.utf8.count + 1, !url.contains("/")
      else {
        faults.add("turn.urls: \(url) is none of RFC 7064 or 7065; take turn:turn.example:3478?transport=udp")
        continue
      }
      if secret == nil, !scheme.hasPrefix("stun") {
        faults.add("turn: \(url) needs secretFile or secret: coturn's static-auth-secret")
      }
    }
  }
}
