import MediaModel

/// Events of calls whose join is still being answered, in order. The bounds also apply to all calls together: an event for which there is no room is lost,
/// and its call catches up once it is joined.
struct EarlyEvents {
  /// Events that are kept for one call, and for all calls.
  static let callLimit = 256
  static let limit = 1_024
  /// Bytes of bodies that are kept.
  static let byteLimit = 4 << 20

  private var events: [CallID: [ReceivedEvent]] = [:]
  private var incomplete: Set<CallID> = []
  private var count = 0
  private var bytes = 0

  /// The calls for which something was kept or lost.
  var calls: [CallID] { Array(incomplete.union(events.keys)) }

  /// False if there is no room. After that nothing is kept until the call's events are taken, because a part would be out of
  /// order.
  mutating func keep(_ event: ReceivedEvent, of call: CallID) -> Bool {
    guard !incomplete.contains(call), count < Self.limit, bytes + event.size <= Self.byteLimit,
      events[call]?.count ?? 0 < Self.callLimit
    else {
      incomplete.insert(call)
      return false
    }
    events[call, default: []].append(event)
    count += 1
    bytes += event.size
    return true
  }

  /// The call's events, and whether they are complete.
  mutating func take(_ call: CallID) -> (events: [ReceivedEvent], isComplete: Bool) {
    let taken = events.removeValue(forKey: call) ?? []
    count -= taken.count
    bytes -= taken.reduce(0) { $0 + $1.size }
    return (taken, incomplete.remove(call) == nil)
  }
}
