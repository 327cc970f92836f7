/// The declarations of the members that connect the server with the app's back end and with TURN servers.
extension Configuration.Webhooks: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [.requiredText("url", \.url, "Where the events are POSTed.", url)]
      + ConfigurationMember.secret(\.secret, "the secret of 32 bytes or more that signs them") + [
        .list("events", \.events, "Names of the wanted events; all by default.", eventRules)
      ]
  }

  private static var eventRules: [JSONValue.Entry] {
    [.init("enum", .array(Configuration.backEndEvents.map { .string($0) }))]
  }

  static var schemaRules: [JSONValue.Entry] {
    [.init("oneOf", [["required": ["secretFile"]], ["required": ["secret"]]])]
  }
}

extension Configuration.Authorize: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [.requiredText("url", \.url, "Where the questions are POSTed.", url)]
      + ConfigurationMember.secret(
        \.secret, "the secret of 32 bytes or more that signs them; by default that of the webhooks")
  }

  static var schemaRules: [JSONValue.Entry] { [.init("not", ["required": ["secretFile", "secret"]])] }
}

extension Configuration.TURN: ConfigurationSection {
  static var members: [ConfigurationMember<Self>] {
    [
      .list(
        "urls", \.urls, "The servers, as turn:turn.example:3478?transport=udp.",
        [.init("pattern", "^(turns?|stuns?):[^/]+$")], count: 1...16
      ).required
    ] + ConfigurationMember.secret(\.secret, "the secret of 16 bytes or more that is shared with the TURN server") + [
      .integer("seconds", \.seconds, 60...604_800, "How long a credential is valid.")
    ]
  }

  static var schemaRules: [JSONValue.Entry] { [.init("not", ["required": ["secretFile", "secret"]])] }
}
