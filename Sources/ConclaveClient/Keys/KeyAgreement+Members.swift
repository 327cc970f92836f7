package import Contract
import MediaModel

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
    if hasOneRung { install(1, into: &effects) }
  }

  // MARK: tiles

  /// Every device that may hear this one, from the moment the list is used until a list without it is used, and those of the state's members that are on no
  /// list yet.
  package func devices(_ members: [MemberState]) -> [ListedDevice] {
    let entries = listed
    let addresses = Set(entries.map(\.address))
    let numbers = Set(entries.map(\.participant))
    let joins = Set(entries.compactMap { $0.joinId?.bytes })
    // A listed device's number or join under another name is no device that cannot hear: it is the listed one.
    let unlisted = members.flatMap(\.joinedDevices).filter {
      !addresses.contains($0.device) && !numbers.contains($0.participant) && !joins.contains($0.joinId)
    }
    return entries.map { listed($0) }
      + unlisted.map { joined in
        ListedDevice(
          user: joined.device.user.text, device: joined.device.device.text, participant: joined.participant,
          fingerprint: [], joinId: joined.joinId, trust: .new, standing: .unlisted, hasConfirmed: false)
      }
  }

  /// A device of the list in use as people are to see it.
  func listed(_ entry: ListEntry) -> ListedDevice {
    let isOwn = entry.address == identity.address
    let confirmation = confirming?.epoch == current ? confirming?.confirmation : nil
    return ListedDevice(
      user: entry.user.text, device: entry.device.text, participant: entry.participant,
      fingerprint: entry.fingerprint.bytes, joinId: entry.joinId?.bytes ?? [],
      trust: isOwn ? .verified : pins.level(of: entry.address, entry.fingerprint.bytes),
      standing: standing(of: entry), hasConfirmed: confirmation?.isConfirmed(entry) ?? false)
  }

  private func standing(of entry: ListEntry) -> ListedDevice.Standing {
    switch watch.suspects[entry.address]?.kind {
    case .stranger: .stranger
    case .departed: .departed
    case nil: entry.participant == 0 ? .rung : .present
    }
  }

  /// Tells of tiles that change, and warns of devices that may hear and are not in the call.
  mutating func tellTiles(now: Instant, into effects: inout [KeyEffect]) {
    guard !watch.suspects.isEmpty || !tiles.isEmpty else { return }
    warnedTiles = warnedTiles.filter { watch.suspects[$0.key]?.kind == $0.value }
    let news = watch.suspects.filter { warnedTiles[$0.key] == nil && watch.warns(of: $0.value, now: now) }
    for (device, suspect) in news.sorted(by: { $0.key < $1.key }) {
      warnedTiles[device] = suspect.kind
      effects.append(.warn(KeyWarning(suspect.kind == .stranger ? .notInCall : .mayStillHear, suspect.entry)))
    }
    let shown = watch.suspects.mapValues(\.kind)
    guard shown != tiles else { return }
    tiles = shown
    effects.append(.tilesChanged)
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
    /// On the list, and never seen in the call as the list says.
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
  /// Its stay in the call, 16 bytes; empty for one that rang.
  public var joinId: [UInt8]
  /// How sure it is that the device is its user's.
  public var trust: TrustLevel
  /// How its place on the list and in the call agree.
  public var standing: Standing
  /// It has proven that it has the key in use: it hears, whoever gave it the key. A listed device that has not may hear as well.
  public var hasConfirmed: Bool
}
