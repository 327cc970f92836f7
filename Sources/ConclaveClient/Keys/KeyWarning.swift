import Contract
import MediaModel

/// Which devices get keys.
public enum KeyTrust: Sendable, Hashable {
  /// A device is trusted when it is first seen, and from then on only with the same keys.
  case firstUse
  /// Only devices that a person has verified, or for which a verified device of the same user vouches, get keys, and nothing is sent under a key that
  /// another device may hold.
  case verifiedOnly
}

/// Something about a device's keys that a person should know. The call goes on with the others.
public struct KeyWarning: Sendable, Hashable {
  /// A problem with a device.
  public enum Problem: Sendable, Hashable {
    /// Its keys are not those seen first, so it may be another device under its name. This device gives it no key, opens nothing that it sends, and
    /// sends nothing while it is on the list, until the person decides: others in the call may let it hear.
    case changedKey
    /// A known user has an unknown device.
    case newDevice
    /// It is not verified, and `KeyTrust.verifiedOnly` is set: this device gives it no key, and nothing is sent while it is in the call.
    case unverified
    /// The server shows no public keys that match its fingerprint.
    case unknownKeys
    /// The key with which it joined is not signed by it, or of an unknown kind: this device gives it no key.
    case joinKeyNotSigned
    /// The server shows an older join key of it than before: this device gives it no key.
    case oldJoinKey
    /// A verified device of its user, or the device itself, declared that it must not be trusted: this device gives it no key, opens nothing that it sends,
    /// and sends nothing while it is on the list, until the person decides. Others, who ignore the revocation, may let it hear.
    case revoked
    /// A device that is vouched for speaks against it although it is verified: these devices disagree.
    case disputed
    /// It is on the list of devices that may hear, but not in the call.
    case notInCall
    /// It is on the list of devices that may hear, but no member's signed word and no link let its user in: this device gives it no key.
    case uninvited
    /// It has left, but is still on the list of devices that may hear.
    case mayStillHear
    /// It does not share the key that the others have.
    case otherKey
  }

  /// The problem to show.
  public var problem: Problem
  /// The user whose device it is.
  public var user: String
  /// The device's id.
  public var device: String
  /// The hash over the public keys that it has now.
  public var fingerprint: [UInt8]

  init(_ problem: Problem, _ entry: ListEntry) {
    self.init(problem, user: entry.user.text, device: entry.device.text, fingerprint: entry.fingerprint.bytes)
  }

  init(_ problem: Problem, user: String, device: String, fingerprint: [UInt8]) {
    self.problem = problem
    self.user = user
    self.device = device
    self.fingerprint = fingerprint
  }
}
