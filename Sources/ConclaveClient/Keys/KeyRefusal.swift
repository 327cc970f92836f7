/// Why a client did not follow the server in a matter of keys (protocol section 5, epochs, rule 8). The call goes on under the keys it has.
public enum KeyRefusal: Error, Sendable, Hashable {
  /// An epoch below one that was already announced.
  case lowerEpoch
  /// The list has an entry of the wrong shape, or one device or participant twice.
  case malformedList
  /// The list is not the one whose hash was announced.
  case listHashMismatch
  /// This device's own entry is absent or altered.
  case notOnList
  /// Mode `ratchet`, but a device of the list before is gone: it could follow the ratchet.
  case ratchetDropsDevice
  /// An envelope is wanted for a device that is not on the list.
  case strangerOnDelivery
  /// An envelope without a signature, by a device that is not on the list or not trusted, or with a signature that does not fit.
  case envelopeNotAuthentic
  /// An envelope that does not open, or holds no 32-byte secret.
  case envelopeNotReadable
}
