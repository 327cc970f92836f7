package import MediaModel

// What the events `keys.*` say, the envelope aside (protocol section 5).

package struct Rotate: Codable, Sendable, Hashable {
  package var epoch: UInt32
  package var mode: RotationMode
  package var leader: ParticipantNumber
  package var listHash: Base64Bytes
  /// Against the list before, for a device that has it.
  package var added: [ListEntry]?
  package var removed: [ListEntry]?
  /// The whole list, for a device that is new on it.
  package var list: [ListEntry]?
  /// For the leader: who needs an envelope.
  package var deliver: [ListEntry]?
  package init(
    epoch: UInt32, mode: RotationMode, leader: ParticipantNumber, listHash: Base64Bytes, added: [ListEntry]? = nil,
    removed: [ListEntry]? = nil, list: [ListEntry]? = nil, deliver: [ListEntry]? = nil
  ) {
    self.epoch = epoch
    self.mode = mode
    self.leader = leader
    self.listHash = listHash
    self.added = added
    self.removed = removed
    self.list = list
    self.deliver = deliver
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

package struct DevicesChanged: Codable, Sendable, Hashable {
  package var user: UserID
  package init(user: UserID) { self.user = user }
}
