import Contract
import MediaModel
import Synchronization

/// This device's stay in a call, which a rejoin replaces; shared by the call and its client.
final class CurrentStay: Sendable {
  struct Stay {
    var participant: ParticipantNumber
    var iceServers: [JoinedCall.ICEServer]

    init(_ joined: Joined) {
      participant = joined.participant
      iceServers = joined.ice.servers.map {
        JoinedCall.ICEServer(urls: $0.urls, username: $0.username, credential: $0.credential)
      }
    }
  }

  private let stay: Mutex<Stay>

  init(_ joined: Joined) { stay = Mutex(Stay(joined)) }

  var now: Stay { stay.withLock { $0 } }
  func begin(_ joined: Joined) { stay.withLock { $0 = Stay(joined) } }
}
