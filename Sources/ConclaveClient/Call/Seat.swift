import Contract
import MediaModel
import Synchronization

/// The part of a call that a rejoin changes: shared by the call and its client.
final class Seat: Sendable {
  struct Standing {
    var participant: ParticipantNumber
    var iceServers: [Call.ICEServer]

    init(_ joined: Joined) {
      participant = joined.participant
      iceServers = joined.ice.servers.map {
        Call.ICEServer(urls: $0.urls, username: $0.username, credential: $0.credential)
      }
    }
  }

  private let standing: Mutex<Standing>

  init(_ joined: Joined) { standing = Mutex(Standing(joined)) }

  var now: Standing { standing.withLock { $0 } }
  func move(_ joined: Joined) { standing.withLock { $0 = Standing(joined) } }
}
