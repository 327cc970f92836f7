import Contract
import MediaModel

/// Lasting links: made without a call, and started by the device that made them (protocol section 4, "Lasting links").
extension CallClient {
  /// A device that waits asks again after this time, because an event may be lost.
  private static let waitTime = Duration.seconds(20)
  /// The least time between two questions, whatever the server reports.
  private static let askPause = Duration.seconds(1)

  /// Makes a link of this device that lasts for `seconds`, an hour to the days that the server allows. Store the result: without it nobody can start the link. No
  /// server gets its secret.
  public func makeLastingLink(expiresIn seconds: Int) async throws(SignalingError) -> KeptLink {
    let secret = LinkSecret(maker: identity.fingerprint, using: &generator)
    let request = MakeLastingLink(link: secret.id, expiresIn: seconds)
    let made = try await requestAgain(.people(.makeLink(request)), reply: LastingLink.self)
    guard made.link == secret.id, made.device == identity.address.device else { throw .notUnderstood }
    return KeptLink(
      id: secret.id.text, secret: secret.text, expiresAt: (Self.clock + .seconds(seconds)).milliseconds)
  }

  /// This user's lasting links, with the most days that a new one may last.
  public func lastingLinks() async throws(SignalingError) -> (links: [ListedLink], days: Int) {
    let list = try await connection.request(.people(.listLinks), reply: LastingLinkList.self)
    return (list.links.map(ListedLink.init), list.days)
  }

  /// Deletes a link. Delete its secret, too: then nobody can start it, whatever the server does.
  public func deleteLastingLink(_ id: String) async throws(SignalingError) {
    guard let link = LinkID(id) else { throw .invalidIdentifier }
    try await perform(.people(.deleteLink(DeleteLastingLink(link: link))))
  }

  /// Starts a call of a link that this device has made: everybody who has the secret may join. If `guestsWait`, people without an account wait until a member
  /// admits them.
  public func start(
    lasting link: KeptLink, media: CallSnapshot.Media, policy: CallPolicy = CallPolicy(), guestsWait: Bool = false
  ) async throws(SignalingError) -> JoinedCall {
    guard let secret = LinkSecret(link.secret), secret.id.text == link.id else { throw .invalidIdentifier }
    // This device judges by its own clock and keys: the server has no say in what it signs.
    guard secret.maker == identity.fingerprint, link.expiresAt > Self.clock.milliseconds else { throw .notStartable }
    let call = try await startAnew([], media, policy, nil)
    let word = Admission.making(secret.link(of: call.callID), of: call.callID, waits: guestsWait, by: identity)
    do {
      let request = MakeLink(admission: word, lasting: secret.id)
      _ = try await requestAgain(.call(call.callID, .link(request)), reply: CallLink.self)
    } catch {
      _ = await leave(call.callID)
      throw error
    }
    return call
  }

  /// Joins the call of a lasting link, and waits until its owner has started one (`ClientEvent.waitingForStart`). Cancelling the task ends the waiting.
  public func join(lasting secret: String) async throws(SignalingError) -> JoinedCall {
    guard let link = LinkSecret(secret)?.id else { throw .invalidIdentifier }
    while true {
      let asked = ContinuousClock.now
      // An event that comes while the server answers counts.
      let wait = waitAtLink(link)
      defer { stopWaiting(wait, at: link) }
      let request = Request.people(.openLink(OpenLastingLink(link: link)))
      let opened = try await requestAgain(request, reply: OpenedLink.self)
      guard (opened.call == nil) == (opened.token == nil) else { throw .notUnderstood }
      if let call = opened.call, let token = opened.token {
        return try await join(call.text, link: token, secret: secret, isLasting: true)
      }
      tell(.waitingForStart(link: link.text, owner: opened.name))
      var hasChanged = false
      for await _ in wait.changes {
        hasChanged = true
        break
      }
      guard hasChanged, !Task.isCancelled else { throw .notStarted }
      try? await Task.sleep(until: asked.advanced(by: Self.askPause), clock: .continuous)
    }
  }

  // MARK: waiting

  /// One task that waits at a link: `changes` has an element when the link may have changed.
  struct LinkWait {
    let number: Int
    let changes: AsyncStream<Void>
    let timer: Task<Void, Never>
  }

  private func waitAtLink(_ link: LinkID) -> LinkWait {
    let (changes, change) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    linkWaits.last += 1
    linkWaits.waiting[link, default: [:]][linkWaits.last] = change
    let timer = Task {
      try? await Task.sleep(for: Self.waitTime)
      change.yield()
    }
    return LinkWait(number: linkWaits.last, changes: changes, timer: timer)
  }

  private func stopWaiting(_ wait: LinkWait, at link: LinkID) {
    wait.timer.cancel()
    linkWaits.waiting[link]?.removeValue(forKey: wait.number)?.finish()
    if linkWaits.waiting[link]?.isEmpty == true { linkWaits.waiting[link] = nil }
  }

  /// The event `link.changed`.
  func linkChanged(_ link: LinkID) {
    for change in (linkWaits.waiting[link] ?? [:]).values { change.yield() }
  }
}

/// The tasks that wait at lasting links.
struct LinkWaits {
  var waiting: [LinkID: [Int: AsyncStream<Void>.Continuation]] = [:]
  var last = 0
}

/// A lasting link that this device has made, for the app to store. Secret: whoever has it may join the calls of the link.
public struct KeptLink: Sendable, Hashable, Codable {
  /// For the server.
  public var id: String
  /// The part that is given to people, in a URL's fragment, and to no server.
  public var secret: String
  /// Milliseconds since 1970, by this device's clock.
  public var expiresAt: Int64

  /// A link as it was stored.
  public init(id: String, secret: String, expiresAt: Int64) {
    self.id = id
    self.secret = secret
    self.expiresAt = expiresAt
  }
}

extension KeptLink: CustomStringConvertible {
  /// Contains nothing of the secret.
  public var description: String { "lasting link" }
}

/// A lasting link of this user, as the server lists it. Only the device that made it can start it.
public struct ListedLink: Sendable, Hashable {
  public var id: String
  /// The device that made it.
  public var device: String
  /// Milliseconds since 1970.
  public var expiresAt: Int64
  /// The call of the link that runs.
  public var call: String?

  init(_ link: LastingLink) {
    id = link.link.text
    device = link.device.text
    expiresAt = link.expiresAt.milliseconds
    call = link.call?.text
  }
}

extension SignalingError {
  fileprivate static var notStartable: SignalingError {
    .refused(
      code: RequestError.Code.callLinkInvalid.rawValue, message: "this device has not made the link, or it is over")
  }
  fileprivate static var notStarted: SignalingError {
    .refused(code: RequestError.Code.callNotFound.rawValue, message: "the waiting for the call was ended")
  }
}
