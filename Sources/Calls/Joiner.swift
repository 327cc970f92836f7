import Contract
import MediaModel

/// A device that comes into a call, with what it brings.
struct Joiner {
  var device: Device
  var name: String?
  var joinId: Base64Bytes
  /// Only with a joinId of the client's own.
  var joinKey: JoinKey?
  /// The keys that it has now; nil for a device without. It keeps them for its stay (rule 15).
  var keys: DeviceEntry?
  /// A link lets it in.
  var hasLink = false
  /// For its media, made for this join.
  var peer: PeerID

  /// Its place in the epochs; nil for a device without registered keys, or without a join key.
  func seat(number: ParticipantNumber) -> Seat? {
    guard let joinKey, let keys else { return nil }
    return Seat(number: number, device: device, joinId: joinId, joinKey: joinKey, keys: keys)
  }

  var token: JoinToken { JoinToken(device: device, joinId: joinId) }
}
