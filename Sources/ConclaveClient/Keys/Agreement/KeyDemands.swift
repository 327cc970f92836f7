import MediaModel

/// Requesting a key that others use and this device lacks: three times, 2 s apart, not all devices at once (protocol section 5.6).
struct KeyDemands: Sendable {
  /// The number of requests that the server forwards per device and epoch.
  static let limit = 3
  static let interval: Duration = .seconds(2)
  static let spread: Duration = .milliseconds(500)

  /// The consequence of a demand that is due.
  enum Outcome: Sendable {
    case nothing
    case ask
    case failed
  }

  private struct Demand: Sendable {
    var epoch: UInt32
    var asked = 0
    /// nil: when the epoch is in use.
    var due: Instant?
  }

  private var demand: Demand?

  /// The epoch whose key is demanded.
  var epoch: UInt32? { demand?.epoch }
  var nextTimeout: Instant? { demand?.due }
  func isDue(now: Instant) -> Bool { nextTimeout.map { $0 <= now } ?? false }

  /// Demands an epoch's key, the first time at `due`.
  mutating func begin(_ epoch: UInt32, at due: Instant) { demand = Demand(epoch: epoch, due: due) }

  /// The epoch is in use: a resting demand continues, and a new one begins at `due`.
  mutating func use(_ epoch: UInt32, at due: Instant, now: Instant) {
    guard demand?.epoch == epoch else { return begin(epoch, at: due) }
    if demand?.due == nil { demand?.due = now.advanced(by: Self.interval) }
  }

  /// The key has arrived.
  mutating func end(_ epoch: UInt32) { if demand?.epoch == epoch { demand = nil } }

  /// The key in use has arrived, and no earlier one is of use.
  mutating func endAll() { demand = nil }

  /// - Parameters:
  ///   - isMissing: the epoch is the newest, and its key has not arrived. The server forgets an epoch's envelopes when the next one is announced, and that one
  ///     brings a key.
  ///   - isInUse: before the switch the server may still be looking for a leader, and keeps one request until the key is there.
  ///   - hasEnvelope: one waits for the person's trust, and is as good as another one.
  mutating func ask(isMissing: Bool, isInUse: Bool, hasEnvelope: Bool, now: Instant) -> Outcome {
    guard let asked = demand?.asked else { return .nothing }
    guard isMissing else {
      demand = nil
      return .nothing
    }
    guard isInUse || asked == 0 else {
      demand?.due = nil
      return .nothing
    }
    guard asked < Self.limit else {
      demand = nil
      return hasEnvelope ? .nothing : .failed
    }
    demand?.asked += 1
    demand?.due = now.advanced(by: Self.interval)
    return hasEnvelope ? .nothing : .ask
  }
}
