import Contract
import Foundation
import MediaModel

/// Coming into calls, and what a `Call` asks for.
extension CallClient {
  /// Starts a call and rings `callees`, with a key for each of their devices that is trusted.
  public func start(callees: [String], media: CallSnapshot.Media, metadata: [UInt8]? = nil) async throws(SignalingError)
    -> Call
  {
    let callees = try Self.identifiers(callees)
    let credentials = makeCredentials()
    var keys = agreement(nil, credentials)
    let envelopes = await ring(callees, &keys)
    let id = CallID(unchecked: UUID().uuidString.lowercased())
    func request(_ envelopes: [Envelope]) -> Request {
      .start(
        StartCall(
          id: id, callees: callees, media: CallMedia(rawValue: media.rawValue) ?? .video,
          metadata: metadata.map { Base64Bytes($0) }, joinId: credentials.joinId, joinKey: credentials.joinKey,
          envelopes: envelopes.isEmpty ? nil : envelopes))
    }
    return try await entering { () throws(SignalingError) in
      let joined: Joined
      do throws(SignalingError) {
        joined = try await self.requestAgain(request(envelopes), reply: Joined.self)
      } catch {
        guard case .refused(let code, _) = error, !envelopes.isEmpty, code.hasPrefix("keys.") else { throw error }
        // A device has gone or changed since the list was made: it is rung without a key.
        keys.ringAlone()
        joined = try await self.requestAgain(request([]), reply: Joined.self)
      }
      return self.open(joined, keys) { keys in
        var generator = SystemRandomNumberGenerator()
        return keys.start(joined.call.id, as: joined.participant, now: Self.now, using: &generator)
      }
    }
  }

  /// The envelopes for the callees' devices; none when the server does not list them.
  private func ring(_ callees: [UserID], _ keys: inout KeyAgreement) async -> [Envelope] {
    guard !callees.isEmpty,
      let devices = try? await requestAgain(.listDevices(ListDevices(users: callees)), reply: Devices.self).devices
    else { return [] }
    var generator = SystemRandomNumberGenerator()
    keys.pins = pins
    let (envelopes, effects) = keys.ring(devices, using: &generator)
    for effect in effects { note(effect) }
    return envelopes
  }

  /// Answers a ring on this device.
  public func accept(_ call: String) async throws(SignalingError) -> Call {
    guard let id = CallID(call) else { throw .invalidIdentifier }
    let ring = rings[id]
    if let ring { await learnDevices(of: ring) }
    let credentials = makeCredentials()
    let keys = agreement(id, credentials)
    return try await entering { () throws(SignalingError) in
      let joined = try await self.requestAgain(.accept(id, credentials.body), reply: Joined.self)
      self.rings[id] = nil
      return self.open(joined, keys) { keys in
        // With a later epoch in use nobody sends under the ring's any more.
        guard let ring, joined.call.epoch == 1 else { return [] }
        return keys.accept(ring, as: joined.participant, now: Self.now)
      }
    }
  }

  /// Declines a ring for the user, on all devices.
  public func decline(_ call: String, reason: String? = nil) async throws(SignalingError) {
    guard let id = CallID(call) else { throw .invalidIdentifier }
    rings[id] = nil
    try await perform(.decline(id, Decline(reason: reason)))
  }

  /// Comes into a call without being rung: after a decline, a missed ring or a leave, or with a link.
  public func join(_ call: String, link: String? = nil) async throws(SignalingError) -> Call {
    try await join(call) { id, credentials in
      var body = credentials.body
      body.link = link
      return .join(id, body)
    }
  }

  /// Comes back into a call that this user was in, after a restart of the app: as a new participant with new keys and a new PeerConnection. From a lost
  /// connection a call comes back by itself.
  public func rejoin(_ call: String) async throws(SignalingError) -> Call {
    try await join(call) { .rejoin($0, $1.body) }
  }

  /// Moves a call of this user here from the other device, which is let go once media flows here.
  public func transfer(_ call: String) async throws(SignalingError) -> Call {
    try await join(call) { .transfer($0, $1.body) }
  }

  /// Leaves a call that the app has no `Call` for (`ClientEvent.interrupted`).
  public func leave(_ call: String) async throws(SignalingError) {
    guard let id = CallID(call) else { throw .invalidIdentifier }
    try await leave(id).get()
  }

  /// The calls that this user may join or rejoin now.
  public func joinableCalls() async throws(SignalingError) -> [CallSnapshot] {
    try await connection.request(.listCalls, reply: CallList.self).calls.map { CallSnapshot($0, speakers: []) }
  }

  private func join(
    _ call: String, _ request: (CallID, JoinCredentials) -> Request
  ) async throws(SignalingError) -> Call {
    guard let id = CallID(call) else { throw .invalidIdentifier }
    let credentials = makeCredentials()
    let keys = agreement(id, credentials)
    let request = request(id, credentials)
    var isRejoined = false
    if case .rejoin = request { isRejoined = true }
    return try await entering { [isRejoined] () throws(SignalingError) in
      let joined = try await self.requestAgain(request, reply: Joined.self)
      return self.open(joined, keys, isRejoined: isRejoined) { _ in [] }
    }
  }

  func makeCredentials() -> JoinCredentials {
    var generator = SystemRandomNumberGenerator()
    return JoinCredentials(identity, using: &generator)
  }

  func agreement(_ id: CallID?, _ credentials: JoinCredentials) -> KeyAgreement {
    KeyAgreement(identity: identity, call: id, join: credentials, pins: pins, trust: trust, directory: directory)
  }

  /// While a join is being answered, events of calls that are not known yet are kept.
  private func entering(
    _ join: () async throws(SignalingError) -> Call
  ) async throws(SignalingError) -> Call {
    joining += 1
    defer {
      joining -= 1
      if joining == 0 { dropEarly() }
    }
    return try await join()
  }

  private func open(
    _ joined: Joined, _ keys: KeyAgreement, isRejoined: Bool = false, first: (inout KeyAgreement) -> [KeyEffect]
  ) -> Call {
    let id = joined.call.id
    let (updates, sink) = AsyncStream<CallUpdate>.makeStream()
    let cipher = FrameCipher()
    let seat = Seat(joined)
    calls[id]?.updates.finish()
    var keys = keys
    keys.pins = pins
    let effects = first(&keys)
    calls[id] = Ongoing(session: CallSession(joined), keys: keys, seat: seat, cipher: cipher, updates: sink)
    perform(effects, of: id)
    feed(.seated(joined.call.seats), to: id)
    takeEarly(joined, isRejoined: isRejoined)
    return Call(id, seat: seat, cipher: cipher, updates: updates, client: self)
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

  func snapshot(_ call: CallID) -> CallSnapshot? {
    calls[call].map { CallSnapshot($0.session.state, speakers: $0.session.speakers) }
  }

  func code(_ call: CallID) -> String? { calls[call]?.keys.code }

  func listed(_ call: CallID) -> [PinnedDevice] {
    (calls[call]?.keys.listed ?? []).map { entry in
      let isOwn = entry.address == identity.address
      let pin = pins[entry.address]
      return PinnedDevice(
        user: entry.user.text, device: entry.device.text, fingerprint: entry.fingerprint.bytes,
        isVerified: isOwn || pin?.isVerified == true && pin?.fingerprint == entry.fingerprint.bytes)
    }
  }

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
