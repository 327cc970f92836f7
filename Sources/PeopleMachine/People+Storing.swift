package import CallMessages
import Contract
package import MediaModel
import Recording

/// Storing people's state on disk (rule 11), and restoring it after a restart.
extension People {
  /// The stored state that may have changed since changes were last taken.
  package struct Journal {
    /// Registered, renamed or removed.
    var devices: Set<Device> = []
    var mailboxes: Set<Device> = []
    /// Users whose revokes changed.
    var revokes: Set<UserID> = []
    /// Lasting links that were made, opened, closed or ended.
    var links: Set<LinkID> = []
    var reports: [StoredReport] = []
    var recordings: [RecordingFact] = []
    var forgotten: [UserID] = []

    package init() {}

    var isEmpty: Bool {
      devices.isEmpty && mailboxes.isEmpty && revokes.isEmpty && links.isEmpty && reports.isEmpty
        && recordings.isEmpty && forgotten.isEmpty
    }
  }

  /// Everybody is away. Memberships follow once the calls have reported them.
  package init(
    configuration: CallConfiguration, digest: @escaping ([UInt8]) -> [UInt8], restoring stored: Stored, now: Timestamp
  ) {
    self.init(configuration: configuration, incarnation: stored.incarnation, digest: digest)
    self.now = now
    // Far above all numbers of earlier runs, so that each device sees the gap.
    directory = Directory(lastSeq: stored.incarnation.rawValue << 32)
    for device in stored.devices {
      directory.restore(device.device, userName: device.userName, entry: device.entry, push: device.push, nil, now: now)
      directory[device.device]?.seenDay = device.seenDay
      if device.device.user.isGuest { watch(device.device) }
    }
    for (device, mailbox) in stored.mailboxes {
      directory.restore(device, userName: nil, entry: nil, mailbox, now: now)
      watch(device)
    }
    for (user, setting) in stored.presence { presence.restore(setting, of: user, now: now) }
    if !stored.presence.isEmpty { clearSoon() }
    for (user, revokes) in stored.revokes { directory.restore(revokes, of: user) }
    let running = Set(stored.calls.map(\.call.id))
    for link in stored.links { restore(link, running: running) }
    for member in stored.calls.flatMap(\.members) {
      for participant in member.participants {
        let device = Device(user: member.user, device: participant.device)
        directory.restore(device, userName: nil, entry: nil, nil, now: now)
        watch(device)
      }
    }
  }

  /// Returns the changes to the state that survives a restart.
  package mutating func takeChanges() -> [StoreChange] {
    guard !journal.isEmpty || presence.hasChanges else { return [] }
    var changes: [StoreChange] = []
    for device in journal.devices.sorted() { changes.append(storedDevice(device)) }
    for user in journal.revokes.sorted() { changes.append(.revokes(user, directory.revokes(of: user))) }
    for device in journal.mailboxes.sorted() {
      if let change = takeMailbox(device) { changes.append(change) }
    }
    for id in journal.links.sorted() { changes.append(links[id].map(StoreChange.lastingLink) ?? .lastingLinkGone(id)) }
    changes += journal.reports.map(StoreChange.report)
    changes += journal.recordings.map(StoreChange.recording)
    for user in presence.takeChanges() { changes.append(.presence(user, presence.stored(user))) }
    // Last, so that nothing about the user follows it.
    changes += journal.forgotten.map(StoreChange.forgotten)
    journal = Journal()
    return changes
  }

  package var everything: [StoreChange] {
    var changes: [StoreChange] = []
    for device in directory.devices {
      guard let record = directory[device] else { continue }
      if record.entry != nil { changes.append(storedDevice(device)) }
      let mailbox = record.mailbox.stored
      if !mailbox.isEmpty { changes.append(.mailbox(device, mailbox)) }
    }
    for user in directory.usersWithRevokes { changes.append(.revokes(user, directory.revokes(of: user))) }
    return changes + links.all.map(StoreChange.lastingLink) + presence.everything
  }

  private func storedDevice(_ device: Device) -> StoreChange {
    guard let record = directory[device], let entry = record.entry else { return .deviceGone(device) }
    return .device(
      StoredDevice(
        entry: entry, userName: directory.name(of: device.user), push: record.push, seenDay: record.seenDay))
  }

  private mutating func takeMailbox(_ device: Device) -> StoreChange? {
    let wasStored = directory[device]?.mailbox.isStored ?? true
    let stored = directory[device]?.mailbox.stored ?? StoredMailbox(envelopes: [], rung: [])
    directory[device]?.mailbox.isStored = !stored.isEmpty
    return stored.isEmpty && !wasStored ? nil : .mailbox(device, stored)
  }

  /// A user with keys has a new name.
  mutating func noteName(_ identity: Identity) {
    let user = identity.device.user
    guard let name = identity.name, name != directory.name(of: user) else { return }
    for entry in directory.entries(of: user) { journal.devices.insert(Device(user: user, device: entry.device)) }
  }

  /// If the clock was set back meanwhile, the link's life begins now.
  private mutating func restore(_ stored: StoredLastingLink, running: Set<CallID>) {
    var link = stored
    if link.madeAt > now {
      link.expiresAt = now + (link.expiresAt - link.madeAt)
      link.madeAt = now
    }
    if let opening = link.opening, !running.contains(opening.call) { link.opening = nil }
    links.add(link)
  }

  mutating func forget(_ device: Device) {
    endLinks(of: device)
    if directory[device]?.entry != nil { journal.devices.insert(device) }
    if directory[device]?.mailbox.isStored == true { journal.mailboxes.insert(device) }
    directory.forget(device)
  }
}
