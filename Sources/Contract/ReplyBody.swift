/// The name of a kind of replies, as of its example in `Tests/ContractTests/Golden/replies.json`. A client is not sent it: its reply is
/// that of its request.
package enum ReplyName: String, Codable, Sendable, CaseIterable {
  case joined, rejoined, started, results, registered, devices, state, calls, link, media, keys, keyList, confirmations,
    presence, history, totals, knocking, lastingLink, lastingLinks, openedLink, startedRecording, recordings, recording,
    consented, nothing

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
    case .knocking: Knocking.self
    case .lastingLink: LastingLink.self
    case .lastingLinks: LastingLinkList.self
    case .openedLink: OpenedLink.self
    case .startedRecording: StartedRecording.self
    case .recordings: RecordingList.self
    case .recording: RecordingManifest.self
    case .consented: Consented.self
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
  case knocking(Knocking)
  case lastingLink(LastingLink)
  case lastingLinks(LastingLinkList)
  case openedLink(OpenedLink)
  case startedRecording(StartedRecording)
  case recordings(RecordingList)
  case recording(RecordingManifest)
  case consented(Consented)
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
    case .knocking(let body): body
    case .lastingLink(let body): body
    case .lastingLinks(let body): body
    case .openedLink(let body): body
    case .startedRecording(let body): body
    case .recordings(let body): body
    case .recording(let body): body
    case .consented(let body): body
    case .nothing: NoBody()
    }
  }

  package func encode(to encoder: any Encoder) throws { try content.encode(to: encoder) }

  package var name: ReplyName {
    switch self {
    case .joined: .joined
    case .rejoined: .rejoined
    case .started: .started
    case .results: .results
    case .registered: .registered
    case .devices: .devices
    case .state: .state
    case .calls: .calls
    case .link: .link
    case .media: .media
    case .keys: .keys
    case .keyList: .keyList
    case .confirmations: .confirmations
    case .presence: .presence
    case .history: .history
    case .totals: .totals
    case .knocking: .knocking
    case .lastingLink: .lastingLink
    case .lastingLinks: .lastingLinks
    case .openedLink: .openedLink
    case .startedRecording: .startedRecording
    case .recordings: .recordings
    case .recording: .recording
    case .consented: .consented
    case .nothing: .nothing
    }
  }

  /// Reads the body of a reply of this name.
  package init(_ name: ReplyName, from decoder: any Decoder) throws {
    switch name {
    case .joined: self = .joined(try .init(from: decoder))
    case .rejoined: self = .rejoined(try .init(from: decoder))
    case .started: self = .started(try .init(from: decoder))
    case .results: self = .results(try .init(from: decoder))
    case .registered: self = .registered(try .init(from: decoder))
    case .devices: self = .devices(try .init(from: decoder))
    case .state: self = .state(try .init(from: decoder))
    case .calls: self = .calls(try .init(from: decoder))
    case .link: self = .link(try .init(from: decoder))
    case .media: self = .media(try .init(from: decoder))
    case .keys: self = .keys(try .init(from: decoder))
    case .keyList: self = .keyList(try .init(from: decoder))
    case .confirmations: self = .confirmations(try .init(from: decoder))
    case .presence: self = .presence(try .init(from: decoder))
    case .history: self = .history(try .init(from: decoder))
    case .totals: self = .totals(try .init(from: decoder))
    case .knocking: self = .knocking(try .init(from: decoder))
    case .lastingLink: self = .lastingLink(try .init(from: decoder))
    case .lastingLinks: self = .lastingLinks(try .init(from: decoder))
    case .openedLink: self = .openedLink(try .init(from: decoder))
    case .startedRecording: self = .startedRecording(try .init(from: decoder))
    case .recordings: self = .recordings(try .init(from: decoder))
    case .recording: self = .recording(try .init(from: decoder))
    case .consented: self = .consented(try .init(from: decoder))
    case .nothing: self = .nothing
    }
  }
}
