package import MediaModel

/// The settings of the rooms.
package struct GatewayConfiguration: Sendable {
  /// This run of the server, for the ids of peers.
  package var incarnation: Incarnation
  /// Requests need no secret and no token.
  package var isOpen: Bool
  /// For `create`, and to list private rooms.
  package var adminKey: String?
  /// Everybody who may attach a handle may create rooms.
  package var anyoneCreates: Bool
  package var ids: PluginIDKind
  /// A session ends after this time without a request.
  package var sessionTimeout: Duration
  /// The time in which a session whose connection broke can be claimed; zero: it ends at once.
  package var reclaimTimeout: Duration
  /// A client's room ends after this time without anybody in it; nil: it stays.
  package var emptyTimeout: Duration?
  /// A long poll is answered after this time at the latest.
  package var pollTimeout: Duration = .seconds(30)
  /// An offer must be answered within it.
  package var answerTimeout: Duration = .seconds(30)
  package var limits: GatewayLimits
  /// Rooms that last as long as the server: what `create` would be asked for.
  package var rooms: [JSONObject]
  /// For `info`.
  package var version: String
  package var hasTCP: Bool

  package init(
    incarnation: Incarnation = Incarnation(0), isOpen: Bool = false, adminKey: String? = nil,
    anyoneCreates: Bool = false, ids: PluginIDKind = .numbers,
    sessionTimeout: Duration = .seconds(60), reclaimTimeout: Duration = .seconds(20),
    emptyTimeout: Duration? = .seconds(600), limits: GatewayLimits = GatewayLimits(), rooms: [JSONObject] = [],
    version: String = "", hasTCP: Bool = true
  ) {
    self.incarnation = incarnation
    self.isOpen = isOpen
    self.adminKey = adminKey
    self.anyoneCreates = anyoneCreates
    self.ids = ids
    self.sessionTimeout = sessionTimeout
    self.reclaimTimeout = reclaimTimeout
    self.emptyTimeout = emptyTimeout
    self.limits = limits
    self.rooms = rooms
    self.version = version
    self.hasTCP = hasTCP
  }
}

package struct GatewayLimits: Sendable, Hashable {
  package var sessions = 20_000
  package var sessionsOfConnection = 64
  package var handlesOfSession = 1_000
  package var rooms = 10_000
  package var participantsOfRoom = 5_000
  /// PeerConnections of a room, and of all rooms.
  package var peersOfRoom = 5_000
  package var peers = 20_000
  package var linesOfHandle = 64
  package var streamsOfPublisher = 16
  /// Requests of a handle that wait for the one before them.
  package var requestsOfHandle = 32
  /// Events that wait for a poll or a claim, and about their bytes.
  package var waitingEvents = 1_000
  package var waitingBytes = 1 << 20
  package var displayBytes = 128
  package var descriptionBytes = 256
  package var metadataBytes = 4_096
  package var descriptionTextBytes = 65_536
  package var transactionBytes = 256
  /// Members of an object, and elements of a list, in a request.
  package var width = 256
  package var allowedTokens = 256

  package init() {}
}

/// Why something was refused, for the metrics.
package enum Refusal: String, Sendable, Hashable, CaseIterable {
  case unauthorized, sessions, handles, requests, rooms, participants, publishers, peers, lines, streams, tooLong,
    waitingEvents
}
