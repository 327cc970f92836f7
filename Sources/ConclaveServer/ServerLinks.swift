/// The parts that are set after their users were created, because the planes and the signaling server know each other. Nothing happens on either plane before
/// a client has connected, so neither misses the other before it is set.
struct ServerLinks: Sendable {
  let control = SetOnce<ControlPlane>()
  let signaling = SetOnce<Signaling>()
  /// Stays nil without rooms.
  let rooms = SetOnce<RoomPlane>()
  /// Stays nil if calls are not recorded.
  let recordings = SetOnce<CallRecordings>()
  /// Set once the server drains.
  let isDraining = SetOnce<Bool>()

  var unready: String? {
    if isDraining.value != nil { return "the server is draining: it takes no new calls" }
    if signaling.value == nil { return "not every port is open yet" }
    return nil
  }
}
