import Contract
import MediaModel

/// Which devices get keys.
public enum KeyTrust: Sendable, Hashable {
  /// A device is trusted when it is first seen, and from then on only with the same keys.
  case firstUse
  /// Only devices that a person has verified get keys, and nothing is sent under a key that another device may hold.
  case verifiedOnly
}

/// Something about a device's keys that a person should know. The call goes on with the others.
public struct KeyWarning: Sendable, Hashable {
  /// What is the matter with it.
  public enum Problem: Sendable, Hashable {
    /// Its keys are not those seen first; it may be another device under its name. It gets no key, and nothing that it sends opens, until it is trusted.
    case changedKey
    /// A user who is known has a device that is not.
    case newDevice
    /// Nobody has verified it, and `KeyTrust.verifiedOnly` is set: it gets no key, and nothing is sent while it is in the call.
    case unverified
    /// The server shows no public keys that belong to its fingerprint.
    case unknownKeys
    /// The key it joined with is not signed by it.
    case joinKeyNotSigned
  }

  /// What is the matter.
  public var problem: Problem
  /// The user whose device it is.
  public var user: String
  /// The device's id.
  public var device: String
  /// The hash over the public keys that it has now.
  public var fingerprint: [UInt8]

  init(_ problem: Problem, _ entry: ListEntry) {
    self.problem = problem
    user = entry.user.text
    device = entry.device.text
    fingerprint = entry.fingerprint.bytes
  }
}
