import Contract
import MediaModel

/// The stored state that the command at hand may have changed.
struct Journal {
  var calls: Set<CallID> = []
  /// Registered, renamed or gone.
  var devices: Set<Device> = []
  var mailboxes: Set<Device> = []
  /// Users whose revokes changed.
  var revokes: Set<UserID> = []
  var forgotten: [UserID] = []
  /// Changes that can't be derived later: of ended calls and of forgotten members.
  var changes: [StoreChange] = []

  var isEmpty: Bool {
    calls.isEmpty && devices.isEmpty && mailboxes.isEmpty && revokes.isEmpty && forgotten.isEmpty && changes.isEmpty
  }
}

/// The stored state of one call: what differs from it has to be written.
struct CallJournal {
  /// Members that may have changed since.
  var touched: Set<UserID> = []
  var isStored = false
  var progress: StoredProgress?
  var epoch: UInt32?
  /// The newest epoch whose link is stored.
  var link: UInt32?
  var ringEnvelopes: Set<Device> = []
  var members: [UserID: StoredMember] = [:]
  /// Participants whose numbers are stored.
  var numbers: Set<ParticipantNumber> = []
  /// As history has them.
  var parts: [UserID: HistoryFact] = [:]
  /// Users whose stay has begun and not ended.
  var staying: Set<UserID> = []
}
