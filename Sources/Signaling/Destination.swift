import Calls
import STOMP

/// The destinations of the protocol that a client may name.
enum Destination {
  static let replies = "/user/queue/replies"
  static let events = "/user/queue/events"

  /// nil, or the text of the ERROR: what `Session.Configuration.admit` wants.
  static func refusal(of access: Session.Access) -> String? {
    switch access {
    case .subscribe(let destination, let existing):
      guard queue(destination) != nil else { return "no such destination to subscribe to" }
      return existing == 0 ? nil : "this connection is subscribed to the queue already"
    case .send(let destination):
      return isRequest(destination) ? nil : "no such destination to send to"
    }
  }

  static func queue(_ destination: String) -> Channel? {
    switch destination {
    case replies: .replies
    case events: .events
    default: nil
    }
  }

  /// `/app/…` without empty segments, `.` and `..`. Whether there is such a request is answered by a reply, not by an ERROR.
  private static func isRequest(_ destination: String) -> Bool {
    let segments = destination.split(separator: "/", omittingEmptySubsequences: false)
    return segments.count > 2 && segments[0].isEmpty && segments[1] == "app"
      && !segments.dropFirst(2).contains { $0.isEmpty || $0 == "." || $0 == ".." }
  }

  /// Requests that hand out keys may be larger than others.
  static func isKeys(_ destination: String) -> Bool {
    destination.hasPrefix("/app/calls/") && destination.hasSuffix("/keys")
  }
}
