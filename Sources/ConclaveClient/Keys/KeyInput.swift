package import Contract

/// What a `KeyAgreement` hears: the call's key events, in their order, and the replies to what it asked.
package enum KeyInput: Sendable {
  case rotate(Rotate)
  /// `delivery` is the event's own number, which `.acknowledge` names again.
  case envelope(Envelope, delivery: UInt64)
  case switchKeys(epoch: UInt32)
  case keyRequest(KeyRequest)
  /// The epoch of a `call.state`: the one last switched to. Makes up for a lost `keys.switch`.
  case state(epoch: UInt32)
  /// Reply of `devices/list`; empty when it failed.
  case directory([DeviceEntry])
  /// Reply of `keys/list`.
  case list(KeyList)
  /// Reply of `/keys`: whether the server took this device's envelopes of that epoch; nil when the connection broke before it could say.
  case handedOut(epoch: UInt32, taken: Bool?)
}
