import Calls

/// The declarations of the file's members. docs/deploy.md says more about each.
extension Configuration: ConfigurationSection, Decodable {
  package init(from decoder: any Decoder) throws { try self.init(reading: decoder) }

  static var members: [ConfigurationMember<Configuration>] {
    [
      .schemaAddress,
      .text("state", \.state, "Folder for the state that survives a restart, on a local disk."),
      .section("listen", \.listen, "The listeners: addresses, ports, origins and proxies."),
      .section("tls", \.tls, "With it the HTTP port speaks TLS, and the port for STOMP over TLS is opened."),
      .section("media", \.media, "Threads, ports and bounds of media."),
      .section("auth", \.auth, "How tokens are checked: by a secret, or by a key set."),
      .section("limits", \.limits, "Bounds of clients, users, addresses and calls.").live,
      .list(
        "destinations", \.destinations, "Prefixes under which clients may exchange messages of their own.",
        [.init("pattern", "^/(topic|queue|exchange)/")]),
      .map("roles", \.roles, "Rules by role, as named in the tokens' claim roles.").live,
      .flag("guests", \.guests, "Whether anyone who opens a call's link joins with just a name."),
      .section("links", \.links, "Links that are made without a call and last for days.").live,
      .section("webhooks", \.webhooks, "Where the service topics' events are POSTed."),
      .section("authorize", \.authorize, "Where the app's back end is asked which users a user may reach."),
      .section("turn", \.turn, "TURN and STUN servers that are announced to clients.").live,
      .section("webPush", \.webPush, "Enables Web Push."),
      .section("telemetry", \.telemetry, "Traces of calls."),
      .section(
        "store", \.store, "A PostgreSQL database for calls, keys and history, in place of a file in the state folder."),
      .section("history", \.history, "The history of calls."),
      .section("recordings", \.recordings, "Where recordings are stored, and for how long; without it there are none."),
      .section("janus", \.janus, "Rooms for clients that speak the API of Janus; without it there are none."),
      .section("page", \.page, "The settings of the web client that hold until the person chooses otherwise."),
      .integer("drain", \.drain, 0...3_600, "Seconds that SIGTERM waits for the calls to end; 0 ends at once.").live,
      .choice("log", \.log, "The least level of the log's lines.").live,
      .choice("logFormat", \.logFormat, "Lines of text, or a JSON object a line."),
    ]
  }
}

extension Configuration.Listen: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [
      .text("address", \.address, "Local address of the listeners that have none of their own; :: accepts IPv4 too."),
      .listener("stomp", \.stomp, "STOMP over TCP without TLS; null closes it."),
      .listener("stompTLS", \.stompTLS, "STOMP over TLS; opened only with tls."),
      .listener("http", \.http, "Web client, WebSocket, health and metrics; HTTPS with tls."),
      .listener(
        "metrics", \.metrics, "A port for metrics and health over plain HTTP, which the HTTP port then has not."),
      .list(
        "origins", \.origins, "Origins of other pages that may open a WebSocket and let guests in; * allows all.",
        [.init("pattern", #"^(\*|null|file://|[A-Za-z][A-Za-z0-9+.-]*://[A-Za-z0-9._~:\[\]-]+)$"#)]
      ).live,
      .list("proxies", \.proxies, "Addresses and networks of reverse proxies."),
    ]
  }
}

extension ConfigurationMember<Configuration.Listen> {
  fileprivate static func listener(_ name: String, _ path: Path<ListenAddress>, _ summary: String) -> Self {
    .value(name, path, summary, [.init("anyOf", .array(ListenAddress.schema))], json: \.json)
  }

  fileprivate static func listener(_ name: String, _ path: Path<ListenAddress?>, _ summary: String) -> Self {
    .value(name, path, summary, [.init("anyOf", .array(ListenAddress.schema + [["type": "null"]]))]) {
      $0?.json ?? .null
    }
  }
}

extension Configuration.Store: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [
      .requiredText(
        "url", \.url, "Where the database is: postgresql://role@host,host/database, without a password.",
        [.init("pattern", "^postgres(ql)?://")]),
      .text("passwordFile", \.passwordFile, "The file with the role's password."),
    ]
  }
}

extension Configuration.TLS: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [
      .requiredText("certificate", \.certificate, "PEM file with the certificate's chain.").live,
      .requiredText("key", \.key, "PEM file with the private key.").live,
    ]
  }
}

extension Configuration.Media: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [
      .integer("workers", \.workers, 0...256, "Threads that forward media, each with a port; 0 is one per core."),
      .integer(
        "callShare", \.callShare, 1...1_000_000,
        "Participants of one call that a worker takes before the next worker joins in."),
      .integer("port", \.port, ListenAddress.isPort, "UDP and TCP port of the first worker; 0 lets the system choose."),
      .flag("tcp", \.tcp, "Whether participants may use TCP too."),
      .list("announce", \.announce, "Addresses to announce instead of the machine's own."),
      .integer("voices", \.voices, 1...32, "The most microphones for which a participant is asked to offer slots."),
      .integer("historyMiB", \.historyMiB, 1...65_536, "Memory of each worker for retransmission, in MiB."),
      .section("publishing", \.publishing, "The most that is taken of a publisher."),
    ]
  }
}

extension PublishingLimits: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    let most = 10_000_000
    return [
      .integer(
        "audioPackets", \.audioPackets, 50...most, "Packets a second of a microphone, or the sound of a screen."),
      .integer("audioKbps", \.audioKbps, 32...most, "Its kbit/s."),
      .integer(
        "videoPackets", \.videoPackets, 100...most, "Packets a second of a camera or screen, all layers together."),
      .integer("videoKbps", \.videoKbps, 200...most, "Its kbit/s."),
      .integer(
        "participantPackets", \.participantPackets, 100...most, "Packets a second of all tracks of a participant."),
      .integer("participantKbps", \.participantKbps, 200...most, "Their kbit/s."),
    ]
  }
}

extension Configuration.Auth: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [
      .text(
        "secretFile", \.secretFile, "The shared secret for HS256, HS384 and HS512; made at the first start by default."),
      .text("jwksFile", \.jwksFile, "A key set with public keys, in place of a secret."),
      .text("jwksURL", \.jwksURL, "The same from an address.", Self.url),
      .text("issuer", \.issuer, "The issuer that tokens must name; with a key set."),
      .text("audience", \.audience, "The audience that tokens must name; with a key set."),
      .text("userClaim", \.userClaim, "The claim with the user's id, with a key set; sub by default."),
    ]
  }

  /// At most one kind of key; a key set also needs the issuer and audience of its tokens.
  static var schemaRules: [JSONValue.Entry] {
    let others: JSONValue = ["issuer", "audience"]
    return [
      .init("dependencies", ["jwksFile": others, "jwksURL": others]),
      .init(
        "not",
        [
          "anyOf": [
            ["required": ["secretFile", "jwksFile"]], ["required": ["secretFile", "jwksURL"]],
            ["required": ["jwksFile", "jwksURL"]],
          ]
        ]),
    ]
  }
}

extension ConfigurationSection {
  /// The schema of an address for HTTP.
  static var url: [JSONValue.Entry] { [.init("pattern", "^https?://[^@]+$")] }
}

extension Configuration.Role: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [.flag("neverStarts", \.neverStarts, "Whether its holders may not start calls, invite or make links.")]
  }
}

extension Configuration.History: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [.integer("days", \.days, 1...3_650, "How long call history and abuse reports are kept.")]
  }
}

extension LastingLinkBounds: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [
      .integer("days", \.days, 0...365, "The most days that a link may last; 0 means that there are none."),
      .integer("ofUser", \.ofUser, 1...1_000, "How many links a user may have."),
    ]
  }
}

extension Configuration.Page: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [
      .flag("videoFirst", \.videoFirst, "Whether video comes first in calls, for sign language."),
      .flag("guestsWait", \.guestsWait, "Whether guests who come by a new link wait until a member admits them."),
    ]
  }
}

extension Configuration.Telemetry: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [.requiredText("otlp", \.otlp, "Address of an OpenTelemetry collector, for OTLP over HTTP.", url)]
  }
}

extension Configuration.WebPush: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [
      .requiredText(
        "contact", \.contact, "How push services can reach the operator.",
        [.init("pattern", "^(mailto:.*@|https://)"), .init("maxLength", 256)]),
      .list("networks", \.networks, "Addresses and networks of push services that are not on the public Internet."),
      .text("trust", \.trust, "PEM file of authorities to trust besides the system's."),
    ]
  }
}
