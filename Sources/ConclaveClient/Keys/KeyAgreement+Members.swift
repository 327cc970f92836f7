package import Contract
package import MediaModel

/// The call's members by the server's word, compared with the devices that may hear.
extension KeyAgreement {
  mutating func see(_ state: CallState, now: Instant, into effects: inout [KeyEffect]) {
    if let minutes = state.policy.rotateMinutes { rotateMinutes = min(max(minutes, 1), 1_440) }
    watch.see(state.members, now: now)
    note(state.members.flatMap(\.joinedDevices), now: now, into: &effects)
  }

  mutating func see(_ member: MemberState, now: Instant, into effects: inout [KeyEffect]) {
    watch.see(member, now: now)
    note(member.joinedDevices, now: now, into: &effects)
  }

  /// The first device with a number keeps it.
  private mutating func note(_ devices: [JoinedDevice], now: Instant, into effects: inout [KeyEffect]) {
    let first = epochs[1]?.list
    var hasOneRung = false
    for joined in devices {
      guard current ?? 1 == 1, joined.participant > 0, joinedDevices[joined.participant] == nil,
        joined.joinId.count == 16
      else {
        continue
      }
      joinedDevices[joined.participant] = joined
      if first?[joined.device]?.participant == 0 { hasOneRung = true }
    }
    guard current == 1 || newest == 1 || newest == 0 else { return joinedDevices = [:] }
    securing.joined(joinedDevices.count, now: now)
    if hasOneRung { install(1, into: &effects) }
  }

  // MARK: tiles

  /// The standing that a listed device's tile shows.
  package func standing(of entry: ListEntry, now: Instant) -> ListedDevice.Standing {
    switch watch.standing(of: entry.participant, now: now) {
    case .stranger: .stranger
    case .departed: .departed
    case nil: entry.participant == 0 ? .rung : .present
    }
  }

  /// Warns of devices that may hear and are not in the call, and of tiles that change.
  mutating func tellTiles(now: Instant, into effects: inout [KeyEffect]) {
    var shown: Set<TileMark> = []
    for (number, suspect) in watch.suspects {
      guard let kind = watch.standing(of: number, now: now) else { continue }
      shown.insert(TileMark(participant: number, isStranger: kind == .stranger))
      guard !tiles.contains(TileMark(participant: number, isStranger: kind == .stranger)) else { continue }
      effects.append(.warn(KeyWarning(kind == .stranger ? .notInCall : .mayStillHear, suspect.entry)))
    }
    guard shown != tiles else { return }
    tiles = shown
    effects.append(.tilesChanged)
  }

  struct TileMark: Hashable, Sendable {
    var participant: ParticipantNumber
    var isStranger: Bool
  }
}

/// A device that may hear this one, or is in the call: the content of a tile.
public struct ListedDevice: Sendable, Hashable {
  /// How the device's place on the list and in the call agree.
  public enum Standing: Sendable, Hashable {
    /// On the list and in the call.
    case present
    /// It rang, and may hear the first seconds.
    case rung
    /// On the list, but not in the call by the server's word.
    case stranger
    /// It has left, and may still hear.
    case departed
    /// In the call, and on no list yet: it can't hear this device.
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
  /// How sure it is that the device is its user's.
  public var trust: TrustLevel
  /// How its place on the list and in the call agree.
  public var standing: Standing
}
