import CallMessages
import MediaModel
import STOMP

/// A destination of SEND or SUBSCRIBE (protocol section 3), parsed once.
enum Destination: Equatable {
  /// `/app/…`, by the part after `/app/`. Whether there is such a request is answered by a reply, not by an ERROR.
  case request(path: ArraySlice<Substring>)
  /// A destination that the control plane serves.
  case channel(Channel)
  /// `/user/queue/{name}`: messages of services to the client's user.
  case ownQueue(String)
  /// `/user/{id}/queue/{name}`, to which services send.
  case userQueue(UserID, String)
  /// `/topic/…` and `/queue/…`, if the configuration's prefixes allow it.
  case app(Broker.Address)

  static let replies = "/user/queue/replies"
  static let events = "/user/queue/events"
  private static let longest = 1_024

  init?(_ text: String) {
    guard text.utf8.count <= Self.longest else { return nil }
    let parts = text.split(separator: "/", omittingEmptySubsequences: false)
    guard parts.count > 2, parts[0].isEmpty, !parts.dropFirst().contains(where: { Self.isStrange($0) }) else {
      return nil
    }
    switch parts[1] {
    case "app": self = .request(path: parts.dropFirst(2))
    case "user": self.init(user: parts.dropFirst(2))
    case "topic": self.init(topic: parts.dropFirst(2), text)
    case "queue": self = .app(.queue(text))
    case "exchange":
      guard parts.count <= 4 else { return nil }
      self.init(exchange: Self.normalized(text))
    default: return nil
    }
  }

  /// RabbitMQ's wildcards, too: taken as names they would deliver less than requested.
  private static func isStrange(_ part: Substring) -> Bool { ["", ".", "..", "*", "**", "#"].contains(part) }

  private init?(user parts: ArraySlice<Substring>) {
    guard let last = parts.last.map(String.init) else { return nil }
    switch (parts.count, parts.first) {
    case (2, "queue"):
      switch last {
      case "replies": self = .channel(.replies)
      case "events": self = .channel(.events)
      default: self = .ownQueue(last)
      }
    case (3, let id?):
      guard parts.dropFirst().first == "queue", let user = UserID(String(id)), last != "replies", last != "events"
      else {
        return nil
      }
      self = .userQueue(user, last)
    default: return nil
    }
  }

  /// `text` is normalised: `/topic/NAME` without further segments, so the control plane does not serve it.
  private init?(exchange text: String) {
    guard case .app(let address)? = Self(topic: [text.dropFirst("/topic/".count)], text) else { return nil }
    self = .app(address)
  }

  /// `text` is normalised. An app's topic must not begin with a reserved name, whatever separates the rest.
  private init?(topic parts: ArraySlice<Substring>, _ text: String) {
    guard let first = parts.first?.prefix(while: { $0 != "." }) else { return nil }
    switch (first, text) {
    case ("service", "/topic/service/calls"): self = .channel(.serviceCalls)
    case ("service", "/topic/service/push"): self = .channel(.servicePush)
    case ("service", "/topic/service/reports"): self = .channel(.serviceReports)
    case ("calls", _):
      guard parts.count == 2, parts.first == "calls", let id = parts.last, let call = CallID(String(id)) else {
        return nil
      }
      self = .channel(.call(call))
    case ("service", _): return nil
    default: self = .app(.topic(text))
    }
  }

  /// `/exchange/NAME[/KEY]` as `/topic/NAME[.KEY]`; anything else unchanged. Also for prefixes.
  static func normalized(_ text: String) -> String {
    let exchange = "/exchange/"
    guard text.hasPrefix(exchange) else { return text }
    return "/topic/" + text.dropFirst(exchange.count).replacing("/", with: ".", maxReplacements: 1)
  }

  /// The destination of a SEND or SUBSCRIBE; nil for other frames, and for invalid text.
  init?(of frame: Frame) {
    guard frame.command == .send || frame.command == .subscribe, let text = frame.headers["destination"] else {
      return nil
    }
    self.init(text)
  }
}

extension Channel {
  /// The destination as the client names it.
  var destination: String {
    switch self {
    case .replies: Destination.replies
    case .events: Destination.events
    case .call(let call): "/topic/calls/\(call.text)"
    case .serviceCalls: "/topic/service/calls"
    case .servicePush: "/topic/service/push"
    case .serviceReports: "/topic/service/reports"
    }
  }

  /// One of each client's own two, which it may always have.
  var isOwn: Bool { self == .replies || self == .events }
}

extension NodeCommand {
  static func subscribe(_ session: SessionID, _ channel: Channel, as mode: AckMode) -> Self {
    switch mode {
    case .auto: .subscribe(session, channel, .auto)
    case .client: .subscribe(session, channel, .client)
    case .individual: .subscribe(session, channel, .individual)
    }
  }
}
