package import Contract
package import MediaModel

/// Everything that survives a restart, as read from the disk.
package struct Stored: Hashable, Sendable {
  package struct CallRecord: Hashable, Sendable {
    package var call: StoredCall
    package var progress: StoredProgress
    package var epoch: StoredEpoch
    /// The participants on its list, by their numbers.
    package var entries: [ListEntry]
    package var members: [StoredMember]
    package var ringEnvelopes: [Envelope]
    /// The last announced epochs, in order.
    package var epochLinks: [EpochLink]
    /// The tags for the newest epoch.
    package var confirmations: [ParticipantNumber: Base64Bytes]
    /// The words by which people joined, and the devices that signed them.
    package var words: [StoredWord]
    package var signers: [Signer]

    package init(
      call: StoredCall, progress: StoredProgress, epoch: StoredEpoch, entries: [ListEntry], members: [StoredMember],
      ringEnvelopes: [Envelope], epochLinks: [EpochLink], confirmations: [ParticipantNumber: Base64Bytes],
      words: [StoredWord], signers: [Signer]
    ) {
      self.call = call
      self.progress = progress
      self.epoch = epoch
      self.entries = entries
      self.members = members
      self.ringEnvelopes = ringEnvelopes
      self.epochLinks = epochLinks
      self.confirmations = confirmations
      self.words = words
      self.signers = signers
    }
  }

  /// How often the server had started before.
  package var boots: UInt32
  /// When the server is last known to have run; nil if that was not stored yet.
  package var ranUntil: Timestamp?
  package var calls: [CallRecord] = []
  package var devices: [StoredDevice] = []
  package var mailboxes: [Device: StoredMailbox] = [:]
  /// The calls that ended first come first.
  package var ended: [StoredEnd] = []
  package var numbers: [CallID: [ParticipantNumber: StoredNumber]] = [:]
  package var presence: [UserID: StoredPresence] = [:]
  package var revokes: [UserID: [Revoke]] = [:]
  /// In the order in which they were made.
  package var links: [StoredLastingLink] = []
  /// All calls that ended in the last 24 hours, and when: their ids are not reused.
  package var endedIDs: [CallID: Timestamp] = [:]

  package init(boots: UInt32 = 0) { self.boots = boots }

  /// The run that begins with this state. A server without others counts its starts.
  package var incarnation: Incarnation { Incarnation(boots) }

  /// The token of the start that loaded this.
  package var token: FencingToken { FencingToken(number: boots + 1) }
}

/// A device's public keys.
package struct StoredDevice: Hashable, Sendable, Codable {
  package var entry: DeviceEntry
  /// The user's name, as others last saw it.
  package var userName: String?
  package var push: PushSubscription?
  /// The beginning of the day on which it was last connected; nil if that was not stored yet.
  package var seenDay: Timestamp?

  package init(entry: DeviceEntry, userName: String? = nil, push: PushSubscription? = nil, seenDay: Timestamp? = nil) {
    self.entry = entry
    self.userName = userName
    self.push = push
    self.seenDay = seenDay
  }

  package var device: Device { Device(user: entry.user, device: entry.device) }
}

/// The present or past holder of a participant number.
package struct StoredNumber: Hashable, Sendable {
  /// The maximum of entries kept per call; the oldest are dropped first.
  package static let capacity: ParticipantNumber = 4_096

  package var device: Device
  /// The join's id; nil if the request had none, so that it cannot be repeated.
  package var joinId: Base64Bytes?
  /// The kind of request.
  package var cameBy: String?

  package init(device: Device, joinId: Base64Bytes? = nil, cameBy: String? = nil) {
    self.device = device
    self.joinId = joinId
    self.cameBy = cameBy
  }
}

/// A user's own presence setting.
package struct StoredPresence: Hashable, Sendable, Codable {
  package var state: SetPresence.State
  package var role: String?

  package init(state: SetPresence.State, role: String? = nil) {
    self.state = state
    self.role = role
  }
}

/// Envelopes and rings that a device has not received or not acknowledged, and must not lose.
package struct StoredMailbox: Hashable, Sendable, Codable {
  package struct Held: Hashable, Sendable, Codable {
    package var call: CallID
    package var at: Timestamp
    /// 0: not written yet. A repeated event keeps its number (protocol section 3).
    package var seq: UInt64
    package var envelope: Envelope

    package init(call: CallID, at: Timestamp, seq: UInt64, envelope: Envelope) {
      self.call = call
      self.at = at
      self.seq = seq
      self.envelope = envelope
    }
  }

  package var envelopes: [Held]
  /// The calls that ring on it.
  package var rung: [CallID]

  package init(envelopes: [Held], rung: [CallID]) {
    self.envelopes = envelopes
    self.rung = rung
  }

  package var isEmpty: Bool { envelopes.isEmpty && rung.isEmpty }
}

/// The record of a call that has ended: for `call.ended`, reports, and a repeated `start`.
package struct StoredEnd: Hashable, Sendable, Codable {
  package var call: CallID
  package var endedAt: Timestamp
  package var end: Ended
  package var users: [UserID]
  /// nil, like the other fields about it, if the initiator is forgotten.
  package var starter: Device?
  package var joinId: Base64Bytes?
  /// The reply to `start`; without `ice`.
  package var reply: Joined?

  package init(
    call: CallID, endedAt: Timestamp, end: Ended, users: [UserID], starter: Device? = nil, joinId: Base64Bytes? = nil,
    reply: Joined? = nil
  ) {
    self.call = call
    self.endedAt = endedAt
    self.end = end
    self.users = users
    self.starter = starter
    self.joinId = joinId
    self.reply = reply
  }

  /// Removes everything that names the user.
  package mutating func forget(_ user: UserID) {
    users.removeAll { $0 == user }
    if end.by == user { end.by = nil }
    reply?.call.members.removeAll { $0.user == user }
    reply?.results?[user] = nil
    if starter?.user == user || reply?.call.initiator == user { forgetStart() }
  }

  package mutating func forgetStart() {
    starter = nil
    joinId = nil
    reply = nil
  }
}

extension StoredDevice: CustomStringConvertible { package var description: String { "device" } }
extension StoredNumber: CustomStringConvertible { package var description: String { "number" } }
extension StoredPresence: CustomStringConvertible { package var description: String { "presence" } }
extension StoredMailbox: CustomStringConvertible { package var description: String { "mailbox" } }
extension StoredEnd: CustomStringConvertible { package var description: String { "ended call" } }
