import MediaModel

/// Calls whose ring envelope was used: a second one of the same call would let a server replay an old ring.
struct UsedRings: Sendable {
  static let limit = 1_000
  static let time: Int64 = 30 * 24 * 3_600 * 1_000

  private var times: [CallID: Int64] = [:]

  init(_ rings: [UsedRing] = []) {
    for ring in rings { if let call = CallID(ring.call) { times[call] = ring.at } }
  }

  func contains(_ call: CallID) -> Bool { times[call] != nil }

  mutating func insert(_ call: CallID, at now: Timestamp) {
    times = times.filter { now.milliseconds - $0.value < Self.time }
    if times.count >= Self.limit, let oldest = times.min(by: { $0.value < $1.value })?.key { times[oldest] = nil }
    times[call] = now.milliseconds
  }
}

/// A ring whose key this device has used.
public struct UsedRing: Sendable, Hashable, Codable {
  /// The call's id.
  public var call: String
  /// When, in milliseconds since 1970.
  public var at: Int64

  /// A ring that the app kept.
  public init(call: String, at: Int64) {
    self.call = call
    self.at = at
  }
}
