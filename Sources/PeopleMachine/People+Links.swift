import CallMessages
import Contract
import MediaModel

/// Lasting links: made without a call, and opened by calls of the device that made them (protocol section 4, "Lasting links").
extension People {
  // MARK: requests

  mutating func makeLink(_ request: MakeLastingLink, _ identity: Identity) throws(RequestError) -> Response {
    let rules = try checkLinks()
    guard mayStart(identity) else {
      throw RequestError(.roleNotAllowed, "this role may not start calls, so it makes no links")
    }
    let device = identity.device
    guard let entry = directory[device]?.entry else {
      throw RequestError(.keysNotAllowed, "a device without registered keys makes no link: register its keys first")
    }
    if let link = links[request.link] {
      guard link.device == device else {
        throw RequestError(.requestInvalid, "each link has a new secret, and so an id of its own", field: "link")
      }
      return Response(.lastingLink(link.shown))
    }
    guard (MakeLastingLink.shortest...rules.days * 86_400).contains(request.expiresIn) else {
      throw RequestError(
        .requestInvalid, "a lasting link is valid for an hour to \(rules.days) days", field: "expiresIn")
    }
    guard links.count(of: device.user) < rules.ofUser else {
      throw RequestError(
        .requestTooLarge, "a user has at most \(rules.ofUser) lasting links: delete one first", field: "link")
    }
    let link = StoredLastingLink(
      id: request.link, device: device, fingerprint: entry.fingerprint, madeAt: now,
      expiresAt: now + .seconds(request.expiresIn))
    links.add(link)
    journal.links.insert(link.id)
    return Response(.lastingLink(link.shown))
  }

  func listLinks(of user: UserID) throws(RequestError) -> Response {
    let rules = try checkLinks()
    return Response(.lastingLinks(LastingLinkList(links: links.links(of: user).map(\.shown), days: rules.days)))
  }

  mutating func deleteLink(_ request: DeleteLastingLink, by user: UserID) throws(RequestError) -> Response {
    _ = try checkLinks()
    guard links[request.link]?.device.user == user else { throw .linkOver }
    var done = Response(.nothing)
    done.deletedLink = request.link
    return done
  }

  /// The link's call. Without one the connection waits.
  mutating func openLink(_ request: OpenLastingLink, by device: Device) throws(RequestError) -> Response {
    _ = try checkLinks()
    guard let link = links[request.link], link.expiresAt > now else { throw .linkOver }
    var done = Response(.openedLink(opened(link)))
    guard link.opening == nil, let session = directory[device]?.connection?.session else { return done }
    guard links.wait(session, at: link.id) else {
      throw RequestError(.serverBusy, "too many wait at this link, or on this connection", retryAfterMs: 10_000)
    }
    if device.user != link.device.user { done.awaitedLink = link.id }
    return done
  }

  private func checkLinks() throws(RequestError) -> LastingLinkBounds {
    guard configuration.links.days > 0 else {
      throw RequestError(.authForbidden, "this server has no lasting links: its operator can set links.days")
    }
    return configuration.links
  }

  private func opened(_ link: StoredLastingLink) -> OpenedLink {
    OpenedLink(
      name: directory.name(of: link.device.user), expiresAt: link.expiresAt, call: link.opening?.call,
      token: link.opening?.token)
  }

  /// For somebody without an account; nil if there is no such link.
  func opened(_ id: LinkID, now: Timestamp) -> OpenedLink? {
    guard configuration.links.days > 0, let link = links[id], link.expiresAt > now else { return nil }
    return opened(link)
  }

  /// The grant for a `link` request that names a lasting link; nil if it names none.
  /// - Throws: `call.link-invalid` unless this device made it; `call.exists` while another call of it runs.
  func linkGrant(for request: CallsRequest, _ identity: Identity) throws(RequestError) -> LinkGrant? {
    guard case .call(let call, .link(let body)) = request, let id = body.lasting, body.revoke != true else {
      return nil
    }
    guard configuration.links.days > 0, let link = links[id], link.expiresAt > now, link.device == identity.device
    else {
      throw RequestError(
        .callLinkInvalid, "this device has made no such lasting link, or it is over", field: "lasting")
    }
    if let opening = link.opening, opening.call != call {
      throw RequestError(
        .callExists, "a call of this link runs: end it first", field: "lasting", call: opening.call)
    }
    return LinkGrant(link: id, fingerprint: link.fingerprint, expiresAt: link.expiresAt)
  }

  // MARK: what follows

  /// The call lets people in by the link from now on.
  mutating func open(_ id: LinkID, of user: UserID, _ made: CallLink, of call: CallID) {
    guard links[id] != nil else { return send(.voidLinks(of: user, in: call)) }
    let waiting = links.open(id, StoredLastingLink.Opening(call: call, token: made.link))
    journal.links.insert(id)
    tell(waiting, of: id)
  }

  /// The call is over, or all its links are void.
  mutating func closeLink(of call: CallID) {
    if let id = links.close(call) { journal.links.insert(id) }
  }

  /// The waiting connections are told. A call that runs lets nobody in any more by its links, unless they have expired anyway.
  mutating func endLink(_ id: LinkID, hasExpired: Bool = false) {
    guard let (link, waiting) = links.remove(id) else { return }
    journal.links.insert(id)
    if let opening = link.opening, !hasExpired { send(.voidLinks(of: link.device.user, in: opening.call)) }
    tell(waiting, of: id)
  }

  mutating func endExpiredLinks() {
    while let id = links.takeExpired(now: now) { endLink(id, hasExpired: true) }
  }

  /// The device is gone, or has other keys: nobody could trust a call that it starts.
  mutating func endLinks(of device: Device) {
    for link in links.links(of: device.user) where link.device == device { endLink(link.id) }
  }

  /// The operator ends all of the user's links, or those of this short name.
  mutating func endLinks(of user: UserID, named name: String?) {
    for link in links.links(of: user) where name == nil || link.id.shortName == name { endLink(link.id) }
  }

  /// Somebody waits at the link, possibly without an account.
  mutating func noteWaiting(at id: LinkID) {
    guard configuration.links.days > 0, let link = links[id], link.expiresAt > now else { return }
    let notice = links.takeNotice(of: id, now: now)
    let owner = link.device.user
    if notice.event {
      let message = makeMessage(.linkWaiting(LinkWaiting(link: id)), of: nil)
      for device in directory.devices(of: owner) { deliver(message, to: device) }
    }
    if notice.push { sendPush(PushNotice(waitingAt: id), to: owner, until: now + LastingLinks.pushPause) }
  }

  /// The owner's device has come while others wait.
  mutating func tellOfWaiting(_ device: Device) {
    for (id, waiting) in links.awaited(of: device.user)
    where waiting.contains(where: { directory.device(of: $0)?.user != device.user }) {
      deliver(makeMessage(.linkWaiting(LinkWaiting(link: id)), of: nil), to: device)
    }
  }

  private mutating func tell(_ waiting: [SessionID], of id: LinkID) {
    guard !waiting.isEmpty else { return }
    let message = makeMessage(.linkChanged(LinkChanged(link: id)), of: nil)
    for device in waiting.compactMap(directory.device) { deliver(message, to: device) }
  }
}

extension StoredLastingLink {
  fileprivate var shown: LastingLink {
    LastingLink(link: id, device: device.device, expiresAt: expiresAt, call: opening?.call)
  }
}

extension RequestError {
  /// The same for every link that does not exist, so that a stranger learns nothing.
  fileprivate static let linkOver = RequestError(
    .callLinkInvalid, "the link is over, or was deleted: ask for a new one", field: "link")
}
