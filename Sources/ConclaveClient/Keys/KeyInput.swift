package import Contract
package import MediaModel

/// What a `KeyAgreement` hears: the call's key events, in their order, and the replies to what it asked.
package enum KeyInput: Sendable {
  case rotate(Rotate)
  /// `delivery` is the event's own number, which `.acknowledge` names again.
  case envelope(Envelope, delivery: UInt64)
  case switchKeys(epoch: UInt32)
  case keyRequest(KeyRequest)
  /// The epoch of a `call.state`: the one last switched to. Makes up for a lost `keys.switch`.
  case state(epoch: UInt32)
  /// Who is in the call now, as its events say: those who were rung have no number on epoch 1's list.
  case seated([SeatedDevice])
  /// Reply of `devices/list`; empty when it failed.
  case directory([DeviceEntry])
  /// Reply of `keys/list`.
  case list(KeyList)
  /// Reply of `/keys`: whether the server took this device's envelopes of that epoch; nil when the connection broke before it could say.
  case handedOut(epoch: UInt32, taken: Bool?)
  /// A person trusts this device with this fingerprint: `pins` says so already.
  case trusted(Device)
}

/// A device that has joined.
package struct SeatedDevice: Sendable, Hashable {
  package var device: Device
  package var participant: ParticipantNumber
  package var joinId: Base64Bytes

  package init(device: Device, participant: ParticipantNumber, joinId: Base64Bytes) {
    self.device = device
    self.participant = participant
    self.joinId = joinId
  }
}

extension CallState {
  var seats: [SeatedDevice] { members.flatMap(\.seats) }
}

extension MemberState {
  var seats: [SeatedDevice] {
    participants.map {
      SeatedDevice(
        device: Device(user: user, device: $0.device), participant: $0.participant, joinId: $0.joinId)
    }
  }
}
