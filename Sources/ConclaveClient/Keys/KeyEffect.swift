package import Contract
package import MediaModel

/// An action for the owner of a `KeyAgreement`.
package enum KeyEffect: Sendable {
  /// Send it and pass back the reply as `.directory`, `.list`, `.handedOut`, `.confirmationSent` or `.confirmations`; other replies are ignored.
  case request(Request)
  /// Request the call's state, and pass back `.state`, or `.stateFailed`.
  case askState
  /// ACK (`opened`) or NACK the envelope's event.
  case acknowledge(delivery: UInt64, opened: Bool)
  /// Neither: the envelope is of no use any longer.
  case drop(delivery: UInt64)
  /// Receive under these keys from now on.
  case install(EpochKeys)
  /// Send under this key from now on, video beginning with a key frame.
  case send(SendingKey)
  /// Send nothing until the next `.send`.
  case stopSending
  /// Why nothing is sent although there is a call; empty if something is sent.
  case silence([SilenceCause])
  /// Open nothing of this device any longer, in no epoch: it was revoked, or its person has other keys.
  case exclude(fingerprint: [UInt8])
  /// Forget these keys.
  case retire(epoch: UInt32)
  /// The device was seen for the first time, with this fingerprint: keep it with the app's data.
  case pin(Device, fingerprint: [UInt8])
  /// Once for each device, fingerprint and problem.
  case warn(KeyWarning)
  /// The digits to compare by voice have changed.
  case code(String)
  case confirmation(ConfirmationState)
  /// Whether no member's device has signed this user's invitation: the app's service lets people in.
  case letInByService(Bool)
  /// The guests who wait to be admitted.
  case waitingGuests([WaitingGuest])
  /// Some device's tile has changed.
  case tilesChanged
  case refused(KeyRefusal)
  /// Return as a new participant: the history of lists is broken.
  case rejoin
}

/// Why this device sends nothing.
public enum SilenceCause: Sendable, Hashable {
  /// The key that the others use has not arrived.
  case noKey
  /// The call has just begun, and the server does not replace the key that the devices which rang have: "securing the call".
  case securing
  /// These devices may hear, and nobody has verified them (`KeyTrust.verifiedOnly`).
  case unverified([PinnedDevice])
  /// No other device that has the first key has joined: only devices that ring could hear. No cause for concern.
  case alone
  /// These devices may hear, and are not in the call.
  case strangers([ListedDevice])
  /// These devices may hear, and nobody let their users in (`LetIn.nobody`).
  case uninvited([ListedDevice])
  /// These devices have left, and may still hear.
  case departed([ListedDevice])
  /// These devices are revoked, and may hear: this device gives them no key, but a member who ignores the revocation may.
  case revoked([ListedDevice])
  /// These devices have keys other than those seen first, and may hear: this device gives them no key, but a member who saw only the new ones may.
  case changedKeys([ListedDevice])
  /// It stopped twice within a minute: it continues when the person says so (`JoinedCall.sendAnyway`).
  case held
  /// The server's lists do not follow from each other. Rejoining starts over.
  case brokenHistory
}
