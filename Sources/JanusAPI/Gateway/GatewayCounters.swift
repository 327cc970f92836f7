/// Counters for the metrics.
package struct GatewayCounters: Sendable, Hashable {
  package struct Request: Sendable, Hashable, Comparable {
    /// One of the API's requests, or `unknown`.
    package var name: String
    /// 0 for success.
    package var code: Int

    package static func < (a: Self, b: Self) -> Bool { (a.name, a.code) < (b.name, b.code) }
  }

  /// Requests of the core by their reply, and of the videoroom by their reply or event.
  package private(set) var requests: [Request: Int] = [:]
  package private(set) var refusals: [Refusal: Int] = [:]
  /// Offers to subscribers.
  package internal(set) var offers = 0
  package internal(set) var takenOver = 0

  private static let names: Set<String> = [
    "info", "ping", "poll", "create", "keepalive", "attach", "destroy", "claim", "detach", "hangup", "message",
    "trickle",
    "room create", "room destroy", "room edit", "room exists", "room list", "room listparticipants", "room allowed",
    "room kick", "room moderate", "room join", "room joinandconfigure", "room configure", "room publish",
    "room unpublish", "room start", "room pause", "room switch", "room subscribe", "room unsubscribe", "room update",
    "room leave",
  ]

  mutating func count(_ name: String, code: Int) {
    requests[Request(name: Self.names.contains(name) ? name : "unknown", code: code), default: 0] += 1
  }

  mutating func refuse(_ refusal: Refusal) { refusals[refusal, default: 0] += 1 }
}

/// A room, for an operator.
package struct RoomSummary: Sendable, Hashable {
  package var id: PluginID
  package var isPreset: Bool
  package var participants: Int
  package var publishers: Int
  package var subscribers: Int
  package var peers: Int
}

extension JanusGateway {
  package var summaries: [RoomSummary] {
    rooms.values.map { room in
      RoomSummary(
        id: room.id, isPreset: room.isPreset, participants: room.participants.count, publishers: room.publisherCount,
        subscribers: room.subscribers.count, peers: room.peers)
    }.sorted { $0.id < $1.id }
  }

  package var sessionCount: Int { sessions.count }
  package var handleCount: Int { handles.count }
  package var roomCount: Int { rooms.count }
  package var peerCount: Int { peers.count }
}
