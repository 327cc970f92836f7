package import CallMessages
package import Contract
package import Listening
package import MediaModel
package import NIOCore
import Octets

/// The clients of all fronts, as the control plane knows them: it delivers to sessions, and a front's connections are behind them.
///
/// A client that does not read delays nobody else.
package final class ConnectedClients: Sendable {
  package let connections = ConnectionTable()
  package let sessionIDs: SessionNumbers
  package let shares: UserShares
  package let slowReaders: SlowReaders
  let stateTexts = StateTexts()
  let counters: SignalingCounters
  let log: LimitedLog
  private let chores: RepeatedTask

  /// How often the shares of users who have left are forgotten.
  private static let choreInterval = TimeAmount.seconds(5)

  /// - Parameters:
  ///   - incarnation: this run of the server, for the ids of sessions.
  ///   - loop: for periodic work.
  package init(_ limits: ClientLimits, of incarnation: Incarnation, _ listeners: Listeners, on loop: any EventLoop) {
    sessionIDs = SessionNumbers(of: incarnation)
    counters = listeners.counters
    log = listeners.log
    let shares = UserShares(limits: limits.share)
    self.shares = shares
    slowReaders = SlowReaders(limits: limits.backlog)
    chores = loop.scheduleRepeatedTask(initialDelay: Self.choreInterval, delay: Self.choreInterval) { _ in
      shares.prune(now: NIODeadline.now().uptimeNanoseconds)
    }
  }

  /// Bytes that wait for clients that read slowly.
  package var backlogBytes: Int { slowReaders.bytes }

  /// The limits apply to all users immediately.
  package func use(_ limits: ClientLimits) {
    shares.setLimits(limits.share)
    slowReaders.setLimits(limits.backlog)
  }

  /// Charges the user's share for events caused by what the user's sessions sent, or by their end. Callable from any thread.
  package func charge(_ user: UserID, _ events: EventCharge) {
    shares.charge(user, events, now: NIODeadline.now().uptimeNanoseconds)
  }

  /// Why a request of the session that has waited for its turn must not be carried out: its user's earlier ones made the server write too much. nil if it may
  /// be. Callable from any thread.
  package func refusal(_ session: SessionID) -> RequestError? {
    let wait = connections.entry(session)?.share?.debt(now: NIODeadline.now().uptimeNanoseconds)
    guard let wait else { return nil }
    counters.drop(.userEventsFull)
    return .tooManyRequests(wait)
  }

  /// Closes all connections.
  /// - Parameter message: for the clients.
  package func stop(message: String) {
    chores.cancel()
    for entry in connections.all {
      entry.loop.execute {
        entry.connection.value.close(reason: message)
        entry.connection.value.send()
      }
    }
  }
}

/// Limits of a user's clients on all fronts, and of all clients together (protocol section 10), in counts and bytes. The operator's `limits` have the same names.
/// Services have no limits per user.
package struct ClientLimits: Sendable {
  /// All devices of a user together.
  package var userConnections = 64
  package var userSubscriptions = 512
  package var userRequestsPerSecond = 300
  package var userRequestBurst = 1_000
  /// Bytes of events that follow from a user's requests, in one second.
  package var userEvents = 1 << 20
  package var userEventBurst = 16 << 20
  /// Bytes that may wait for a user's clients.
  package var userOutbound = 16 << 20
  /// Bytes of messages that are not complete, or that wait for the rest of a transaction.
  package var userInbound = 16 << 20
  /// Bytes that may wait for all clients together.
  package var totalOutbound = 256 << 20

  package init() {}

  var share: UserShare.Limits {
    UserShare.Limits(
      connections: userConnections, subscriptions: userSubscriptions, requestsPerSecond: userRequestsPerSecond,
      requestBurst: userRequestBurst, inboundBytes: userInbound, eventBytesPerSecond: userEvents,
      eventBurst: userEventBurst)
  }

  var backlog: Backlog.Limits { Backlog.Limits(bytes: totalOutbound, bytesOfUser: userOutbound) }
}

extension RequestError {
  /// - Parameter wait: nanoseconds.
  package static func tooManyRequests(_ wait: UInt64) -> RequestError {
    RequestError(.rateLimited, "too many requests; wait a little", retryAfterMs: wait.millisecondsRoundedUp)
  }
}

extension SignalingStatistics.Drop {
  /// The reasons of all fronts, as operators see them.
  package static let ofClients: [Self] = [
    userConnectionsFull, userLoginsFull, userInboundFull, userSubscriptionsFull, userRateLimited, userEventsFull,
    sessionGone,
  ]

  /// A login of a user with too many connections.
  package static let userConnectionsFull = Self(rawValue: "userConnectionsFull")
  /// A login of a user who has used up the share for requests.
  package static let userLoginsFull = Self(rawValue: "userLoginsFull")
  /// A connection of a user who sends too many bytes in unfinished frames and transactions.
  package static let userInboundFull = Self(rawValue: "userInboundFull")
  /// A subscription of a user with too many.
  package static let userSubscriptionsFull = Self(rawValue: "userSubscriptionsFull")
  /// A request beyond the share of its user.
  package static let userRateLimited = Self(rawValue: "userRateLimited")
  /// A request, or a subscription, of a user whose requests made the server write too much.
  package static let userEventsFull = Self(rawValue: "userEventsFull")
  /// A delivery to a connection that is gone.
  package static let sessionGone = Self(rawValue: "sessionGone")
}

extension SignalingStatistics.Ending {
  /// The endings of all fronts, as operators see them.
  package static let ofClients: [Self] = [userBacklogFull, backlogFull]

  /// The slowest reader of a user for whose connections too many bytes waited.
  package static let userBacklogFull = Self(rawValue: "userBacklogFull")
  /// The slowest reader of all, when too many bytes waited in total.
  package static let backlogFull = Self(rawValue: "backlogFull")
}
