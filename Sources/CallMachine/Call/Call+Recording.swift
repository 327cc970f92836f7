import CallMessages
import Contract
import MediaModel
import Octets
import Recording

/// `record/…`: a participant records the call, and each agrees for itself (protocol section 13.7).
extension Call {
  /// How many ended recordings are remembered.
  private static let maximumEnded = 64
  private static let maximumReaders = 64
  /// Bytes of a P-256 key as SPKI (RFC 5480).
  private static let publicKeyBytes = 91
  /// HPKE's key and tag, and then n, key and salt of each track.
  private static let sealedBytes = (fixed: 65 + 16, track: 1 + 32 + 12)
  private static let maximumSignature = 1_024
  /// Bytes of an algorithm's name.
  private static let maximumName = 64

  /// - Parameter records: who may record calls on this server; nil: nobody, because it stores none.
  mutating func startRecording(
    _ body: StartCallRecording, from device: Device, records: Policy.Record?, hashing: Hashing, now: Timestamp,
    out: inout Outputs
  ) throws(RequestError) {
    let participant = try participant(of: device)
    let statement = body.statement
    try checkMayRecord(device.user, records)
    if let recording {
      guard recording.statement == statement else {
        throw RequestError(.recordingBusy, "this call is recorded already: one recording at a time")
      }
      return
    }
    guard !endedRecordings.contains(statement.id) else {
      throw RequestError(.recordingEnded, "this recording has ended: begin another one with a new id")
    }
    let keyed = try keyedDevice(of: participant)
    // The others take no statement of a device that is not on their list.
    guard epochs.announced(epochs.current)?.holds(keyed) == true else {
      throw RequestError(
        .keysNotAllowed, "a device records once it is on the list in use: try again after keys.switch",
        retryAfterMs: 1_000)
    }
    try check(statement, by: keyed, hashing)
    recording = CallRecording(statement, since: now)
    out.event(
      .recordingStarted(RecordingStarted(statement: statement, since: now)), to: .devices(participantDevices))
    out.add(.recorded(.began(body, author: person(keyed))))
  }

  private func checkMayRecord(_ user: UserID, _ records: Policy.Record?) throws(RequestError) {
    guard let records else {
      throw RequestError(.recordingUnavailable, "this server stores no recordings: its operator can set recordings")
    }
    let isAllowed = [records, rules.record ?? records].allSatisfy { rule in
      switch rule {
      case .members: !user.isGuest
      case .initiator: user == initiator
      case .nobody: false
      }
    }
    guard isAllowed else { throw RequestError(.recordingNotAllowed, "this user may not record this call") }
  }

  private func check(
    _ statement: RecordingStatement, by keyed: KeyedDevice, _ hashing: Hashing
  ) throws(RequestError) {
    func require(_ holds: Bool, _ field: String, _ rule: String) throws(RequestError) {
      guard holds else { throw RequestError(.requestInvalid, rule, field: "statement.\(field)") }
    }
    try require(statement.kind == .call, "kind", "this request records the call itself")
    try require(statement.call == id, "call", "name this call")
    try require(statement.by == keyed.device, "by", "the device that sends the statement signs it")
    try require(
      !statement.media.isEmpty && Set(statement.media).count == statement.media.count, "media",
      "name what is recorded, each medium once")
    try require(
      statement.readers.count <= Self.maximumReaders && Set(statement.readers).count == statement.readers.count,
      "readers", "at most \(Self.maximumReaders) readers, each once")
    try require(
      statement.publicKey.bytes.count == Self.publicKeyBytes, "publicKey", "take a P-256 key as SPKI (RFC 5480)")
    let transcript = Transcript.recording(statement, fingerprint: keyed.keys.fingerprint.bytes)
    let key = keyed.keys.keys.first { $0.use == .sign }
    let isSigned = key.map {
      statement.sigAlg == $0.alg
        && hashing.verifies(statement.signature.bytes, transcript.bytes, $0.alg, $0.publicKey.bytes)
    }
    try require(isSigned == true, "signature", "it is not this device's signature over the statement")
  }

  /// `record/consent`.
  mutating func consent(
    _ body: ConsentToRecording, from device: Device, now: Timestamp, out: inout Outputs
  ) throws(RequestError) -> Consented {
    let participant = try participant(of: device)
    let running = try recording(body.recording)
    _ = try keyedDevice(of: participant)
    let media = Set(body.media)
    guard media.count == body.media.count, media.isSubset(of: running.statement.media) else {
      throw RequestError(.requestInvalid, "name media of the statement, each once", field: "media")
    }
    guard body.erase != true || media.isEmpty else {
      throw RequestError(.requestInvalid, "what is recorded on is not erased: name no media", field: "erase")
    }
    let number = participant.number
    let before = running.media(of: number)
    let newest = epochs.newest.number
    let isChange = try consent(number, participant.peer, media, newest: newest, now: now)
    if isChange {
      let said = recording?.media(of: number) ?? []
      out.event(
        .recordingConsent(RecordingConsent(recording: body.recording, participant: number, media: said)),
        to: .devices(participantDevices))
      // Storing ends at once; the next key bounds what can be opened.
      for change in takeRecorded() { out.add(.recorded(change)) }
      if said != before { epochs.change(.consented, now: now, out: &out) }
    }
    if body.erase == true { out.add(.recorded(.erased(body.recording, device.user))) }
    return Consented(epoch: newest)
  }

  private mutating func consent(
    _ number: ParticipantNumber, _ peer: PeerID, _ media: Set<RecordedMedium>, newest: UInt32, now: Timestamp
  ) throws(RequestError) -> Bool {
    guard var running = recording else { return false }
    // Otherwise the copy would make each change copy all consents.
    recording = nil
    defer { recording = running }
    return try running.consent(number, peer, to: media, newest: newest, now: now)
  }

  /// `record/keys`. The server cannot open them, and readers check the signature.
  mutating func export(
    _ body: ExportTrackKeys, from device: Device, out: inout Outputs
  ) throws(RequestError) {
    let participant = try participant(of: device)
    let running = try recording(body.recording)
    let keyed = try keyedDevice(of: participant)
    guard let epoch = epochs.announced(body.epoch) else {
      throw body.epoch > epochs.newest.number
        ? RequestError(.keysNotAllowed, "that epoch has not begun")
        : RequestError(.keysEpochStale, "a newer epoch has begun: hand out its keys")
    }
    guard epoch.holds(keyed) else {
      throw RequestError(.keysNotAllowed, "this device is not on the list of that epoch")
    }
    try check(body)
    let isStarter = device == running.starter
    guard isStarter || !body.tracks.isEmpty else {
      throw RequestError(.requestInvalid, "name the tracks whose keys these are", field: "tracks")
    }
    for track in body.tracks {
      let source = participant.tracks.tracks.first { $0.id.index == track }?.source
      guard let source, running.covers(source.recordedMedium, of: participant.number, in: body.epoch) else {
        throw RequestError(
          .recordingNotAllowed, "only keys of own tracks are stored, of epochs after the consent to them",
          field: "tracks")
      }
    }
    if isStarter, let word = recording?.run(body, by: participant.number) {
      let devices = running.agreed.compactMap { self.participant($0)?.device }.filter { $0 != device }
      if !devices.isEmpty { out.event(.recordingRuns(word), to: .devices(devices)) }
    }
    guard !body.tracks.isEmpty, recording?.export(body, by: participant.number) == true else { return }
    let keys = TrackKeys(body, of: participant.number, listHash: epoch.listHash)
    out.add(.recorded(.exported(keys, body.recording)))
  }

  private func check(_ body: ExportTrackKeys) throws(RequestError) {
    guard body.tracks.first != 0, zip(body.tracks, body.tracks.dropFirst()).allSatisfy({ $0 < $1 }) else {
      throw RequestError(.requestInvalid, "tracks are numbers from 1 on, ascending", field: "tracks")
    }
    guard body.ciphertext.bytes.count == Self.sealedBytes.fixed + Self.sealedBytes.track * body.tracks.count else {
      throw RequestError(
        .requestInvalid, "the ciphertext has 81 bytes, and 45 for each track", field: "ciphertext")
    }
    guard (1...Self.maximumName).contains(body.sigAlg.utf8.count),
      (1...Self.maximumSignature).contains(body.signature.bytes.count)
    else { throw RequestError(.requestInvalid, "sign the keys with the device's sign key", field: "signature") }
  }

  /// `record/stop`.
  mutating func stopRecording(
    _ body: StopCallRecording, by device: Device, now: Timestamp, out: inout Outputs
  ) throws(RequestError) {
    _ = try participant(of: device)
    let running = try recording(body.recording)
    guard device.user == running.starter.user || device.user == initiator else {
      throw RequestError(.recordingNotAllowed, "its starter stops a recording, or the call's initiator")
    }
    endRecording(.stopped, now: now, out: &out)
  }

  /// - Throws: `recording.ended` or `recording.not-found`, unless this recording runs.
  private func recording(_ id: RecordingID) throws(RequestError) -> CallRecording {
    if let recording, recording.id == id { return recording }
    guard endedRecordings.contains(id) else {
      throw RequestError(.recordingNotFound, "this call has no such recording")
    }
    throw RequestError(.recordingEnded, "the recording has ended")
  }

  /// Frames of a device without keys are not encrypted.
  private func keyedDevice(of participant: Participant) throws(RequestError) -> KeyedDevice {
    guard let keyed = epochs.keyedDevices[participant.device], keyed.number == participant.number else {
      throw RequestError(.keysNotAllowed, "only a device on the list of keys records, and is recorded")
    }
    return keyed
  }

  private func person(_ keyed: KeyedDevice) -> RecordedPerson {
    RecordedPerson(
      participant: keyed.number, user: keyed.device.user, device: keyed.device.device,
      name: member(keyed.device.user)?.name, fingerprint: keyed.keys.fingerprint, keys: keyed.keys.keys,
      joinId: keyed.joinId)
  }

  // MARK: what follows from other changes

  mutating func endRecording(_ reason: RecordingStopped.Reason, now: Timestamp, out: inout Outputs) {
    guard let running = recording else { return }
    recording = nil
    endedRecordings.append(running.id)
    if endedRecordings.count > Self.maximumEnded { endedRecordings.removeFirst() }
    out.event(
      .recordingStopped(RecordingStopped(recording: running.id, reason: reason)), to: .devices(participantDevices))
    out.add(.recorded(.ended(running.id)))
    if reason != .callEnded, !running.agreed.isEmpty { epochs.change(.consented, now: now, out: &out) }
  }

  /// A recording ends when its starter's device is no longer in the call. A device that is only disconnected may come back.
  mutating func settleRecording(now: Timestamp, out: inout Outputs) {
    guard let starter = recording?.starter, member(starter.user)?.participant(on: starter) == nil else { return }
    endRecording(.starterLeft, now: now, out: &out)
  }

  /// The participant's stay is over.
  mutating func forgetConsent(of participant: ParticipantNumber, out: inout Outputs) {
    guard let id = recording?.id, let peer = recording?.forget(participant) else { return }
    out.add(.recorded(.went(id, peer)))
  }

  /// The changes that the store and the media plane must know after a transition.
  mutating func takeRecorded() -> [CallRecordingChange] {
    guard var running = recording, running.hasNews(newest: epochs.newest.number) else { return [] }
    recording = nil
    defer { recording = running }
    let kept = running.takeKept(in: id, newest: epochs.newest.number) { number in
      let tracks = participant(number)?.tracks.tracks ?? []
      return Dictionary(tracks.map { ($0.id.index, $0.source) }) { first, _ in first }
    }
    return kept.flatMap { peer, isNew in
      guard isNew, let device = participant(peer.participant)?.device, let keyed = epochs.keyedDevices[device] else {
        return [CallRecordingChange.keeps(peer)]
      }
      return [.joined(person(keyed), peer.recording), .keeps(peer)]
    }
  }
}
