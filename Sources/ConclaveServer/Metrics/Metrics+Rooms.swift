import JanusAPI

extension Metrics.Page {
  mutating func add(_ rooms: RoomCounts) {
    gauge("conclave_janus_sessions", "Sessions of clients of rooms.", rooms.sessions)
    gauge("conclave_janus_handles", "Handles of these sessions.", rooms.handles)
    gauge("conclave_janus_rooms", "Rooms.", rooms.rooms)
    gauge("conclave_janus_peers", "PeerConnections of rooms.", rooms.peers)
    counter(
      "conclave_janus_requests_total", "Requests of clients of rooms, by the code of the answer; 0 is success.",
      rooms.counters.requests.sorted { $0.key < $1.key }.map {
        ("request=\"\($0.key.name)\",code=\"\($0.key.code)\"", UInt64($0.value))
      })
    counter(
      "conclave_janus_refused_total", "Requests of clients of rooms that a limit or a secret refused.",
      Refusal.allCases.map { ("reason=\"\($0)\"", UInt64(rooms.counters.refusals[$0, default: 0])) })
    counter("conclave_janus_offers_total", "Offers to subscribers of rooms.", UInt64(rooms.counters.offers))
    counter(
      "conclave_janus_taken_over_total", "Participants of rooms that came back in the place of a lost connection.",
      UInt64(rooms.counters.takenOver))
  }
}
