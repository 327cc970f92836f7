import CallMessages
import Contract
import MediaModel

// The times of calls come from a clock that never jumps, so they lag behind the machine's clock by as much as that was set while the server ran. Clients,
// webhooks, the history and the operator get times of the machine's clock. Times that somebody has signed stay unchanged.

extension CallState {
  func later(by lag: Duration) -> CallState {
    var later = self
    later.startedAt = startedAt + lag
    later.answeredAt = answeredAt.map { $0 + lag }
    if let recording { later.recording?.since = recording.since + lag }
    return later
  }
}

extension EventMessage {
  func later(by lag: Duration) -> EventMessage {
    guard lag != .zero else { return self }
    var later = self
    later.at = at + lag
    switch body {
    case .state(let state): later.body = .state(state.later(by: lag))
    case .ring(var ring):
      ring.expiresAt = ring.expiresAt + lag
      later.body = .ring(ring)
    case .pushRing(var ring):
      ring.expiresAt = ring.expiresAt + lag
      later.body = .pushRing(ring)
    case .knock(var knock):
      knock.expiresAt = knock.expiresAt + lag
      later.body = .knock(knock)
    case .recordingStarted(var started):
      started.since = started.since + lag
      later.body = .recordingStarted(started)
    default: break
    }
    return later
  }
}

extension ReplyBody {
  /// The same, with the server's own times later by `lag`.
  func later(by lag: Duration) -> ReplyBody {
    switch self {
    case .joined(var joined):
      joined.call = joined.call.later(by: lag)
      return .joined(joined)
    case .started(var started):
      started.call = started.call.later(by: lag)
      return .started(started)
    case .state(let state): return .state(state.later(by: lag))
    case .calls(let list): return .calls(CallList(calls: list.calls.map { $0.later(by: lag) }))
    case .link(let link): return .link(CallLink(link: link.link, expiresAt: link.expiresAt + lag))
    case .knocking(let knocking): return .knocking(Knocking(expiresAt: knocking.expiresAt + lag))
    case .lastingLink(var link):
      link.expiresAt = link.expiresAt + lag
      return .lastingLink(link)
    case .lastingLinks(var list):
      for place in list.links.indices { list.links[place].expiresAt = list.links[place].expiresAt + lag }
      return .lastingLinks(list)
    case .openedLink(let opened): return .openedLink(opened.later(by: lag))
    case .rejoined, .results, .registered, .devices, .media, .keys, .keyList, .confirmations, .presence, .history,
      .totals, .startedRecording, .recordings, .recording, .consented, .nothing:
      return self
    }
  }
}

extension OpenedLink {
  func later(by lag: Duration) -> OpenedLink {
    var later = self
    later.expiresAt = expiresAt + lag
    return later
  }
}

extension Delivery {
  func later(by lag: Duration) -> Delivery {
    guard lag != .zero else { return self }
    switch self {
    case .reply(let session, let id, .ok(let body)):
      return .reply(session, id: id, .ok(body.later(by: lag)))
    case .event(let session, var delivery):
      delivery.message = delivery.message.later(by: lag)
      return .event(session, delivery)
    case .publish(let session, let channel, let messageID, let message):
      return .publish(session, channel, messageID: messageID, message.later(by: lag))
    case .reply, .close, .admission: return self
    }
  }
}

extension StoreChange {
  /// The history outlives this run, so it stores a call's start as it was reported to people.
  func later(by lag: Duration) -> StoreChange {
    guard lag != .zero, case .history(.call(let call, let media, let startedAt)) = self else { return self }
    return .history(.call(call, media, startedAt: startedAt + lag))
  }
}

extension InquiryAnswer {
  func later(by lag: Duration) -> InquiryAnswer {
    switch self {
    case .summaries(let calls): .summaries(calls.map { $0.later(by: lag) })
    case .inspection(let call): .inspection(call?.later(by: lag))
    case .lastingLink(let opened): .lastingLink(opened?.later(by: lag))
    case .linkSummaries(let links): .linkSummaries(links.map { $0.later(by: lag) })
    case .counts, .truth, .number, .connectedUsers: self
    }
  }
}

extension LinkSummary {
  func later(by lag: Duration) -> LinkSummary {
    var later = self
    later.madeAt = madeAt + lag
    later.expiresAt = expiresAt + lag
    return later
  }
}

extension CallSummary {
  func later(by lag: Duration) -> CallSummary {
    var later = self
    later.startedAt = startedAt + lag
    return later
  }
}

extension CallInspection {
  func later(by lag: Duration) -> CallInspection {
    var later = self
    later.summary = summary?.later(by: lag)
    later.endedAt = endedAt.map { $0 + lag }
    for member in members.indices {
      for place in members[member].participants.indices {
        let participant = members[member].participants[place]
        later.members[member].participants[place].joinedAt = participant.joinedAt + lag
        later.members[member].participants[place].mediaSince = participant.mediaSince.map { $0 + lag }
      }
    }
    return later
  }
}
