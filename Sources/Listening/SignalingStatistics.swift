import Glibc
package import MediaModel
import Synchronization

/// Counts for `/metrics` of the ports and of all fronts, without anything about persons.
package struct SignalingStatistics: Sendable {
  /// Why a client's connection ended. Each front has its own endings, and those of `Connections`.
  package struct Ending: RawRepresentable, Hashable, Sendable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }
  }

  /// A reason to drop something. Each front has its own beside those here and in `Connections`.
  package struct Drop: RawRepresentable, Hashable, Sendable {
    package let rawValue: String
    package init(rawValue: String) { self.rawValue = rawValue }
  }

  /// Open connections, including HTTP and those not logged in.
  package var connections = 0
  /// Logged-in connections.
  package var sessions = 0
  package var accepted: UInt64 = 0
  /// Messages of a front's own protocol, as it frames them.
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
package final class SignalingCounters: Sendable {
  private final class Shard: Sendable { let statistics = Mutex(SignalingStatistics()) }

  private let shards = (0..<64).map { _ in Shard() }

  package init() {}

  /// The sum over all threads.
  var snapshot: SignalingStatistics {
    shards.reduce(into: SignalingStatistics()) { sum, shard in sum.add(shard.statistics.withLock { $0 }) }
  }

  /// Changes the calling thread's counts. Values are summed over all threads, so the value of a single thread may be
  /// negative.
  package func update(_ change: (inout sending SignalingStatistics) -> Void) {
    // Thread ids are addresses of blocks of whole pages; the golden ratio spreads them (Knuth, TAOCP 6.4).
    let index = Int((UInt64(pthread_self()) >> 12 &* 0x9E37_79B9_7F4A_7C15) >> 58)
    shards[index].statistics.withLock { change(&$0) }
  }

  package func drop(_ reason: SignalingStatistics.Drop) { update { $0.drops[reason, default: 0] += 1 } }

  package func drop(_ drops: [SignalingStatistics.Drop: UInt64]) {
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

extension SignalingStatistics.Drop {
  /// The reasons of the ports, as operators see them.
  package static let ofPorts: [Self] = [
    connectionsFull, addressConnectionsFull, addressRequestsFull, acceptPaused, foreignOrigin, invalidHTTP,
    tlsHandshake,
  ]

  /// A connection that found no room, or that had not logged in and was evicted for another: as many as allowed are
  /// open.
  package static let connectionsFull = Self(rawValue: "connectionsFull")
  /// The same for the connections from one address.
  package static let addressConnectionsFull = Self(rawValue: "addressConnectionsFull")
  /// An HTTP request beyond the rate of its address.
  package static let addressRequestsFull = Self(rawValue: "addressRequestsFull")
  /// Accepting paused: the system had no file or memory for another connection.
  package static let acceptPaused = Self(rawValue: "acceptPaused")
  /// A WebSocket from a page of another site.
  package static let foreignOrigin = Self(rawValue: "foreignOrigin")
  /// An HTTP request that cannot be read, or without exactly one `Host`.
  package static let invalidHTTP = Self(rawValue: "invalidHTTP")
  /// A TLS handshake that failed.
  package static let tlsHandshake = Self(rawValue: "tlsHandshake")
}
