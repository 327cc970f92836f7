import CallMessages
import Contract
import MediaModel

/// A recording of a call: who agreed to what, and under which keys frames may therefore be stored (protocol section 13.7).
struct CallRecording {
  /// A participant's answer.
  struct Consent {
    let peer: PeerID
    /// The media that it agrees to, each with the newest epoch that was announced then: keys of later epochs may be exported.
    var media: [RecordedMedium: UInt32] = [:]
    /// The tracks whose keys were exported, for the newest epochs.
    var exports: [UInt32: Set<UInt8>] = [:]
    /// When it changed, the last times.
    var changes: [Timestamp] = []
    /// As the media plane knows the participant; nil: not at all.
    var told: RecordedPeer?
  }

  /// Changes of a participant's consent within a minute.
  static let maximumChanges = 10

  let statement: RecordingStatement
  let since: Timestamp
  private(set) var consents: [ParticipantNumber: Consent] = [:]
  private(set) var running: RecordingRuns?
  /// Participants of which other frames may be stored than the media plane knows.
  private var changed: Set<ParticipantNumber> = []
  /// The newest epoch when the media plane was last told.
  private var epoch: UInt32 = 0

  init(_ statement: RecordingStatement, since: Timestamp) {
    self.statement = statement
    self.since = since
  }

  var id: RecordingID { statement.id }
  var starter: Device { statement.by }

  /// The participants who agreed to something.
  var agreed: [ParticipantNumber] { consents.filter { !$0.value.media.isEmpty }.keys.sorted() }

  var state: CallRecordingState {
    CallRecordingState(
      statement: statement, since: since,
      consents: consents.keys.sorted().map { CallRecordingState.Consent(participant: $0, media: media(of: $0)) },
      running: running)
  }

  /// In the order of their names in the statement.
  func media(of participant: ParticipantNumber) -> [RecordedMedium] {
    let agreed = consents[participant]?.media ?? [:]
    return RecordedMedium.allCases.filter { agreed[$0] != nil }
  }

  /// - Parameters:
  ///   - newest: the newest epoch that was announced.
  /// - Returns: whether that is another answer than before.
  /// - Throws: `rate.limited`.
  mutating func consent(
    _ participant: ParticipantNumber, _ peer: PeerID, to media: Set<RecordedMedium>, newest: UInt32, now: Timestamp
  ) throws(RequestError) -> Bool {
    var consent = consents[participant] ?? Consent(peer: peer)
    guard consents[participant] == nil || Set(consent.media.keys) != media else { return false }
    consent.changes.removeAll { $0 + .seconds(60) <= now || $0 > now }
    guard consent.changes.count < Self.maximumChanges else {
      throw RequestError(
        .rateLimited, "consent changes \(Self.maximumChanges) times a minute at most", retryAfterMs: 60_000)
    }
    consent.changes.append(now)
    consent.media = Dictionary(uniqueKeysWithValues: media.map { ($0, consent.media[$0] ?? newest) })
    consents[participant] = consent
    changed.insert(participant)
    return true
  }

  /// The stay is over.
  /// - Returns: its peer, if the media plane knows of it.
  mutating func forget(_ participant: ParticipantNumber) -> PeerID? {
    changed.remove(participant)
    return consents.removeValue(forKey: participant)?.told?.peer
  }

  /// Whether the participant agreed to the medium, before the epoch was announced.
  func covers(_ medium: RecordedMedium, of participant: ParticipantNumber, in epoch: UInt32) -> Bool {
    consents[participant]?.media[medium].map { epoch > $0 } ?? false
  }

  /// - Returns: false for keys that were all exported before.
  mutating func export(_ keys: ExportTrackKeys, by participant: ParticipantNumber) -> Bool {
    let known = consents[participant]?.exports[keys.epoch] ?? []
    guard !known.isSuperset(of: keys.tracks) else { return false }
    consents[participant]?.exports[keys.epoch] = known.union(keys.tracks)
    changed.insert(participant)
    return true
  }

  /// The starter's word for an epoch.
  /// - Returns: nil if it gave one for this epoch, or a later one, before.
  mutating func run(_ keys: ExportTrackKeys, by participant: ParticipantNumber) -> RecordingRuns? {
    guard running.map({ $0.epoch < keys.epoch }) ?? true else { return nil }
    let word = RecordingRuns(keys, by: participant)
    running = word
    return word
  }

  /// The participant sends another track.
  mutating func tracksChanged(of participant: ParticipantNumber) {
    if consents[participant]?.media.isEmpty == false { changed.insert(participant) }
  }

  // MARK: what may be stored

  /// Whether `takeKept` may have something.
  func hasNews(newest: UInt32) -> Bool { newest != epoch || !changed.isEmpty }

  /// The participants of which the media plane must know something else than before, and whether it knows of them.
  /// - Parameters:
  ///   - newest: the newest epoch that was announced.
  ///   - sources: of all tracks that a participant has ever sent.
  mutating func takeKept(
    in call: CallID, newest: UInt32, sources: (ParticipantNumber) -> [UInt8: TrackSource]
  ) -> [(peer: RecordedPeer, isNew: Bool)] {
    if newest != epoch {
      epoch = newest
      changed.formUnion(agreed)
    }
    guard !changed.isEmpty else { return [] }
    defer { changed = [] }
    return changed.sorted().compactMap { participant in
      let kept = kept(participant, in: call, sources(participant))
      guard let kept, kept != consents[participant]?.told else { return nil }
      let isNew = consents[participant]?.told == nil
      // A participant that never agreed has no reel.
      guard !isNew || consents[participant]?.media.isEmpty == false else { return nil }
      consents[participant]?.told = kept
      return (kept, isNew)
    }
  }

  private mutating func kept(
    _ participant: ParticipantNumber, in call: CallID, _ sources: [UInt8: TrackSource]
  ) -> RecordedPeer? {
    let oldest = epoch < UInt32(RecordedPeer.epochs) ? 0 : epoch - UInt32(RecordedPeer.epochs) + 1
    guard var consent = consents[participant] else { return nil }
    consent.exports = consent.exports.filter { $0.key >= oldest }
    consents[participant] = consent
    var kept = RecordedPeer(recording: id, call: call, peer: consent.peer, participant: participant)
    for (track, source) in sources {
      guard let since = consent.media[source.recordedMedium] else { continue }
      for number in max(oldest, since + 1)..<max(oldest, since + 1, epoch + 1) {
        let key = RecordedPeer.Key(epoch: number, track: track)
        if consent.exports[number]?.contains(track) == true { kept.keys.insert(key) } else { kept.awaited.insert(key) }
      }
    }
    return kept
  }
}
