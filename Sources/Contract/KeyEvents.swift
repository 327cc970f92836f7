package import MediaModel

// Bodies of the events `keys.*` except the envelope (protocol section 5).

package struct Rotate: Codable, Sendable, Hashable {
  package var epoch: UInt32
  package var mode: RotationMode
  package var leader: ParticipantNumber
  /// The `listHash` of the previously announced epoch; 32 zero bytes for epoch 1.
  package var previous: Base64Bytes
  package var listHash: Base64Bytes
  /// Relative to the previous list, for a device that has it.
  package var added: [ListEntry]?
  /// Numbers of the previous list.
  package var removed: [ParticipantNumber]?
  /// The whole list, for a device that is new on it.
  package var list: [ListEntry]?
  /// For the leader: the devices that need an envelope.
  package var deliver: [ListEntry]?
  /// The words that the list needs, for a device that gets the whole list; else those that the previous list did not
  /// need.
  package var admissions: [Admission]?
  /// The devices that signed them and are not on the list.
  package var signers: [Signer]?
  package init(
    epoch: UInt32, mode: RotationMode, leader: ParticipantNumber, previous: Base64Bytes, listHash: Base64Bytes,
    added: [ListEntry]? = nil, removed: [ParticipantNumber]? = nil, list: [ListEntry]? = nil,
    deliver: [ListEntry]? = nil, admissions: [Admission]? = nil, signers: [Signer]? = nil
  ) {
    self.epoch = epoch
    self.mode = mode
    self.leader = leader
    self.previous = previous
    self.listHash = listHash
    self.added = added
    self.removed = removed
    self.list = list
    self.deliver = deliver
    self.admissions = admissions
    self.signers = signers
  }
}

package struct SwitchKeys: Codable, Sendable, Hashable {
  package var epoch: UInt32
  package init(epoch: UInt32) { self.epoch = epoch }
}

package struct KeyRequest: Codable, Sendable, Hashable {
  package var epoch: UInt32
  package var to: ListEntry
  package init(epoch: UInt32, to: ListEntry) {
    self.epoch = epoch
    self.to = to
  }
}

/// Why a device that has an envelope does not open it.
package enum WaitReason: String, Codable, Sendable, CaseIterable {
  /// It does not trust the sender's key. It opens the envelope once its user does.
  case trust
}

/// `participant` has an envelope from this device and does not open it.
package struct KeysWaiting: Codable, Sendable, Hashable {
  package var epoch: UInt32
  package var participant: ParticipantNumber
  package var reason: WaitReason
  package init(epoch: UInt32, participant: ParticipantNumber, reason: WaitReason) {
    self.epoch = epoch
    self.participant = participant
    self.reason = reason
  }
}

/// The confirmations of 64 entries of a list, combined: `who` says whose tags are included, `tag` is their XOR.
package struct ConfirmationBucket: Codable, Sendable, Hashable {
  package var index: Int
  /// 8 bytes, big-endian: entry 64 × index + i is bit 63 − i.
  package var who: Base64Bytes
  /// 16 bytes.
  package var tag: Base64Bytes
  package init(index: Int, who: Base64Bytes, tag: Base64Bytes) {
    self.index = index
    self.who = who
    self.tag = tag
  }
}

/// The buckets that changed since the last event of this epoch.
package struct KeysConfirmed: Codable, Sendable, Hashable {
  package var epoch: UInt32
  package var buckets: [ConfirmationBucket]
  package init(epoch: UInt32, buckets: [ConfirmationBucket]) {
    self.epoch = epoch
    self.buckets = buckets
  }
}

package struct DevicesChanged: Codable, Sendable, Hashable {
  package var user: UserID
  package init(user: UserID) { self.user = user }
}
