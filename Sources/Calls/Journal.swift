import Contract
import MediaModel

/// What the command at hand may have changed of what is stored.
struct Journal {
  var calls: Set<CallID> = []
  /// Registered, renamed or gone.
  var devices: Set<Device> = []
  var mailboxes: Set<Device> = []
  /// Whose revokes changed.
  var revokes: Set<UserID> = []
  var forgotten: [UserID] = []
  /// Of calls that are gone since.
  var changes: [StoreChange] = []

  var isEmpty: Bool {
    calls.isEmpty && devices.isEmpty && mailboxes.isEmpty && revokes.isEmpty && forgotten.isEmpty && changes.isEmpty
  }
}

/// What is stored of one call: what differs from it has to be written.
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
  /// Whose stay has begun and not ended.
  var staying: Set<UserID> = []
}
