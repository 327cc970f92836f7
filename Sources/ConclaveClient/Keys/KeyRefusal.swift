/// A dishonest act of the server or of a member (protocol section 5). The call goes on under the keys that this device has.
public enum KeyRefusal: Error, Sendable, Hashable {
  /// The list has an entry of the wrong shape or order, or contains a device, participant, fingerprint or join twice.
  case malformedList
  /// The list is not the one whose hash was announced.
  case listHashMismatch
  /// This device's own entry is absent or altered.
  case notOnList
  /// A device that stays has another number or key, or a join that was over has returned.
  case changedEntry
  /// Mode `ratchet` although a device that left, or only rang, could follow the ratchet, or although no device joined: such an epoch would heal
  /// nothing.
  case unsafeRatchet
  /// An epoch does not follow from those before it: nothing is sent any longer, and the device rejoins once by itself.
  case brokenHistory
  /// An envelope is requested for a device that is not on the list.
  case strangerOnDelivery
  /// An envelope without a signature, by a device that is not on the list, or with a wrong signature.
  case envelopeNotAuthentic
  /// An envelope that does not open, or does not contain a 32-byte secret, or contains 32 zeros.
  case envelopeNotReadable
  /// An envelope for a key that this device has replaced, or for its long-lived key.
  case envelopeForOldKey
  /// The key of an epoch that the others use did not arrive although it was requested three times.
  case keyWithheld
  /// The last fresh secret is older than two rotations: ratchets since then heal nothing.
  case keyTooOld
  /// The server's claim about the others' confirmations is false.
  case confirmationNotTrue
  /// The server gave one of this device's tracks an id that is not its own; nothing is sent on it.
  case foreignTrack
  /// A ring brought a key that is not the caller's, or is too old; it is not used.
  case ringNotTrusted
}
