import Contract
import MediaModel

/// The last calls that ended, so that who was in one hears `call.ended` and not `call.not-found`, and a repeated `start` makes no second call.
struct EndedCalls {
  private struct Ended {
    var call: CallID
    var users: Set<UserID>
    var start: JoinToken
    var reply: Joined
  }

  private let capacity: Int
  private var ring: [Ended] = []
  private var oldest = 0
  private var places: [CallID: Int] = [:]
  private var starts: [JoinToken: Int] = [:]

  init(capacity: Int) { self.capacity = max(1, capacity) }

  mutating func add(_ call: CallID, users: Set<UserID>, start: JoinToken, reply: Joined) {
    let ended = Ended(call: call, users: users, start: start, reply: reply)
    let place: Int
    if ring.count < capacity {
      place = ring.count
      ring.append(ended)
    } else {
      place = oldest
      places[ring[place].call] = nil
      if starts[ring[place].start] == place { starts[ring[place].start] = nil }
      ring[place] = ended
      oldest = (oldest + 1) % capacity
    }
    places[call] = place
    starts[start] = place
  }

  mutating func forget(_ user: UserID) {
    for place in ring.indices { ring[place].users.remove(user) }
  }

  func wasMember(_ user: UserID, of call: CallID) -> Bool {
    places[call].map { ring[$0].users.contains(user) } ?? false
  }

  /// The reply to the `start` that made a call which has ended.
  func reply(to start: JoinToken) -> Joined? { starts[start].map { ring[$0].reply } }
}
