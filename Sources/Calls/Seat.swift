import Contract
import MediaModel

/// A joined device that has keys: what epochs are made of.
struct Seat {
  let number: ParticipantNumber
  let device: Device
  let joinId: Base64Bytes
  let joinKey: JoinKey?
  let keys: DeviceEntry
  /// Has a STOMP connection.
  var isConnected = true

  var entry: ListEntry {
    ListEntry(
      user: device.user, device: device.device, participant: number, joinId: joinId, joinKey: joinKey,
      fingerprint: keys.fingerprint, keys: keys.keys)
  }
}
