package import Contract
package import MediaModel
package import Recording

/// One change of the state that survives a restart (rule 11 of protocol section 4). A command's changes belong together: all or none of them
/// may be kept.
package enum StoreChange: Hashable, Sendable {
  /// Voids everything stored about calls, devices, revokes, mailboxes, lasting links and presence: only what follows remains. History stays.
  case reset
  /// Indirect, because each effect has the room of the largest one.
  indirect case call(StoredCall)
  case progress(CallID, StoredProgress)
  /// Replaces the previous epoch, and voids its confirmations.
  case epoch(CallID, StoredEpoch)
  /// A participant's entry on the newest epoch's list. Replaces the earlier entry of its number.
  case entry(CallID, ListEntry)
  /// The number is not on the newest epoch's list any more.
  case entryGone(CallID, ParticipantNumber)
  /// An announced epoch's place in the chain of lists. Links up to its `endOfForgotten` are deleted.
  case link(CallID, EpochLink)
  /// A participant confirmed the newest epoch with this tag.
  case confirmation(CallID, ParticipantNumber, Base64Bytes)
  /// Replaces an earlier word for the same user or link.
  case word(CallID, StoredWord)
  case wordGone(CallID, StoredWord.Subject)
  /// A device that signed a word.
  case signer(CallID, Signer)
  /// Identified by its fingerprint.
  case signerGone(CallID, Base64Bytes)
  case member(CallID, StoredMember)
  /// A forgotten user is no longer a member.
  case memberGone(CallID, UserID)
  /// Never reused, not even after the call's end.
  case number(CallID, ParticipantNumber, StoredNumber)
  case ringEnvelope(CallID, Envelope)
  /// Acknowledged, superseded, or the ring is over.
  case ringEnvelopeOver(CallID, Device)
  /// Everything of the call is deleted except this.
  case ended(StoredEnd)
  case device(StoredDevice)
  case deviceGone(Device)
  /// All revokes of the user's devices.
  case revokes(UserID, [Revoke])
  /// Replaces the record stored for the device; an empty one deletes it.
  case mailbox(Device, StoredMailbox)
  /// nil: nothing is set.
  case presence(UserID, StoredPresence?)
  case lastingLink(StoredLastingLink)
  case lastingLinkGone(LinkID)
  case history(HistoryFact)
  /// For the operator. It may be written twice, and then counts once.
  case report(StoredReport)
  /// A recording. A reset keeps them, as it keeps history.
  case recording(RecordingFact)
  /// Deletes everything stored about the user.
  case forgotten(UserID)
  /// The server runs at this time.
  case running(Timestamp)
}

/// A fact of which history is made (protocol section 8).
package enum HistoryFact: Hashable, Sendable {
  case call(CallID, CallMedia, startedAt: Timestamp)
  /// The user's part in it; `outcome` is nil while open.
  case part(CallID, UserID, name: String?, HistoryEntry.Direction, HistoryEntry.Outcome?)
  /// The user is in the call, on any device, from now on.
  case came(CallID, UserID, at: Timestamp)
  case went(CallID, UserID, at: Timestamp)
  case ended(CallID, at: Timestamp)
}

extension StoreChange: CustomStringConvertible { package var description: String { "change" } }
extension HistoryFact: CustomStringConvertible { package var description: String { "fact" } }
