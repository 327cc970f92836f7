import Contract
import MediaModel
import Octets
import Recording
import SFrame

/// A device's knowledge of the recording of its call, and the keys that it hands out for it (protocol section 13.7). Consent is the export: a track's key leaves this
/// device only in epochs that were announced after its person agreed, and in which the starter's device has said that it still records. A value: events and answers
/// go in, requests come out.
struct CallConsent: Sendable {
  /// How long the server may take to bring a new key after a withdrawal. Then what was agreed to is not sent any longer.
  static let patience: Duration = .seconds(10)
  private static let maximumWords = 4
  private static let maximumConsents = 4_096

  /// The present state of the call's key agreement, of the tracks, and of the clocks.
  struct Facts {
    /// An epoch whose list was accepted and whose secret is here.
    struct Held {
      var number: UInt32
      var listHash: [UInt8]
      var list: EpochList
      var key: SendingKey
    }

    var call: CallID
    var identity: DeviceIdentity
    var participant: ParticipantNumber
    var joinId: [UInt8]
    /// The newest epoch whose list was accepted.
    var newest: UInt32
    var newestList: EpochList?
    var listInUse: EpochList?
    /// The epochs with a secret, ascending.
    var held: [Held]
    /// The epoch under which this device sends.
    var sending: UInt32?
    var known: KnownDevices
    /// The own tracks by n.
    var tracks: [UInt8: MediaSource]
    var isConnected: Bool
    var clock: Timestamp
    var now: Instant
  }

  enum Effect: Sendable {
    case request(ParticipantRequest)
    /// Send nothing of these tracks until the next key.
    case withhold(Set<UInt8>)
    case refused(RecordingProblem)
  }

  private struct Running: Sendable {
    var statement: SignedStatement
    var starter: RecordingSigner
  }

  private struct Answer: Sendable {
    var recording: RecordingID
    var media: Set<RecordedMedium>
    /// Keys of later epochs are handed out; nil until the server has taken the answer.
    var after: UInt32?
    /// The stay in which it was given, or repeated.
    var participant: ParticipantNumber
  }

  /// A statement that is not judged yet: the list or the keys are missing.
  private var offered: RecordingStatement?
  private var running: Running?
  /// The recording that this device began.
  private var own: RecordingID?
  private var refused: RecordingStatement?
  private var consents: [ParticipantNumber: Set<RecordedMedium>] = [:]
  /// The words of the starter's device, as the server passed them on, by epoch.
  private var words: [UInt32: RecordingRuns] = [:]
  private var answer: Answer?
  /// The server has lost the answer.
  private var mustRepeat = false
  /// The tracks whose keys were handed out, by epoch.
  private var exported: [UInt32: Set<UInt8>] = [:]
  /// Tracks whose keys readers have although the person has withdrawn, and when the server's time is over.
  private var withdrawn: (epoch: UInt32, tracks: Set<UInt8>, due: Instant?)?
  private var withheld: (epoch: UInt32, tracks: Set<UInt8>)?

  /// Whether there is nothing to do.
  var isIdle: Bool { offered == nil && running == nil && exported.isEmpty }

  var nextTimeout: Instant? { withdrawn?.due }

  // MARK: inputs

  /// The call's state.
  mutating func take(_ state: CallRecordingState?) {
    guard let state else { return end() }
    offer(state.statement)
    consents = [:]
    for consent in state.consents.prefix(Self.maximumConsents) { consents[consent.participant] = Set(consent.media) }
    if let word = state.running { note(word) }
    // The server forgets a participant's consent when it seems to be gone.
    if let given = answer, given.after != nil, consents[given.participant] == nil { mustRepeat = true }
  }

  mutating func started(_ started: RecordingStarted) {
    offer(started.statement)
    consents = [:]
  }

  mutating func consented(_ consent: RecordingConsent) {
    guard consent.recording == current, consents[consent.participant] != nil || consents.count < Self.maximumConsents
    else { return }
    consents[consent.participant] = Set(consent.media)
  }

  mutating func note(_ word: RecordingRuns) {
    guard word.recording == current else { return }
    words[word.epoch] = word
    if words.count > Self.maximumWords, let oldest = words.keys.min() { words[oldest] = nil }
  }

  mutating func stopped(_ stopped: RecordingStopped) { if stopped.recording == current { end() } }

  /// The recording that is running, or said to be.
  private var current: RecordingID? { offered?.id ?? running?.statement.id }

  private mutating func offer(_ statement: RecordingStatement) {
    guard statement != running?.statement.statement, statement != refused else { return }
    end()
    offered = statement
  }

  /// Keys that were handed out stay in use until the next epoch.
  private mutating func end() {
    offered = nil
    running = nil
    consents = [:]
    words = [:]
    answer = nil
  }

  /// This device is about to begin a recording.
  mutating func begin(_ id: RecordingID) { own = id }

  /// It has another place in the call: nothing that was handed out before is used there. The answer is given again, for the same statement.
  mutating func beginStay() {
    words = [:]
    exported = [:]
    consents = [:]
    withdrawn = nil
    withheld = nil
    answer?.after = nil
  }

  // MARK: the person's answer

  /// The request for the person's answer; nil if there is no such recording, or it does not record these media.
  mutating func answer(
    _ media: Set<RecordedMedium>, to recording: RecordingID, erase: Bool, _ facts: Facts
  ) -> ParticipantRequest? {
    guard let running, running.statement.id == recording,
      media.isSubset(of: running.statement.statement.media)
    else { return nil }
    answer = Answer(recording: recording, media: media, after: nil, participant: facts.participant)
    if let sending = facts.sending {
      let open = (exported[sending] ?? []).subtracting(tracks(of: media, facts))
      withdrawn = open.isEmpty ? nil : (sending, open, nil)
    }
    return .consentToRecording(
      ConsentToRecording(
        recording: recording, media: media.sorted { $0.rawValue < $1.rawValue }, erase: erase ? true : nil))
  }

  /// The server has taken the answer. `epoch` is the newest that it had announced.
  mutating func answered(_ media: Set<RecordedMedium>, epoch: UInt32, _ facts: Facts) {
    guard answer?.media == media, answer?.participant == facts.participant else { return }
    // A repeated answer changes nothing about what was agreed to before.
    if answer?.after == nil { answer?.after = max(epoch, facts.newest) }
  }

  /// The server has refused the answer. A refusal of the person stays.
  mutating func answerFailed(_ media: Set<RecordedMedium>) {
    if answer?.media == media, answer?.after == nil, !media.isEmpty { answer = nil }
  }

  // MARK: what follows

  /// The actions that are due now. `used` are the ids of recordings that this device has seen.
  mutating func settle(_ facts: Facts, used: inout UsedRecordings) -> [Effect] {
    var effects: [Effect] = []
    judge(facts, &used, into: &effects)
    exported = exported.filter { $0.key >= facts.sending ?? 0 }
    repeatAnswer(facts, into: &effects)
    for epoch in facts.held { handOut(epoch, facts, into: &effects) }
    withhold(facts, into: &effects)
    return effects
  }

  /// Judges a statement once the list in use and the starter's keys are known.
  private mutating func judge(_ facts: Facts, _ used: inout UsedRecordings, into effects: inout [Effect]) {
    guard let statement = offered, let list = facts.listInUse else { return }
    func refuse(_ problem: RecordingProblem) {
      offered = nil
      refused = statement
      effects.append(.refused(problem))
    }
    guard statement.kind == .call, statement.call == facts.call else { return refuse(.notSigned) }
    guard let entry = list[statement.by] else {
      // It may be on a list that is not used yet.
      if facts.newestList?[statement.by] == nil { refuse(.stranger) }
      return
    }
    guard let signer = Self.signer(entry, facts) else {
      let isKnown = facts.known.directory.contains(entry.fingerprint)
      if isKnown || facts.known.isDistrusted(entry) { refuse(.stranger) }
      return
    }
    guard let signed = try? SignedStatement(checking: statement, by: signer, now: facts.clock) else {
      return refuse(.notSigned)
    }
    guard used.note(signed.id, signed.hash) else { return refuse(.usedBefore) }
    offered = nil
    running = Running(statement: signed, starter: signer)
  }

  private static func signer(_ entry: ListEntry, _ facts: Facts) -> RecordingSigner? {
    if entry.address == facts.identity.address {
      return entry.fingerprint.bytes == facts.identity.fingerprint ? RecordingSigner(facts.identity) : nil
    }
    guard facts.known.isHeard(entry), let keys = facts.known.directory[entry.fingerprint] else { return nil }
    return RecordingSigner(
      address: entry.address, fingerprint: keys.fingerprint, signKey: SignKey(keys),
      trust: facts.known.pins.level(of: entry.address, keys.fingerprint))
  }

  /// A device that rejoins, or whose answer was lost, agrees again by itself, for the same statement.
  private mutating func repeatAnswer(_ facts: Facts, into effects: inout [Effect]) {
    guard let running, let given = answer, given.recording == running.statement.id, !given.media.isEmpty,
      facts.isConnected, mustRepeat || given.participant != facts.participant
    else { return }
    mustRepeat = false
    let kept = given.participant == facts.participant ? given.after : nil
    if let request = answer(given.media, to: given.recording, erase: false, facts) { effects.append(.request(request)) }
    answer?.after = kept
  }

  /// Hands out the keys of this epoch that were agreed to and not handed out yet; as the starter's device also its word, without keys.
  private mutating func handOut(_ epoch: Facts.Held, _ facts: Facts, into effects: inout [Effect]) {
    guard let running, facts.participant > 0 else { return }
    let statement = running.statement
    let isOwn = own == statement.id && running.starter.address == facts.identity.address
    var agreed: Set<UInt8> = []
    if let answer, answer.recording == statement.id, answer.participant == facts.participant, let after = answer.after,
      epoch.number > after
    {
      agreed = tracks(of: answer.media, facts)
    }
    guard isOwn || mayExport(epoch, running, facts) else { return }
    let new = agreed.subtracting(exported[epoch.number] ?? [])
    guard !new.isEmpty || isOwn && exported[epoch.number] == nil else { return }
    let secrets = Dictionary(new.map { ($0, epoch.key.secret(ofTrack: $0)) }) { first, _ in first }
    let scope = TrackKeyScope(
      epoch: epoch.number, listHash: epoch.listHash, participant: facts.participant,
      fingerprint: facts.identity.fingerprint, joinId: facts.joinId)
    guard let keys = ExportTrackKeys.sealing(secrets, scope, of: statement, by: facts.identity) else { return }
    exported[epoch.number, default: []].formUnion(new)
    effects.append(.request(.exportTrackKeys(keys)))
  }

  /// Whether the starter's device has said that it records in exactly this epoch, and may be trusted with keys.
  private func mayExport(_ epoch: Facts.Held, _ running: Running, _ facts: Facts) -> Bool {
    guard let word = words[epoch.number], let entry = epoch.list[running.starter.address],
      entry.fingerprint.bytes == running.starter.fingerprint, let joinId = entry.joinId, entry.participant > 0,
      !facts.known.isDistrusted(entry),
      facts.known.trust == .firstUse
        || facts.known.pins.level(of: entry.address, entry.fingerprint.bytes) >= .vouched
    else { return false }
    let scope = TrackKeyScope(
      epoch: epoch.number, listHash: epoch.listHash, participant: entry.participant,
      fingerprint: entry.fingerprint.bytes, joinId: joinId.bytes)
    return word.isWord(scope, of: running.statement, from: running.starter)
  }

  private func tracks(of media: Set<RecordedMedium>, _ facts: Facts) -> Set<UInt8> {
    Set(facts.tracks.filter { $0.key > 0 && media.contains(RecordingMedium(of: $0.value).contract) }.keys)
  }

  /// After a withdrawal the server has to bring a new key. If it does not, this device stops sending what readers can open.
  private mutating func withhold(_ facts: Facts, into effects: inout [Effect]) {
    if let withheld, withheld.epoch != facts.sending { self.withheld = nil }
    guard let waiting = withdrawn else { return }
    guard waiting.epoch == facts.sending else {
      withdrawn = nil
      return
    }
    guard facts.isConnected, let due = waiting.due else {
      withdrawn?.due = facts.isConnected ? facts.now.advanced(by: Self.patience) : nil
      return
    }
    guard due <= facts.now else { return }
    withdrawn = nil
    withheld = (waiting.epoch, waiting.tracks)
    effects.append(.withhold(waiting.tracks))
  }

  // MARK: what is shown

  /// The recording, for the person; nil if there is none, or none that counts.
  func shown(_ facts: Facts) -> CallRecordingInfo? {
    guard let running else { return nil }
    let statement = running.statement.statement
    let given = answer.flatMap { $0.recording == statement.id ? $0.media : nil }
    let open = facts.sending.flatMap { exported[$0] } ?? []
    func sources(_ tracks: Set<UInt8>) -> Set<MediaSource> { Set(tracks.compactMap { facts.tracks[$0] }) }
    return CallRecordingInfo(
      id: statement.id.text, user: statement.by.user.text, device: statement.by.device.text,
      trust: running.starter.trust, isOwn: own == statement.id, readers: statement.readers.map(\.text).sorted(),
      media: Set(statement.media.map(RecordingMedium.init)), answer: given.map { Set($0.map(RecordingMedium.init)) },
      consents: consents.mapValues { Set($0.map(RecordingMedium.init)) }, exported: sources(open),
      awaited: sources(tracks(of: given ?? [], facts).subtracting(open)), withheld: sources(withheld?.tracks ?? []))
  }
}

/// The ids of recordings that this device has been asked about: one id belongs to one statement.
struct UsedRecordings: Sendable {
  private static let limit = 1_000
  private var hashes: [RecordingID: [UInt8]] = [:]
  private var order: [RecordingID] = []

  /// False if the id belongs to another statement.
  mutating func note(_ id: RecordingID, _ statement: [UInt8]) -> Bool {
    if let known = hashes[id] { return known == statement }
    hashes[id] = statement
    order.append(id)
    if order.count > Self.limit { hashes[order.removeFirst()] = nil }
    return true
  }
}

extension SendingKey {
  /// Key and salt of an own track in this epoch: they open the frames of this track, and of no other.
  func secret(ofTrack n: UInt8) -> FrameSecret {
    let id = FrameKeyID(participant: participant, track: n, epoch: epoch).rawValue
    return FrameSecret(suite: Epoch.suite, keyID: id, baseKey: baseKey)
  }
}

extension KeyAgreement {
  /// The facts by which a recording of the call is judged.
  func recordingFacts(
    tracks: [UInt8: MediaSource], isConnected: Bool, clock: Timestamp, now: Instant
  ) -> CallConsent.Facts {
    let held = epochs.numbers.compactMap { number -> CallConsent.Facts.Held? in
      guard let epoch = epochs[number], let key = own.sendingKey(epoch) else { return nil }
      return .init(number: number, listHash: epoch.listHash, list: epoch.list, key: key)
    }
    return CallConsent.Facts(
      call: own.call, identity: own.identity, participant: own.participant, joinId: own.join.joinId.bytes,
      newest: newest, newestList: epochs[newest]?.list, listInUse: epochs.inUse?.list, held: lists.isBroken ? [] : held,
      sending: switching.sending, known: known, tracks: tracks, isConnected: isConnected, clock: clock, now: now)
  }
}
