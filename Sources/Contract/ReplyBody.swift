/// The name of a kind of replies, as of its example in `Tests/ContractTests/Golden/replies.json`. It is not sent: a reply is that of its request.
package enum ReplyName: String, Sendable, CaseIterable {
  case joined, rejoined, started, results, registered, devices, state, calls, link, media, keys, keyList, confirmations,
    presence, history, totals, nothing

  package var body: any (Codable & Sendable).Type {
    switch self {
    case .joined: Joined.self
    case .rejoined: Rejoined.self
    case .started: StartedCall.self
    case .results: InviteResults.self
    case .registered: Registered.self
    case .devices: Devices.self
    case .state: CallState.self
    case .calls: CallList.self
    case .link: CallLink.self
    case .media: MediaAnswer.self
    case .keys: KeysDelivered.self
    case .keyList: KeyList.self
    case .confirmations: ConfirmationTags.self
    case .presence: PresenceList.self
    case .history: HistoryList.self
    case .totals: Totals.self
    case .nothing: NoBody.self
    }
  }
}

/// The body of a reply with `status: ok`. That of a refused request is `ErrorReply`.
package enum ReplyBody: Encodable, Sendable {
  case joined(Joined)
  case rejoined(Rejoined)
  case started(StartedCall)
  case results(InviteResults)
  case registered(Registered)
  case devices(Devices)
  case state(CallState)
  case calls(CallList)
  case link(CallLink)
  case media(MediaAnswer)
  case keys(KeysDelivered)
  case keyList(KeyList)
  case confirmations(ConfirmationTags)
  case presence(PresenceList)
  case history(HistoryList)
  case totals(Totals)
  case nothing

  package var content: any Codable & Sendable {
    switch self {
    case .joined(let body): body
    case .rejoined(let body): body
    case .started(let body): body
    case .results(let body): body
    case .registered(let body): body
    case .devices(let body): body
    case .state(let body): body
    case .calls(let body): body
    case .link(let body): body
    case .media(let body): body
    case .keys(let body): body
    case .keyList(let body): body
    case .confirmations(let body): body
    case .presence(let body): body
    case .history(let body): body
    case .totals(let body): body
    case .nothing: NoBody()
    }
  }

  package func encode(to encoder: any Encoder) throws { try content.encode(to: encoder) }
}
