import MediaModel

/// The ids of calls that ended, for a day: clients choose ids, and an envelope that is bound to one must never fit a second call.
struct KnownCalls {
  static let lifetime = Duration.seconds(86_400)
  /// Beyond it the oldest are forgotten.
  static let capacity = 1 << 20

  private var ids: Set<UInt128> = []
  private var order: [(id: UInt128, at: Timestamp)] = []
  /// The index of the oldest id in `order`; entries before it are gone.
  private var oldest = 0

  func contains(_ call: CallID) -> Bool { Self.number(of: call).map(ids.contains) ?? false }

  mutating func add(_ call: CallID, at: Timestamp, now: Timestamp) {
    guard let id = Self.number(of: call), ids.insert(id).inserted else { return }
    order.append((id, at))
    while oldest < order.count - 1, order[oldest].at + Self.lifetime < now || ids.count > Self.capacity {
      ids.remove(order[oldest].id)
      oldest += 1
    }
    guard oldest > 1_024, oldest > order.count / 2 else { return }
    order.removeFirst(oldest)
    oldest = 0
  }

  /// The UUID as a number.
  private static func number(of call: CallID) -> UInt128? {
    UInt128(call.text.filter { $0 != "-" }, radix: 16)
  }
}
