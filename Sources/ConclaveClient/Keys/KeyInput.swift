package import Contract
package import MediaModel

/// The inputs of a `KeyAgreement`: the call's events, in order, and the replies to its requests.
package enum KeyInput: Sendable {
  case rotate(Rotate)
  /// `delivery` is the event's number, which `.acknowledge` repeats.
  case envelope(Envelope, delivery: UInt64)
  case switchKeys(epoch: UInt32)
  case keyRequest(KeyRequest)
  case confirmed(KeysConfirmed)
  /// The call's state. Its epoch, the one last switched to, makes up for a lost `keys.switch`.
  case state(CallState)
  /// Members that changed, in order.
  case members([MemberState])
  /// A guest waits to be admitted, or no longer.
  case knock(GuestKnock)
  case knockOver(UserID)
  /// The connection to the server broke, or is up again.
  case signaling(isConnected: Bool)
  /// Reply of `devices/list`; nil if it failed.
  case directory(Devices?)
  /// Reply of `keys/list`; nil if it failed.
  case list(KeyList?)
  /// The state that `.askState` requested did not arrive.
  case stateFailed
  /// Reply of `/keys`: whether the server accepted this device's envelopes of that epoch; nil if the connection broke before it could say.
  case handedOut(epoch: UInt32, taken: Bool?)
  /// Reply of `keys/confirm`.
  case confirmationSent(epoch: UInt32, taken: Bool)
  /// Reply of `keys/confirmations`; nil if it failed.
  case confirmations(epoch: UInt32, bucket: Int, ConfirmationTags?)
  /// A person trusts this device with the fingerprint that was shown: `pins` already reflects it.
  case trusted(Device)
  /// Devices of one user have spoken for or against each other: `pins` already reflects it.
  case trustChanged
  /// The person sends in spite of exactly these devices, which were shown.
  case sendAnyway([ListedDevice])
}
