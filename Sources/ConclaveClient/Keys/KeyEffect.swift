package import Contract
package import MediaModel

/// What a `KeyAgreement` wants done.
package enum KeyEffect: Sendable {
  /// Send it and feed the reply back as `.directory`, `.list` or `.handedOut`; that of `requestKey` is of no interest.
  case request(Request)
  /// ACK (`opened`) or NACK the envelope's event.
  case acknowledge(delivery: UInt64, opened: Bool)
  /// Receive under these keys from now on.
  case install(EpochKeys)
  /// Send under this epoch from now on, video beginning with a key frame.
  case send(epoch: UInt32)
  /// This device lacks the key that the others have switched to: it sends nothing until the next `.send`.
  case stopSending
  /// Forget these keys.
  case retire(epoch: UInt32)
  /// The device was seen for the first time, with this fingerprint: keep it with the app's data.
  case pin(Device, fingerprint: [UInt8])
  /// Once for each device, fingerprint and problem.
  case warn(KeyWarning)
  /// The digits to compare by voice have changed.
  case code(String)
  case refused(KeyRefusal)
}
