import Glibc
package import MediaModel
import STOMP
import Synchronization

/// Counts for `/metrics`, without anything about persons.
package struct SignalingStatistics: Sendable {
  /// Why a STOMP connection ended.
  package enum Ending: String, CaseIterable, Sendable {
    case disconnected, gone, protocolError, limit, connectTimeout, authenticationFailed, tokenExpired, heartBeatMissing,
      closedByServer
    /// More bytes waited for the client than one connection may have.
    case slowReader
    /// The slowest reader of a user for whose connections too many bytes waited.
    case userBacklogFull
    /// The slowest reader of all, when too many bytes waited in total.
    case backlogFull
  }

  /// Reasons to drop something.
  package enum Drop: String, CaseIterable, Sendable {
    /// A connection that found no room, or that had not logged in and was evicted for another: as many as allowed are
    /// open.
    case connectionsFull
    /// The same for the connections from one address.
    case addressConnectionsFull
    /// An HTTP request beyond the rate of its address.
    case addressRequestsFull
    /// A login of a user with too many connections.
    case userConnectionsFull
    /// A login of a user who has used up the share for requests.
    case userLoginsFull
    /// A connection of a user who sends too many bytes in unfinished frames and transactions.
    case userInboundFull
    /// A SUBSCRIBE of a user with too many subscriptions.
    case userSubscriptionsFull
    /// Accepting paused: the system had no file or memory for another connection.
    case acceptPaused
    /// A WebSocket from a page of another site.
    case foreignOrigin
    /// An HTTP request that cannot be read, or without exactly one `Host`.
    case invalidHTTP
    /// A TLS handshake that failed.
    case tlsHandshake
    /// A request beyond the rate of its connection.
    case rateLimited
    /// A request beyond the share of its user.
    case userRateLimited
    /// A request, or a SUBSCRIBE, of a user whose requests made the server write too much.
    case userEventsFull
    case invalidRequest
    /// A delivery to a connection that is gone.
    case sessionGone
    /// A reply or event for a client that is not subscribed to its queue.
    case notSubscribed
    /// An app's own message to a topic or user queue without subscribers.
    case nobodySubscribed
    /// The oldest of a queue that exceeds its number or bytes.
    case queueFull
    /// A new queue or message while all queues together have reached the limit.
    case queuesFull
    /// No subscriber accepted it in time.
    case queueExpired
    /// Handed out repeatedly, and never acknowledged.
    case queueRefused
    /// Bytes that arrived after the end.
    case afterEnd
  }

  /// Open connections, including HTTP and those not logged in.
  package var connections = 0
  /// Logged-in connections.
  package var sessions = 0
  package var accepted: UInt64 = 0
  package var framesIn: UInt64 = 0
  package var framesOut: UInt64 = 0
  /// Flushes of connections: the writes in which those frames left.
  package var flushes: UInt64 = 0
  package var requests: UInt64 = 0
  /// An app's own messages: accepted, and written to subscribers.
  package var messages: UInt64 = 0
  package var deliveries: UInt64 = 0
  package var httpRequests: UInt64 = 0
  /// Bytes that wait for slow clients.
  package var backlogBytes = 0
  /// When the TLS certificate expires; nil without one.
  package var certificateExpiry: Timestamp?
  package var endings: [Ending: UInt64] = [:]
  package var drops: [Drop: UInt64] = [:]

  package init() {}
}

/// The statistics of all event loops. Each thread counts in a separate shard, as long as there are no more threads than shards, so no count waits for
/// another loop's.
final class SignalingCounters: Sendable {
  private final class Shard: Sendable { let statistics = Mutex(SignalingStatistics()) }

  private let shards = (0..<64).map { _ in Shard() }

  /// The sum over all threads.
  var snapshot: SignalingStatistics {
    shards.reduce(into: SignalingStatistics()) { sum, shard in sum.add(shard.statistics.withLock { $0 }) }
  }

  /// Changes the calling thread's counts. Values are summed over all threads, so the value of a single thread may be
  /// negative.
  func update(_ change: (inout sending SignalingStatistics) -> Void) {
    // Thread ids are addresses of blocks of whole pages; the golden ratio spreads them (Knuth, TAOCP 6.4).
    let index = Int((UInt64(pthread_self()) >> 12 &* 0x9E37_79B9_7F4A_7C15) >> 58)
    shards[index].statistics.withLock { change(&$0) }
  }

  func drop(_ reason: SignalingStatistics.Drop) { update { $0.drops[reason, default: 0] += 1 } }

  func drop(_ drops: [SignalingStatistics.Drop: UInt64]) {
    if !drops.isEmpty { update { $0.drops.merge(drops) { $0 + $1 } } }
  }
}

extension SignalingStatistics {
  fileprivate mutating func add(_ other: SignalingStatistics) {
    connections += other.connections
    sessions += other.sessions
    accepted += other.accepted
    framesIn += other.framesIn
    framesOut += other.framesOut
    flushes += other.flushes
    requests += other.requests
    messages += other.messages
    deliveries += other.deliveries
    httpRequests += other.httpRequests
    backlogBytes += other.backlogBytes
    endings.merge(other.endings) { $0 + $1 }
    drops.merge(other.drops) { $0 + $1 }
  }
}

extension SignalingStatistics.Ending {
  init(_ end: Session.End) {
    self =
      switch end {
      case .disconnected: .disconnected
      case .violation(.protocolError): .protocolError
      case .violation(.limit): .limit
      case .violation(.connectTimeout): .connectTimeout
      case .violation(.authenticationFailed): .authenticationFailed
      case .violation(.tokenExpired): .tokenExpired
      case .violation(.heartBeatMissing): .heartBeatMissing
      case .violation(.closedByServer): .closedByServer
      }
  }
}
