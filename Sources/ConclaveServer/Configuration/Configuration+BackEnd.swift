import Contract
import Foundation

extension Configuration {
  /// POSTs of the service topics' events to the app's back end (protocol section 11).
  package struct Webhooks: Sendable {
    package var url: String
    package var secret: Secret
    /// Names of the events that are wanted; empty for all.
    package var events: [String]
  }

  /// Where the app's back end is asked which users a user may reach (protocol section 7).
  package struct Authorize: Sendable {
    package var url: String
    /// nil for that of the webhooks.
    package var secret: Secret?
  }

  /// The servers that `ice.servers` tells clients (protocol section 6).
  package struct TURN: Sendable {
    package var urls: [String]
    /// Shared with coturn (`static-auth-secret`); nil when all urls are of STUN.
    package var secret: Secret?
    /// How long a credential is good.
    package var seconds: Int
  }

  package struct Role: Sendable {
    /// Its holders may not start calls or invite.
    package var neverStarts = false
  }

  package struct History: Sendable {
    package var days = 90
  }

  /// Events that the service topics carry.
  static let backEndEvents = EventName.allCases.map(\.rawValue).filter {
    $0.hasPrefix("call.") || $0.hasPrefix("push.") || $0 == EventName.report.rawValue
  }

  func checkBackEnd(_ faults: inout Faults) {
    if let webhooks {
      faults.take { () throws(ConfigurationError) in try Self.check(url: webhooks.url, "webhooks.url") }
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
    if !(1...3650).contains(history.days) {
      faults.add("history.days: \(history.days) is out of range; take 1 to 3650")
    }
    if !(0...3600).contains(drain) { faults.add("drain: \(drain) is out of range; take 0 to 3600 seconds") }
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
    if !(60...604_800).contains(seconds) {
      faults.add("turn.seconds: \(seconds) is out of range; take 60 to 604800")
    }
  }
}

extension Configuration.Webhooks: Decodable {
  private enum CodingKeys: String, CodingKey, CaseIterable { case url, secretFile, secret, events }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
    url = try container.decode(String.self, forKey: .url)
    guard let secret = try container.secret(file: .secretFile, text: .secret) else {
      throw DecodingError.keyNotFound(
        CodingKeys.secretFile, .init(codingPath: decoder.codingPath, debugDescription: "set it, or secret"))
    }
    self.secret = secret
    events = try container.decodeIfPresent([String].self, forKey: .events) ?? []
  }
}

extension Configuration.Authorize: Decodable {
  private enum CodingKeys: String, CodingKey, CaseIterable { case url, secretFile, secret }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
    url = try container.decode(String.self, forKey: .url)
    secret = try container.secret(file: .secretFile, text: .secret)
  }
}

extension Configuration.TURN: Decodable {
  private enum CodingKeys: String, CodingKey, CaseIterable { case urls, secretFile, secret, seconds }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
    urls = try container.decode([String].self, forKey: .urls)
    secret = try container.secret(file: .secretFile, text: .secret)
    seconds = try container.decodeIfPresent(Int.self, forKey: .seconds) ?? 86_400
  }
}

extension Configuration.Role: Decodable {
  private enum CodingKeys: String, CodingKey, CaseIterable { case neverStarts }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
    neverStarts = try container.decodeIfPresent(Bool.self, forKey: .neverStarts) ?? neverStarts
  }
}

extension Configuration.History: Decodable {
  private enum CodingKeys: String, CodingKey, CaseIterable { case days }

  package init(from decoder: any Decoder) throws {
    let container = try decoder.strictContainer(keyedBy: CodingKeys.self)
    days = try container.decodeIfPresent(Int.self, forKey: .days) ?? days
  }
}

extension KeyedDecodingContainer {
  /// One of two members, not both; nil for neither.
  fileprivate func secret(file: Key, text: Key) throws -> Secret? {
    switch (try decodeIfPresent(String.self, forKey: file), try decodeIfPresent(String.self, forKey: text)) {
    case (nil, nil): return nil
    case (let file?, nil): return .file(file)
    case (nil, let text?): return .text(text)
    case (_?, _?):
      throw DecodingError.dataCorruptedError(
        forKey: text, in: self, debugDescription: "and \(file.stringValue) are both set; take one")
    }
  }
}
