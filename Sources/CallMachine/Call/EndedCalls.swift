import CallMessages
import Contract
import MediaModel

/// The calls that ended last, so that a former member gets `call.ended` and not `call.not-found`, and a repeated `start` makes no second call.
struct EndedCalls {
  private struct Ended {
    var call: CallID
    /// `call.ended`.
    var end: EventMessage
    var users: Set<UserID>
    var numbers: ParticipantNumbers
    var endedAt: Timestamp
    /// nil if the initiator is forgotten.
    var start: JoinToken?
    var reply: Joined?
  }

  private let capacity: Int
  private var ring: [Ended] = []
  private var oldest = 0
  private var places: [CallID: Int] = [:]
  private var starts: [JoinToken: Int] = [:]
  private var known = KnownCalls()

  init(capacity: Int) { self.capacity = max(1, capacity) }

  mutating func add(_ call: Call, end: EventMessage, reply: Joined) {
    let start = call.start.token
    add(
      Ended(
        call: call.id, end: end, users: Set(call.members.map(\.user)), numbers: call.numbers, endedAt: end.at,
        start: start, reply: reply))
    know(call.id, at: end.at, now: end.at)
  }

  /// A call that ended before the restart.
  mutating func restore(_ stored: StoredEnd, numbers: ParticipantNumbers) {
    var start: JoinToken?
    if let starter = stored.starter, let joinId = stored.joinId { start = JoinToken(device: starter, joinId: joinId) }
    add(
      Ended(
        call: stored.call, end: EventMessage(at: stored.endedAt, call: stored.call, body: .ended(stored.end)),
        users: Set(stored.users), numbers: numbers, endedAt: stored.endedAt, start: start, reply: stored.reply))
  }

  private mutating func add(_ ended: Ended) {
    let place: Int
    if ring.count < capacity {
      place = ring.count
      ring.append(ended)
    } else {
      place = oldest
      places[ring[place].call] = nil
      if let start = ring[place].start, starts[start] == place { starts[start] = nil }
      ring[place] = ended
      oldest = (oldest + 1) % capacity
    }
    places[ended.call] = place
    if let start = ended.start { starts[start] = place }
  }

  func contains(_ call: CallID) -> Bool { places[call] != nil }

  /// `call.ended`, for a former member.
  func end(of call: CallID, for user: UserID) -> EventMessage? {
    places[call].flatMap { ring[$0].users.contains(user) ? ring[$0].end : nil }
  }

  /// Removes everything about the user.
  mutating func forget(_ user: UserID) {
    for place in ring.indices where ring[place].users.remove(user) != nil {
      if let start = ring[place].start, start.device.user == user { starts[start] = nil }
      ring[place].reply?.call.members.removeAll { $0.user == user }
    }
  }

  func wasMember(_ user: UserID, of call: CallID) -> Bool {
    places[call].map { ring[$0].users.contains(user) } ?? false
  }

  /// Its `call.ended`, for the operator.
  func event(of call: CallID) -> EventMessage? { places[call].map { ring[$0].end } }

  /// When the call ended; nil if unknown.
  func end(of call: CallID) -> Timestamp? { places[call].map { ring[$0].endedAt } }

  /// The device that had the participant number.
  func device(of number: ParticipantNumber, in call: CallID) -> Device? {
    places[call].flatMap { ring[$0].numbers[number] }
  }

  /// The id belongs, or in the last day belonged, to a call that has ended.
  func isKnown(_ call: CallID) -> Bool { contains(call) || known.contains(call) }

  /// More calls are known by id than are kept.
  mutating func know(_ call: CallID, at: Timestamp, now: Timestamp) { known.add(call, at: at, now: now) }

  /// The reply to the `start` of a call that has ended.
  func reply(to start: JoinToken) -> Joined? { starts[start].flatMap { ring[$0].reply } }
}

/// The ids of ended calls, for a day: clients choose ids, and an envelope bound to one must never fit a second call.
struct KnownCalls {
  static let lifetime = Duration.seconds(86_400)
  /// Above it the oldest are forgotten.
  static let capacity = 1 << 20

  private var ids: Set<UInt128> = []
  private var order: [(id: UInt128, at: Timestamp)] = []
  /// The index of the oldest id in `order`; earlier entries are unused.
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
