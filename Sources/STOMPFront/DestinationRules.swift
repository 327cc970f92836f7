import CallMessages
import NIOCore
import STOMP

/// Decides which user may use which destination (protocol section 3). A refusal ends the connection with an ERROR, as STOMP requires.
struct DestinationRules: Sendable {
  /// Prefixes of an app's own destinations, normalised.
  private let prefixes: [String]
  /// The most bytes of an app's own message.
  private let body: Int

  init(prefixes: [String], body: Int) {
    self.prefixes = prefixes.map(Destination.normalized)
    self.body = body
  }

  /// The admission of a frame's destination, which is nil for a frame without one, and for text that is not a
  /// destination.
  func admission(of destination: Destination?, for frame: Frame, isService: Bool, isGuest: Bool) -> Session.Admission {
    if isGuest, destination?.isForGuests == false { return .refused("a guest has a call, and nothing else") }
    return switch frame.command {
    case .subscribe:
      switch destination {
      case .channel(let channel) where channel.isOwn:
        .allowedOnce("this connection is subscribed to the queue already")
      case .channel: .asked
      case .ownQueue: .allowed
      case .app(let address) where isOpen(address): .allowed
      default: .refused("no such destination to subscribe to")
      }
    case .send:
      switch destination {
      case .request: .allowed
      case .userQueue where isService: isSmall(frame.body.readableBytes)
      case .userQueue: .refused("only a service may send to a user's queue")
      case .app(let address) where isOpen(address): isSmall(frame.body.readableBytes)
      default: .refused("no such destination to send to")
      }
    default: .allowed
    }
  }

  private func isOpen(_ address: Broker.Address) -> Bool {
    switch address {
    case .topic(let name), .queue(let name): prefixes.contains { name.hasPrefix($0) }
    case .user: false
    }
  }

  private func isSmall(_ bytes: Int) -> Session.Admission {
    bytes <= body ? .allowed : .refused("the body may have \(body) bytes; split it or send less")
  }
}

extension Destination {
  /// Whether guests may use it at all. The calls decide which requests and calls are open to them.
  fileprivate var isForGuests: Bool {
    switch self {
    case .request, .channel(.replies), .channel(.events), .channel(.call(_)): true
    default: false
    }
  }
}
