import MediaModel

/// A client's session: its handles, and the events that wait while it has no WebSocket.
struct GatewaySession: Sendable {
  struct Poll: Sendable {
    var exchange: UInt64
    /// At most so many events, as a list; nil for one that is not in a list.
    var maximum: Int?
    var due: Instant
  }

  let id: UInt64
  /// The person whose token created it.
  let identity: String?
  /// The WebSocket that gets its events; nil while it polls or waits for a claim.
  var socket: UInt64?
  var poll: Poll?
  private(set) var waiting: [JSONTree] = []
  private(set) var waitingBytes = 0
  var handles: [UInt64] = []
  var lastActive: Instant
  /// Its WebSocket broke: it ends unless it is claimed before.
  var reclaimBy: Instant?
  /// When its next timer fires.
  var timer: Instant?

  init(id: UInt64, identity: String?, socket: UInt64?, now: Instant) {
    self.id = id
    self.identity = identity
    self.socket = socket
    lastActive = now
  }

  func deadline(timeout: Duration) -> Instant {
    let idle = (poll?.due ?? lastActive).advanced(by: timeout)
    return min(idle, reclaimBy ?? idle)
  }

  mutating func keep(_ event: JSONTree) {
    waiting.append(event)
    waitingBytes += event.size
  }

  /// The oldest events that wait.
  mutating func take(_ count: Int) -> [JSONTree] {
    let taken = Array(waiting.prefix(max(0, count)))
    waiting.removeFirst(taken.count)
    waitingBytes -= taken.reduce(0) { $0 + $1.size }
    return taken
  }
}

/// Takes part in a room, or subscribes to one.
struct PluginHandle: Sendable {
  enum Role: Sendable {
    case fresh
    case participant(room: PluginID, id: PluginID)
    case subscriber(RoomSubscription)
    /// It was in a room and is no longer. As in Janus, it cannot join another one.
    case left
  }

  let id: UInt64
  let session: UInt64
  var role = Role.fresh
  /// The request that waits for the media plane.
  var pending: PendingRequest?
  /// The requests that came after it.
  var waiting: [PluginRequest] = []

  var subscription: RoomSubscription? {
    guard case .subscriber(let subscription) = role else { return nil }
    return subscription
  }
}

/// A message to the videoroom that is answered by an event.
struct PluginRequest: Sendable {
  var name: String
  var transaction: String
  var body: JSONObject
  var description: ClientDescription?
  var grant: Grant

  var elements: Elements { Elements(body, of: .room) }
}

/// The `jsep` of a message.
struct ClientDescription: Sendable {
  var isOffer: Bool
  var sdp: String
  var isEncrypted: Bool
}

struct PendingRequest: Sendable {
  enum Step: Sendable {
    case reading(PluginRequest, PublisherWish, joined: JSONObject?)
    case negotiating(PluginRequest, PublisherWish, joined: JSONObject?, offer: MediaOffer)
    /// - event: `attached` or `updated`, without the offer.
    case offering(event: JSONObject)
    case answering
  }
  /// The media plane's result has the same.
  var number: UInt64
  var name: String
  /// nil for an offer that the server makes by itself.
  var transaction: String?
  var step: Step
  /// The first request of a subscriber, which stays outside if it fails.
  var isFirst = false
}
