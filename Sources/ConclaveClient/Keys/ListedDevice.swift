import Contract
import MediaModel

/// A device that may hear this one, or is in the call: the content of a tile.
public struct ListedDevice: Sendable, Hashable {
  /// How the device's place on the list agrees with its place in the call.
  public enum Standing: Sendable, Hashable {
    /// On the list and in the call.
    case present
    /// It rang, and may hear the first seconds.
    case rung
    /// On the list, but never seen in the call as the list says.
    case stranger
    /// It has left, but may still hear.
    case departed
    /// In the call, but on no list yet: it cannot hear this device.
    case unlisted
  }

  /// The user whose device it is. Show it where a name could mislead.
  public var user: String
  /// The device's id.
  public var device: String
  /// Its number in the call; 0 for one that rang.
  public var participant: UInt32
  /// The hash over its public keys; empty for a device that is not on the list.
  public var fingerprint: [UInt8]
  /// Its stay in the call, 16 bytes; empty for one that rang.
  public var joinId: [UInt8]
  /// How certain it is that the device is its user's.
  public var trust: TrustLevel
  /// How its place on the list agrees with its place in the call.
  public var standing: Standing
  /// How its user was let in; nil while this device has no signed invitation by which to judge (`CallSnapshot.isLetInByService`), and for a device on no list.
  public var letIn: LetIn?
  /// It has proven that it has the key in use: it hears, whoever gave it the key. A listed device that has not proven it may
  /// hear as well.
  public var hasConfirmed: Bool

  init(
    user: String, device: String, participant: UInt32, fingerprint: [UInt8], joinId: [UInt8], trust: TrustLevel,
    standing: Standing, letIn: LetIn?, hasConfirmed: Bool
  ) {
    self.user = user
    self.device = device
    self.participant = participant
    self.fingerprint = fingerprint
    self.joinId = joinId
    self.trust = trust
    self.standing = standing
    self.letIn = letIn
    self.hasConfirmed = hasConfirmed
  }

  /// A device of the list in use, which is the list of `epoch`.
  init(
    _ entry: ListEntry, watch: RosterWatch, known: KnownDevices, lettingIn: LettingIn, confirmations: Confirmations,
    epoch: UInt32?
  ) {
    let standing: Standing =
      switch watch.suspects[entry.address]?.kind {
      case .stranger: .stranger
      case .departed: .departed
      case .uninvited: .present
      case nil: entry.participant == 0 ? .rung : .present
      }
    self.init(
      user: entry.user.text, device: entry.device.text, participant: entry.participant,
      fingerprint: entry.fingerprint.bytes, joinId: entry.joinId?.bytes ?? [],
      trust: entry.address == known.own.address
        ? .verified : known.pins.level(of: entry.address, entry.fingerprint.bytes),
      standing: standing, letIn: entry.participant > 0 ? lettingIn.origin(of: entry) : nil,
      hasConfirmed: confirmations.isConfirmed(entry, in: epoch))
  }

  /// A participant that is on no list yet.
  init(unlisted joined: JoinedDevice) {
    self.init(
      user: joined.device.user.text, device: joined.device.device.text, participant: joined.participant,
      fingerprint: [], joinId: joined.joinId, trust: .new, standing: .unlisted, letIn: nil, hasConfirmed: false)
  }
}
