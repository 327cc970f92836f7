import Contract
import MediaModel

/// Requests pending until an answer from outside says which users they may reach.
struct Questions {
  struct Waiting {
    var session: SessionID
    var id: String
    var request: Request
    /// Within reach without asking.
    var known: Set<UserID>
    var due: Timestamp
  }

  static let maximumOfDevice = 16

  private var waiting: [QuestionID: Waiting] = [:]
  private var ofSession: [SessionID: Set<QuestionID>] = [:]
  /// In the order of their times: all wait equally long.
  private var order: [QuestionID] = []
  private var first = 0
  private var last: UInt64 = 0

  /// When the first is given up.
  var next: Timestamp? { first < order.count ? waiting[order[first]]?.due : nil }

  func hasRoom(for session: SessionID) -> Bool { (ofSession[session]?.count ?? 0) < Self.maximumOfDevice }

  mutating func add(_ request: Waiting) -> QuestionID {
    last += 1
    let id = QuestionID(rawValue: last)
    waiting[id] = request
    ofSession[request.session, default: []].insert(id)
    order.append(id)
    return id
  }

  /// Takes the request that waits for this answer; nil when it was given up.
  mutating func take(_ id: QuestionID) -> Waiting? {
    guard let request = waiting.removeValue(forKey: id) else { return nil }
    ofSession[request.session]?.remove(id)
    if ofSession[request.session]?.isEmpty == true { ofSession[request.session] = nil }
    settle()
    return request
  }

  mutating func takeDue(at now: Timestamp) -> Waiting? {
    guard let next, next <= now else { return nil }
    return take(order[first])
  }

  /// The connection is gone.
  mutating func drop(_ session: SessionID) {
    for id in ofSession.removeValue(forKey: session) ?? [] { waiting[id] = nil }
    settle()
  }

  /// Keeps the invariant that the first in order waits.
  private mutating func settle() {
    while first < order.count, waiting[order[first]] == nil { first += 1 }
    if first > 64, 2 * first > order.count {
      order.removeFirst(first)
      first = 0
    }
  }
}
