import CallMessages
import Contract
import MediaModel

/// The stored state of one call: whatever differs from it has to be written.
struct CallJournal {
  /// Members that may have changed since.
  var touched: Set<UserID> = []
  /// Users who were not rung and whose part is not stored yet.
  var silenced: Set<UserID> = []
  var isStored = false
  var progress: StoredProgress?
  var epoch: UInt32?
  /// The participants on its list.
  var entries: [ParticipantNumber: ListEntry] = [:]
  /// The newest epoch whose link is stored.
  var link: UInt32?
  var ringEnvelopes: Set<Device> = []
  var members: [UserID: StoredMember] = [:]
  /// Participants whose numbers are stored.
  var numbers: Set<ParticipantNumber> = []
  /// As stored in history.
  var parts: [UserID: HistoryFact] = [:]
  /// Users whose stay has begun and not ended.
  var staying: Set<UserID> = []
}
