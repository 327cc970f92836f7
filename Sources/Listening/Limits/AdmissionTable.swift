import NIOCore

/// Which connections are open, from where, and which of them have logged in (protocol section 10).
///
/// ## Invariants
/// - No more than `limits.connections` connections are open, unless more were open when the limits were set.
/// - A connection that has not logged in is never the reason for refusing another one: the oldest is evicted.
struct AdmissionTable {
  struct Limits: Sendable {
    var connections: Int
    /// From one address, logged in or not.
    var fromAddress: Int
    /// From one address, not logged in.
    var fromAddressBeforeLogin: Int
  }

  enum Verdict: Equatable {
    /// The connection with the number `evicting` must be closed, for the given reason.
    case admitted(evicting: UInt64?, SignalingStatistics.Drop?)
    case refused(SignalingStatistics.Drop)
  }

  private struct Connection {
    /// nil for proxies, which many clients share.
    let block: AddressBlock?
    var isLoggedIn = false
  }

  /// Connections in the order in which they came. Connections that are gone or have logged in are skipped when their turn comes.
  private struct Line {
    private var order = CircularBuffer<UInt64>()
    private(set) var waiting = 0

    mutating func append(_ id: UInt64, among connections: [UInt64: Connection]) {
      order.append(id)
      waiting += 1
      // It grows only here, so half of it is always current.
      if order.count > 2 * waiting + 64 {
        order = CircularBuffer(order.filter { connections[$0]?.isLoggedIn == false })
      }
    }

    mutating func remove() { waiting -= 1 }

    mutating func oldest(among connections: [UInt64: Connection]) -> UInt64? {
      while let first = order.first {
        if connections[first]?.isLoggedIn == false { return first }
        order.removeFirst()
      }
      return nil
    }
  }

  private struct Address {
    var open = 0
    var line = Line()
  }

  /// Lower limits close nothing: they apply to new connections.
  var limits: Limits
  private var connections: [UInt64: Connection] = [:]
  private var addresses: [AddressBlock: Address] = [:]
  private var line = Line()

  init(limits: Limits) { self.limits = limits }

  var count: Int { connections.count }
  var addressCount: Int { addresses.count }

  /// A connection arrived. `id` is new.
  mutating func admit(_ id: UInt64, from block: AddressBlock?) -> Verdict {
    var evicted: UInt64?
    var reason: SignalingStatistics.Drop?
    if let block, let address = addresses[block] {
      let isFull = address.open >= limits.fromAddress
      if isFull || address.line.waiting >= limits.fromAddressBeforeLogin {
        guard let oldest = addresses[block]?.line.oldest(among: connections) else {
          return .refused(.addressConnectionsFull)
        }
        remove(oldest)
        (evicted, reason) = (oldest, .addressConnectionsFull)
      }
    }
    if connections.count >= limits.connections {
      guard let oldest = line.oldest(among: connections) else { return .refused(.connectionsFull) }
      remove(oldest)
      (evicted, reason) = (oldest, .connectionsFull)
    }
    connections[id] = Connection(block: block)
    line.append(id, among: connections)
    if let block {
      var address = addresses.removeValue(forKey: block) ?? Address()
      address.open += 1
      address.line.append(id, among: connections)
      addresses[block] = address
    }
    return .admitted(evicting: evicted, reason)
  }

  /// False when the connection was evicted.
  mutating func logIn(_ id: UInt64) -> Bool {
    guard let connection = connections[id] else { return false }
    guard !connection.isLoggedIn else { return true }
    connections[id]?.isLoggedIn = true
    line.remove()
    if let block = connection.block { addresses[block]?.line.remove() }
    return true
  }

  /// The connection is closed, or about to be. Does nothing if it was already removed.
  mutating func remove(_ id: UInt64) {
    guard let connection = connections.removeValue(forKey: id) else { return }
    if !connection.isLoggedIn { line.remove() }
    guard let block = connection.block else { return }
    addresses[block]?.open -= 1
    if !connection.isLoggedIn { addresses[block]?.line.remove() }
    if addresses[block]?.open == 0 { addresses[block] = nil }
  }

  /// Removes the oldest connection that has not logged in.
  mutating func evictOldest() -> UInt64? {
    guard let oldest = line.oldest(among: connections) else { return nil }
    remove(oldest)
    return oldest
  }
}
