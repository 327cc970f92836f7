import Contract
import Foundation
import MediaModel

/// Joining calls, and the requests of a `JoinedCall`.
extension CallClient {
  /// How many times a call is started with keys that the server refuses.
  private static let ringAttempts = 3

  /// Starts a call and rings `callees`, with a key for each of their devices that is trusted. Throws the server's refusal if it accepts no keys for the devices
  /// that it lists itself: nobody is rung then. `JoinedCall.ringResults` has the result of each ring. If one of them calls the same people at the same moment,
  /// or this user talks to them on another device, this joins that call and answers its ring.
  public func start(
    callees: [String], media: CallSnapshot.Media, policy: CallPolicy = CallPolicy(), metadata: [UInt8]? = nil
  ) async throws(SignalingError) -> JoinedCall {
    let callees = try Self.identifiers(callees)
    return try await meeting(callees) { () throws(SignalingError) in
      try await self.startAnew(callees, media, policy, metadata)
    }
  }

  func startAnew(
    _ callees: [UserID], _ media: CallSnapshot.Media, _ policy: CallPolicy, _ metadata: [UInt8]?
  ) async throws(SignalingError) -> JoinedCall {
    let id = Self.newCallID()
    let credentials = makeCredentials(id)
    var keys = agreement(credentials, .started)
    // Its own word is the root: all others derive from it.
    let admissions = words(for: callees + [identity.address.user], in: id)
    return try await entering(id) { () throws(SignalingError) in
      let joined = try await self.ring(callees, with: &keys) { envelopes in
        .start(
          StartCall(
            id: id, callees: callees, media: CallMedia(rawValue: media.rawValue) ?? .video,
            policy: policy.told, metadata: metadata.map { Base64Bytes($0) }, joinId: credentials.joinId,
            joinKey: credentials.joinKey, envelopes: envelopes.isEmpty ? nil : envelopes, admissions: admissions))
      }
      keys.known.pins = self.pins
      guard let effects = keys.start(joined, now: Self.now, using: &self.generator) else {
        // A different call than requested, or somebody else's place in it: nobody must believe that it goes on.
        try? await self.perform(.call(id, .leave))
        throw .notUnderstood
      }
      return self.open(joined, keys, effects)
    }
  }

  /// A random UUID, version 4 (RFC 9562), chosen by the client. Ring envelopes and join keys are bound to it.
  static func newCallID() -> CallID { CallID(unchecked: UUID().uuidString.lowercased()) }

  /// Makes `request` with envelopes for the callees' devices. If one of them was removed or changed since it was listed, the server refuses them all. They are
  /// then listed again, and the remaining ones get their keys.
  private func ring(
    _ callees: [UserID], with keys: inout KeyAgreement, _ request: ([Envelope]) -> Request
  ) async throws(SignalingError) -> Joined {
    var attempt = 1
    var news: [KeyEffect] = []
    while true {
      let (envelopes, effects) = await envelopes(for: callees, &keys)
      news += effects
      do throws(SignalingError) {
        let joined = try await requestAgain(request(envelopes), reply: Joined.self)
        // A start that the server refuses does not make any device known.
        for effect in news { note(effect) }
        return joined
      } catch {
        guard case .refused(let code, _) = error, !envelopes.isEmpty, code.hasPrefix("keys."),
          attempt < Self.ringAttempts
        else { throw error }
        keys.ringAlone()
        attempt += 1
      }
    }
  }

  /// The envelopes for the callees' devices; none if the server does not list them.
  private func envelopes(
    for callees: [UserID], _ keys: inout KeyAgreement
  ) async -> (envelopes: [Envelope], effects: [KeyEffect]) {
    guard !callees.isEmpty,
      let reply = try? await requestAgain(.people(.listDevices(ListDevices(users: callees))), reply: Devices.self)
    else { return ([], []) }
    // A vouch may speak for a new device, and a revocation against one.
    learn(reply)
    keys.known.pins = pins
    return keys.ring(reply.devices, using: &generator)
  }

  /// Answers a ring on this device. If its caller has just rung the same people again, and that ring replaced this one, the new ring is
  /// answered.
  public func accept(_ call: String) async throws(SignalingError) -> JoinedCall {
    guard let id = CallID(call) else { throw .invalidIdentifier }
    return try await answering(id) { id throws(SignalingError) in try await self.answer(id) }
  }

  /// - Parameter people: the users that this user has just called, in a call that crossed theirs.
  func answer(_ id: CallID, calling people: Set<UserID>? = nil) async throws(SignalingError) -> JoinedCall {
    let ring = rings[id]
    // Before the first await: a ring that comes later invites nobody.
    let way = entrance(to: id, calling: people)
    if let ring { await learnDevices(of: ring) }
    let credentials = makeCredentials(id)
    var keys = agreement(credentials, way)
    return try await entering(id) { () throws(SignalingError) in
      let joined = try await self.requestAgain(.call(id, .accept(credentials.body)), reply: Joined.self)
      guard joined.call.id == id else { throw .notUnderstood }
      self.rings[id] = nil
      self.rung[id] = nil
      keys.known.pins = self.pins
      var effects = keys.enter(joined, now: Self.now)
      // Once a later epoch is in use, nobody sends under the ring's epoch any longer.
      if let ring, joined.call.epoch == 1, !self.usedRings.contains(id) {
        self.use(id)
        effects += keys.accept(ring, clock: Self.clock, now: Self.now)
      }
      return self.open(joined, keys, effects)
    }
  }

  /// A ring's key is used once.
  private func use(_ ring: CallID) {
    usedRings.insert(ring, at: Self.clock)
    tell(.ringUsed(UsedRing(call: ring.text, at: Self.clock.milliseconds)))
  }

  /// Declines a ring for the user, on all devices.
  public func decline(_ call: String, reason: String? = nil) async throws(SignalingError) {
    guard let id = CallID(call) else { throw .invalidIdentifier }
    rings[id] = nil
    rung[id] = nil
    try await perform(.call(id, .decline(Decline(reason: reason))))
  }

  /// Joins a call without being rung: after a decline, a missed ring or a leave.
  public func join(_ call: String) async throws(SignalingError) -> JoinedCall {
    try await join(call, by: nil) { .call($0, .join($1.body)) }
  }

  /// Joins a call by a link, with the link's token and its secret (`JoinedCall.Invitation`). The secret is not sent. A guest may have to wait until a member admits
  /// it (`ClientEvent.waitingForAdmission`), and is refused with `call.not-admitted` if none does. Cancelling the task ends the waiting.
  /// - Parameter isLasting: `secret` is that of a lasting link, and `call` and `link` are what the server has given a guest for it.
  public func join(
    _ call: String, link: String, secret: String, isLasting: Bool = false
  ) async throws(SignalingError) -> JoinedCall {
    guard let secret = LinkSecret(secret) else { throw .invalidIdentifier }
    for _ in 1...Self.doorAttempts {
      do {
        return try await enter(call, link: link, secret: secret, isLasting: isLasting)
      } catch .refused(let code, let message) {
        guard code == RequestError.Code.callNotAdmitted.rawValue, identity.address.user.isGuest else {
          throw .refused(code: code, message: message)
        }
        try await waitAtDoor(of: call, link: link, secret: secret)
      }
    }
    throw .notAdmitted
  }

  private func enter(
    _ call: String, link: String, secret: LinkSecret, isLasting: Bool
  ) async throws(SignalingError) -> JoinedCall {
    try await join(call, by: isLasting ? .lasting(secret, own: identity.address) : .link(secret)) { id, credentials in
      var body = credentials.body
      body.link = link
      body.admission = .coming(by: secret, into: id, as: self.identity)
      return .call(id, .join(body))
    }
  }

  /// Returns to a call that this user was in, after a restart of the app: as a new participant with new keys and a new PeerConnection. After a lost
  /// connection a call returns automatically.
  /// - Parameter root: the `root` of the call's last snapshot, which the app has kept with the call's id. Without it a server could name another.
  public func rejoin(_ call: String, root: String? = nil) async throws(SignalingError) -> JoinedCall {
    try await join(call, by: nil, root: root) { .call($0, .rejoin($1.body)) }
  }

  /// Moves a call of this user from the other device to this one. The other device leaves once media flows here.
  /// - Parameter root: as in `rejoin`, if this device was in the call before.
  public func transfer(_ call: String, root: String? = nil) async throws(SignalingError) -> JoinedCall {
    try await join(call, by: nil, root: root) { .call($0, .transfer($1.body)) }
  }

  /// Leaves a call for which the app has no `JoinedCall` (`ClientEvent.interrupted`).
  public func leave(_ call: String) async throws(SignalingError) {
    guard let id = CallID(call) else { throw .invalidIdentifier }
    try await leave(id).get()
  }

  /// The calls that this user may join or rejoin now.
  public func joinableCalls() async throws(SignalingError) -> [CallSnapshot] {
    try await connection.request(.listCalls, reply: CallList.self).calls.map { CallSnapshot($0, speakers: []) }
  }

  func join(
    _ call: String, by way: LettingIn.Entrance?, root: String? = nil, calling people: Set<UserID>? = nil,
    _ request: (CallID, JoinCredentials) -> Request
  ) async throws(SignalingError) -> JoinedCall {
    guard let id = CallID(call) else { throw .invalidIdentifier }
    var entrance = way ?? entrance(to: id, calling: people)
    if let root {
      guard let root = UserID(root) else { throw .invalidIdentifier }
      entrance = .back(root: root)
    }
    let credentials = makeCredentials(id)
    var keys = agreement(credentials, entrance)
    let request = request(id, credentials)
    var isRejoined = false
    if case .calls(.call(_, .rejoin)) = request { isRejoined = true }
    return try await entering(id) { [isRejoined] () throws(SignalingError) in
      let joined = try await self.requestAgain(request, reply: Joined.self)
      guard joined.call.id == id else { throw .notUnderstood }
      keys.known.pins = self.pins
      let effects = keys.enter(joined, now: Self.now)
      return self.open(joined, keys, effects, isRejoined: isRejoined)
    }
  }

  func makeCredentials(_ id: CallID) -> JoinCredentials {
    return JoinCredentials(identity, call: id, at: Self.clock, using: &generator)
  }

  func agreement(_ credentials: JoinCredentials, _ entrance: LettingIn.Entrance) -> KeyAgreement {
    KeyAgreement(
      identity: identity, join: credentials, pins: pins, trust: trust, directory: directory, work: work,
      entrance: entrance, now: Self.now)
  }

  /// How this device joins a call without a link.
  func entrance(to call: CallID, calling people: Set<UserID>? = nil) -> LettingIn.Entrance {
    if let ringer = ringers[call] { return .invited(by: [ringer]) }
    return people.map { .invited(by: $0.union([identity.address.user])) } ?? .other
  }

  /// This device's words that let these users into a call.
  func words(for users: [UserID], in call: CallID) -> [Admission] {
    Set(users).sorted().map { .letting($0, into: call, by: identity) }
  }

  /// While a join is being answered, events of its call are kept.
  private func entering(
    _ id: CallID, _ join: () async throws(SignalingError) -> JoinedCall
  ) async throws(SignalingError) -> JoinedCall {
    joining[id, default: 0] += 1
    defer {
      joining[id] = joining[id].flatMap { $0 > 1 ? $0 - 1 : nil }
      dropEarly()
    }
    return try await join()
  }

  private func open(
    _ joined: Joined, _ keys: KeyAgreement, _ effects: [KeyEffect], isRejoined: Bool = false
  ) -> JoinedCall {
    let id = joined.call.id
    // A ring brought keys to know; pins come as effects.
    directory.learn(keys.known.directory)
    let updates = UnreadQueue<CallUpdate>()
    let cipher = FrameCipher()
    let stay = CurrentStay(joined)
    forget(id)
    calls[id] = Ongoing(CallSession(joined), keys.withoutKnowledge, stay: stay, cipher: cipher, updates: updates)
    calls[id]?.consent.take(joined.call.recording)
    perform(effects, of: id)
    takeEarly(joined, isRejoined: isRejoined)
    return JoinedCall(
      id, stay: stay, cipher: cipher, updates: updates.stream, client: self,
      ringResults: Self.texts(of: joined.results ?? [:]))
  }

  func offer(_ call: CallID, _ sdp: String, _ tracks: [OfferedTrack]) async throws(SignalingError) -> AnsweredOffer {
    let offered = tracks.map {
      MediaRequest.Track(mid: $0.mid, source: $0.source.trackSource, replace: $0.replacesScreen ? true : nil)
    }
    guard let ongoing = calls[call] else { throw .notInCall }
    let stay = ongoing.keys.join.joinId
    ongoing.cipher.receiveSound(in: OwnTracks.soundSlots(in: sdp))
    let answer = try await connection.request(
      .inCall(call, .media(MediaRequest(sdp: sdp, tracks: offered))), reply: MediaAnswer.self)
    // The answer to an offer of a previous stay names other tracks and slots.
    guard calls[call] === ongoing, ongoing.keys.join.joinId == stay else { throw .notInCall }
    let own = ongoing.session.participant
    _ = ongoing.session.take(answer)
    assignSlots(of: call)
    let answered = answer.tracks.filter { $0.track.participant == own }.map { (mid: $0.mid, track: $0.track) }
    for (track, isMuted) in ongoing.tracks.offer(tracks, answered: answered) {
      ongoing.cipher.setMuted(isMuted, track: track)
    }
    settleRecording(of: call)
    let (tracks, isForeign) = Self.ownTracks(answer, of: own)
    if isForeign { ongoing.updates.yield(.warning(.foreignTrack)) }
    return AnsweredOffer(
      sdp: answer.sdp, tracks: tracks,
      receive: answer.receive.map(ReceivedTrack.init))
  }

  /// A muted track is silent here immediately, even if the server cannot be told. An unmuted track is sent once the server
  /// forwards it.
  func setMuted(_ isMuted: Bool, _ track: TrackID, in call: CallID) async throws(SignalingError) {
    guard let ongoing = calls[call] else { throw .notInCall }
    let stay = ongoing.keys.join.joinId
    func apply() {
      guard track.participant == ongoing.session.participant, ongoing.keys.join.joinId == stay else { return }
      ongoing.tracks.setMuted(isMuted, track: track.index)
      ongoing.cipher.setMuted(isMuted, track: track.index)
    }
    if isMuted { apply() }
    try await perform(.inCall(call, .track(track, ChangeTrack(muted: isMuted))))
    if !isMuted { apply() }
  }

  /// As for a muted track.
  func hold(_ isHeld: Bool, _ call: CallID) async throws(SignalingError) {
    guard let ongoing = calls[call] else { throw .notInCall }
    if isHeld { ongoing.cipher.hold(true) }
    try await perform(.call(call, .hold(Hold(held: isHeld))))
    if !isHeld { ongoing.cipher.hold(false) }
  }

  func invite(_ call: CallID, _ users: [String]) async throws(SignalingError) -> [String: String] {
    let own = identity.address.user
    let asked = try Self.identifiers(users)
    // A word for its own user would be a root, which only a start makes.
    let callees = asked.filter { $0 != own }
    var results = callees.count < asked.count ? [own.text: RingResult.alreadyJoined.rawValue] : [:]
    guard !callees.isEmpty else { return results }
    let invitation = Invite(callees: callees, admissions: words(for: callees, in: call))
    let reply = try await connection.request(.call(call, .invite(invitation)), reply: InviteResults.self)
    results.merge(Self.texts(of: reply.results)) { first, _ in first }
    return results
  }

  private static func texts(of results: [UserID: RingResult]) -> [String: String] {
    Dictionary(uniqueKeysWithValues: results.map { ($0.key.text, $0.value.rawValue) })
  }

  /// Makes a link: its token, and the secret that is given only to people.
  func makeLink(
    _ call: CallID, expiresIn seconds: Int?, guestsWait: Bool
  ) async throws(SignalingError) -> JoinedCall.Invitation {
    let secret = LinkSecret(maker: identity.fingerprint, using: &generator)
    let word = Admission.making(secret.link(of: call), of: call, waits: guestsWait, by: identity)
    let reply = try await connection.request(
      .call(call, .link(MakeLink(expiresIn: seconds, admission: word))), reply: CallLink.self)
    return JoinedCall.Invitation(link: reply.link, secret: secret.text, expiresAt: reply.expiresAt.milliseconds)
  }

  /// The track of each sending m-line, and whether the server named tracks that do not belong to this participant. Nothing must be sent on
  /// those.
  static func ownTracks(
    _ answer: MediaAnswer, of participant: ParticipantNumber
  ) -> (tracks: [String: String], isForeign: Bool) {
    let own = answer.tracks.filter { $0.track.participant == participant }
    return (
      Dictionary(own.map { ($0.mid, $0.track.description) }) { first, _ in first }, own.count < answer.tracks.count
    )
  }

  /// The cipher accepts a frame only in the slot of its track.
  func assignSlots(of id: CallID) {
    guard let call = calls[id] else { return }
    call.cipher.assign(call.session.slots.mapValues(\.track), now: Self.now)
  }

  func snapshot(_ call: CallID) -> CallSnapshot? { calls[call].map { snapshot($0) } }

  func snapshot(_ call: Ongoing) -> CallSnapshot {
    var snapshot = CallSnapshot(call.session.state, speakers: call.session.speakers)
    snapshot.devices = lend(to: call) { $0.devices(call.session.state.members) }
    snapshot.silence = call.keys.silence
    snapshot.isLetInByService = call.keys.lettingIn.isLetInByService
    snapshot.root = call.keys.lettingIn.root?.text
    snapshot.recording = call.toldRecording
    snapshot.confirmation = call.keys.confirmations.told ?? .confirming
    return snapshot
  }

  func code(_ call: CallID) -> String? { calls[call]?.keys.code }

  func listed(_ call: CallID) -> [PinnedDevice] {
    (calls[call]?.keys.listed ?? []).map { entry in
      PinnedDevice(
        user: entry.user.text, device: entry.device.text, fingerprint: entry.fingerprint.bytes,
        isVerified: entry.address == identity.address
          || pins.level(of: entry.address, entry.fingerprint.bytes) == .verified)
    }
  }

  func leave(_ call: CallID) async -> Result<Void, SignalingError> {
    // From here on nothing is sealed, opened or posted for this stay.
    calls[call]?.phase = .leaving
    calls[call]?.cipher.wipe()
    defer { forget(call) }
    do {
      return .success(try await perform(.call(call, .leave)))
    } catch {
      return .failure(error)
    }
  }

  /// Drops a call that this device has left, with all its keys.
  func forget(_ call: CallID) {
    guard let call = calls.removeValue(forKey: call) else { return }
    call.cipher.wipe()
    call.updates.finish()
    for delivery in call.deliveries { deliveries[delivery] = nil }
  }
}

extension ReceivedTrack {
  init(_ slot: Slot) {
    mid = slot.mid
    track = slot.track.description
    participant = slot.track.participant
    source = MediaSource(slot.source)
    picture =
      switch slot.picture {
      case nil: .whole
      case .lower: .lower
      case .paused: .paused
      }
  }
}
