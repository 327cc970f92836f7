import CallMessages
import Contract
import MediaModel

/// A joined device that has keys, its own and those of this join: the elements of an epoch.
struct KeyedDevice {
  let number: ParticipantNumber
  let device: Device
  let joinId: Base64Bytes
  /// The join key of generation 0.
  let joinKey: JoinKey
  let keys: DeviceEntry
  /// The newest generation of the join key, if there is a later one.
  var refresh: JoinKey?
  /// Has a STOMP connection.
  var isConnected = true

  var entry: ListEntry {
    ListEntry(
      user: device.user, device: device.device, participant: number, joinId: joinId, joinKey: joinKey,
      fingerprint: keys.fingerprint, keys: keys.keys)
  }
}
