import CallMessages
import Contract
import MediaModel

/// Requests that wait until an answer from outside says which users they may reach.
struct Questions {
  struct Waiting {
    var session: SessionID
    var id: String
    var request: Asking
    /// Within reach without asking.
    var known: Set<UserID>
    var due: Timestamp
  }

  /// The request that waits.
  enum Asking {
    case people(PeopleRequest)
    case recordings(RecordingsRequest)
    case calls(CallsRequest)
  }

  static let maximumOfDevice = 16

  private var waiting: [QuestionID: Waiting] = [:]
  private var ofSession: [SessionID: Set<QuestionID>] = [:]
  /// In the order of their times: all wait equally long.
  private var order: [QuestionID] = []
  private var first = 0
  private let incarnation: Incarnation
  private var last: UInt64 = 0

  init(of incarnation: Incarnation) { self.incarnation = incarnation }

  /// When the first one is abandoned.
  var next: Timestamp? { first < order.count ? waiting[order[first]]?.due : nil }

  /// The session whose request waits for this answer.
  func session(of id: QuestionID) -> SessionID? { waiting[id]?.session }

  func hasRoom(for session: SessionID) -> Bool { (ofSession[session]?.count ?? 0) < Self.maximumOfDevice }

  mutating func add(_ request: Waiting) -> QuestionID {
    last &+= 1
    let id = QuestionID(last, of: incarnation)
    waiting[id] = request
    ofSession[request.session, default: []].insert(id)
    order.append(id)
    return id
  }

  /// Removes and returns the request that waits for this answer; nil if it was abandoned.
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

  /// Keeps the invariant that the first in order is still waiting.
  private mutating func settle() {
    while first < order.count, waiting[order[first]] == nil { first += 1 }
    if first > 64, 2 * first > order.count {
      order.removeFirst(first)
      first = 0
    }
  }
}

/// The users that a request may reach. A user out of reach is treated as offline (protocol section 7).
enum Reach {
  case everybody
  case only(Set<UserID>)

  func includes(_ user: UserID) -> Bool {
    switch self {
    case .everybody: true
    case .only(let users): users.contains(user)
    }
  }
}
