import Contract
import MediaModel
import Recording

/// The recording of a call: who records, who has agreed, and what this device hands out.
extension CallClient {
  /// Takes what an event says about the recording of the call.
  func noteRecording(_ body: EventBody, in call: Ongoing) {
    switch body {
    case .state(let state): call.consent.take(state.recording)
    case .recordingStarted(let started): call.consent.started(started)
    case .recordingConsent(let consent): call.consent.consented(consent)
    case .recordingRuns(let word): call.consent.note(word)
    case .recordingStopped(let stopped): call.consent.stopped(stopped)
    default: break
    }
  }

  /// Does what follows for the recording of the call from everything that has happened.
  func settleRecording(of id: CallID) {
    guard let call = calls[id], !call.isLeaving, !call.consent.isIdle || call.toldRecording != nil else { return }
    let facts = facts(of: call)
    for effect in call.consent.settle(facts, used: &usedRecordings) {
      switch effect {
      case .request(let request): send(request, of: id, call)
      case .withhold(let tracks): call.cipher.withhold(tracks)
      case .refused(let problem): call.updates.yield(.recordingRefused(problem))
      }
    }
    let shown = call.consent.shown(facts)
    guard shown != call.toldRecording else { return }
    call.toldRecording = shown
    call.updates.yield(.recording(shown))
  }

  private func facts(of call: Ongoing) -> CallConsent.Facts {
    lend(to: call) {
      $0.recordingFacts(
        tracks: call.tracks.sources, isConnected: isConnected, clock: Self.clock, now: Self.now)
    }
  }

  /// A request that the recording needs. If the server refuses it, nothing else is handed out in its place.
  private func send(_ request: ParticipantRequest, of id: CallID, _ call: Ongoing) {
    if case .consentToRecording(let body) = request {
      Task { _ = try? await answer(body, of: id, call) }
    } else {
      Task { _ = try? await requestAgain(.inCall(id, request), reply: NoBody.self) }
    }
  }

  private func answer(
    _ body: ConsentToRecording, of id: CallID, _ call: Ongoing
  ) async throws(SignalingError) {
    let media = Set(body.media)
    do {
      let reply = try await requestAgain(.inCall(id, .consentToRecording(body)), reply: Consented.self)
      guard calls[id] === call else { return }
      call.consent.answered(media, epoch: reply.epoch, facts(of: call))
      settleRecording(of: id)
    } catch {
      if calls[id] === call {
        call.consent.answerFailed(media)
        settleRecording(of: id)
      }
      throw error
    }
  }

  func answerRecording(
    _ recording: String, _ media: Set<RecordingMedium>, erase: Bool, in id: CallID
  ) async throws(SignalingError) {
    guard let call = calls[id] else { throw .notInCall }
    let recording = try Self.recording(recording)
    let answered = call.consent.answer(Set(media.map(\.contract)), to: recording, erase: erase, facts(of: call))
    guard case .consentToRecording(let body)? = answered else { throw .invalidIdentifier }
    settleRecording(of: id)
    try await answer(body, of: id, call)
  }

  /// Begins a recording, and agrees to it for this device.
  func startRecording(
    of id: CallID, media: Set<RecordingMedium>, readers: [String]
  ) async throws(SignalingError) -> String {
    let users = Set(try Self.identifiers(readers)).sorted()
    guard !media.isEmpty, (1...SignedStatement.maximumReaders).contains(users.count),
      let recording = RecordingWriter.id(using: &generator)
    else { throw .invalidIdentifier }
    let devices = await holders(users).filter { users.contains($0.address.user) }
    guard let call = calls[id] else { throw .notInCall }
    // Only this function and the grants ever have the private half.
    let key = RecordingKey(using: &generator)
    let statement = SignedStatement(
      signing: RecordingStatement(
        id: recording, kind: .call, call: id, publicKey: Base64Bytes(key.publicKey),
        media: media.map(\.contract).sorted { $0.rawValue < $1.rawValue }, readers: users, at: Self.clock,
        by: identity.address, sigAlg: "", signature: Base64Bytes([])),
      by: identity)
    let own = users.contains(identity.address.user) ? [identity.publicKeys] : []
    let grants = (own + devices).compactMap { key.grant(to: $0, of: statement, at: Self.clock, by: identity) }
    call.consent.begin(recording)
    _ = try await requestAgain(
      .inCall(id, .startRecording(StartCallRecording(statement: statement.statement, grants: grants))),
      reply: NoBody.self)
    guard calls[id] === call else { throw .notInCall }
    call.consent.started(RecordingStarted(statement: statement.statement, since: Self.clock))
    settleRecording(of: id)
    try await answerRecording(recording.text, media, erase: false, in: id)
    return recording.text
  }
}

extension JoinedCall {
  /// The recording of this call, as it is to be shown; nil if there is none.
  public var recording: CallRecordingInfo? { get async { await client.recording(of: callID) } }

  /// Begins a recording of this call for `readers`, at least one user; name this user, too, if this user is to play it. Everybody is asked, and this device agrees to
  /// `media`. Returns its id.
  ///
  /// - Throws: `refused` with `recording.not-allowed`, `recording.unavailable` or `recording.busy`; with `keys.not-allowed` until this device is on the list of keys
  ///   in use.
  public func startRecording(
    _ media: Set<RecordingMedium>, readers: [String]
  ) async throws(SignalingError) -> String {
    try await client.startRecording(of: callID, media: media, readers: readers)
  }

  /// The person agrees to be recorded in these media, and in no other. It holds from the next key on: what was sent before stays closed. `recording` is
  /// `CallRecordingInfo.id` as the person was shown it.
  public func agreeToRecording(
    _ recording: String, _ media: Set<RecordingMedium>
  ) async throws(SignalingError) {
    try await client.answerRecording(recording, media, erase: false, in: callID)
  }

  /// The person does not agree, or no longer. Nothing more is handed out from this moment on, whatever the server answers. `erase`: what was recorded of this user is
  /// deleted, too.
  public func declineRecording(_ recording: String, erase: Bool = false) async throws(SignalingError) {
    try await client.answerRecording(recording, [], erase: erase, in: callID)
  }

  /// Ends the recording: for its starter's user and the call's initiator.
  public func stopRecording(_ recording: String) async throws(SignalingError) {
    let id = try CallClient.recording(recording)
    try await client.perform(.inCall(callID, .stopRecording(StopCallRecording(recording: id))))
  }
}

extension CallClient {
  func recording(of id: CallID) -> CallRecordingInfo? { calls[id]?.toldRecording }
}
