import Contract
import MediaModel

/// Coming into calls, and what a `Call` asks for.
extension CallClient {
  /// Starts a call and rings `callees`.
  public func start(callees: [String], media: CallSnapshot.Media, metadata: [UInt8]? = nil) async throws(SignalingError)
    -> Call
  {
    let callees = try Self.identifiers(callees)
    let media = CallMedia(rawValue: media.rawValue) ?? .video
    return try await join { credentials in
      .start(
        StartCall(
          callees: callees, media: media, metadata: metadata.map { Base64Bytes($0) }, joinId: credentials.joinId,
          joinKey: credentials.joinKey))
    }
  }

  /// Answers a ring on this device.
  public func accept(_ call: String) async throws(SignalingError) -> Call {
    guard let id = CallID(call) else { throw .invalidIdentifier }
    return try await join { .accept(id, $0.body) }
  }

  /// Declines a ring for the user, on all devices.
  public func decline(_ call: String, reason: String? = nil) async throws(SignalingError) {
    guard let id = CallID(call) else { throw .invalidIdentifier }
    try await perform(.decline(id, Decline(reason: reason)))
  }

  /// Comes into a call without being rung: after a decline, a missed ring or a leave.
  public func join(_ call: String) async throws(SignalingError) -> Call {
    guard let id = CallID(call) else { throw .invalidIdentifier }
    return try await join { .join(id, $0.body) }
  }

  /// Comes back after a crash, a lost network or `CallUpdate.lost`, as a new participant with new keys and a new PeerConnection.
  public func rejoin(_ call: String) async throws(SignalingError) -> Call {
    guard let id = CallID(call) else { throw .invalidIdentifier }
    return try await join { .rejoin(id, $0.body) }
  }

  private func join(_ request: (JoinCredentials) -> Request) async throws(SignalingError) -> Call {
    var generator = SystemRandomNumberGenerator()
    let credentials = JoinCredentials(identity, using: &generator)
    let request = request(credentials)
    joining += 1
    defer {
      joining -= 1
      if joining == 0 { dropEarly() }
    }
    let joined = try await requestAgain(request, reply: Joined.self)
    let id = joined.call.id
    let (updates, sink) = AsyncStream<CallUpdate>.makeStream()
    let cipher = FrameCipher()
    calls[id]?.updates.finish()
    var keys = KeyAgreement(identity: identity, call: id, join: credentials, pins: pins)
    var effects: [KeyEffect] = []
    if case .start = request {
      effects = keys.start(as: joined.participant, now: Self.now, using: &generator)
    }
    calls[id] = Ongoing(session: CallSession(joined), keys: keys, cipher: cipher, updates: sink)
    perform(effects, of: id)
    for delivery in early.removeValue(forKey: id) ?? [] { route(delivery, to: id) }
    return Call(joined, cipher: cipher, updates: updates, client: self)
  }

  func offer(_ call: CallID, _ sdp: String, _ tracks: [OfferedTrack]) async throws(SignalingError) -> AnsweredOffer {
    let offered = tracks.map {
      MediaRequest.Track(mid: $0.mid, source: $0.source.trackSource, replace: $0.replacesScreen ? true : nil)
    }
    let answer = try await connection.request(
      .media(call, MediaRequest(sdp: sdp, tracks: offered)), reply: MediaAnswer.self)
    guard calls[call] != nil else { throw .notInCall }
    _ = calls[call]?.session.take(answer)
    return AnsweredOffer(
      sdp: answer.sdp,
      tracks: Dictionary(answer.tracks.map { ($0.mid, $0.track.description) }) { first, _ in first },
      receive: answer.receive.map(ReceivedTrack.init))
  }

  func invite(_ call: CallID, _ users: [String]) async throws(SignalingError) -> [String: String] {
    let invitation = Invite(callees: try Self.identifiers(users))
    let reply = try await connection.request(.invite(call, invitation), reply: InviteResults.self)
    return Dictionary(uniqueKeysWithValues: reply.results.map { ($0.key.text, $0.value.rawValue) })
  }

  func snapshot(_ call: CallID) -> CallSnapshot? { calls[call].map { CallSnapshot($0.session) } }

  func code(_ call: CallID) -> String? { calls[call]?.keys.code }

  func leave(_ call: CallID) async -> Result<Void, SignalingError> {
    defer { forget(call) }
    do {
      return .success(try await perform(.leave(call)))
    } catch {
      return .failure(error)
    }
  }

  /// Drops a call that this device has left; its keys go with it.
  func forget(_ call: CallID) { calls.removeValue(forKey: call)?.updates.finish() }
}

extension ReceivedTrack {
  init(_ slot: Slot) {
    mid = slot.mid
    track = slot.track.description
    participant = slot.participant
    source = MediaSource(slot.source)
  }
}
