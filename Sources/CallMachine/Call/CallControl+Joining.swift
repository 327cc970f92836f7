import CallMessages
import Contract
import MediaModel

/// `start`, `accept`, `join`, `rejoin` and `invite`.
extension CallControl {
  /// - Parameter message: `request` with the facts about people that it needs.
  mutating func start(_ request: StartCall, _ message: BriefedRequest) throws(RequestError) -> Transition {
    let user = message.caller.device.user
    let joiner = try joiner(message.caller, joinId: request.joinId, joinKey: request.joinKey)
    if let reply = try firstReply(to: request, from: joiner.token) { return Transition(.joined(reply)) }
    let rules = try checkStart(request)
    try checkRoom(for: message.caller)
    let replaced = try callsToReplace(message)
    let words = try words(of: request, message.caller)
    let callees = message.callees.map { callee in
      var callee = callee
      callee.busyIn.subtract(replaced)
      return callee
    }
    let ringable = Set(callees.filter { $0.isRingable(rules.whenBusy) }.map(\.user))
    let envelopes = try ringEnvelopes(
      request.envelopes ?? [], callees: callees, ringable: ringable, keys: message.keys, from: joiner)
    var out = Outputs()
    out.add(.made)
    let id = try request.checkedID()
    let epochs = Epochs(
      call: id, initiator: joiner.keyedDevice(number: 1),
      // Includes those who cannot be rung: the envelopes' signatures cover the hash of the list that the initiator
      // made.
      ringing: (request.envelopes ?? []).compactMap { message.keys[$0.to].map(ListEntry.init(ringing:)) },
      envelopes: envelopes, admissions: try words.root(of: user),
      rotationTime: rules.rotationTime, digest: hashing.digest, now: now, out: &out)
    var call = Call(
      id: id, media: request.media, starter: joiner, rules: rules, limits: configuration.limits,
      metadata: request.metadata,
      epochs: epochs, now: now)
    call.soleCallee = callees.count == 1 ? callees[0].user : nil
    let number = call.seatInitiator(joiner, now: now, out: &out)
    out.set(.expiry, at: now + rules.lifetime)
    var results = try call.ring(
      callees, by: user, words: words, metadata: nil, isStart: true, now: now, out: &out)
    if request.callees.contains(user) { results[user] = .alreadyJoined }
    let reply = Joined(
      call: call.state, participant: number, ice: configuration.ice(joiner.device), results: results)
    if request.joinId != nil { call.joins.keep(reply, .start, for: joiner.token) }
    call.start.reply = reply
    call.settle(now: now, out: &out)
    calls[id] = call
    starts[joiner.token] = id
    var done = Transition(.reply(.joined(reply)), id, out)
    done.speaker = joiner.device
    done.crossing = .replaces(replaced)
    return done
  }

  mutating func join(
    _ id: CallID, _ request: Join, _ kind: JoinMemory.Kind, _ caller: Caller
  ) throws(RequestError) -> Transition {
    let device = caller.device
    // The state in the reply already includes what waits.
    tellChanges(to: device.user, of: id)
    if kind == .join || kind == .rejoin { try checkWord(of: request, kind, caller) }
    let hasLink = kind == .join ? try isLetIn(device.user, by: request.link, to: id) : false
    if !hasLink { try checkMembership(device.user, of: id) }
    var joiner = try joiner(caller, joinId: request.joinId, joinKey: request.joinKey)
    (joiner.word, joiner.signer) = try linkWord(request.admission, kind, caller, to: id, isNeeded: hasLink)
    let knowsState = kind == .rejoin && request.state == false
    if let call = calls[id], let reply = try call.joins.reply(to: joiner.token, kind, state: { call.state }) {
      return Transition(knowsState ? .rejoined(Rejoined(reply)) : .joined(reply))
    }
    try calls[id]?.checkIsNew(joiner)
    let isRinging = calls[id]?.member(device.user)?.isRinging == true
    if calls[id]?.member(device.user)?.isPresent != true { try checkRoom(for: caller) }
    let ice = configuration.ice(device)
    var done = try run(id, by: nil) { call, now, out throws(RequestError) in
      var later = Outputs()
      let number: ParticipantNumber
      switch kind {
      case .accept: number = try call.accept(joiner, now: now, out: &later)
      case .join: number = try call.join(joiner, byLink: hasLink, now: now, out: &later)
      case .transfer: number = try call.transfer(joiner, now: now, out: &later)
      case .rejoin, .start: number = try call.rejoin(joiner, now: now, out: &later)
      }
      let reply = Joined(
        call: knowsState ? call.stateWithoutMembers : call.state, participant: number, ice: ice)
      if request.joinId != nil { call.joins.keep(reply, kind, for: joiner.token, hasState: !knowsState) }
      // The whole state after a rejoin, before the events that follow from it.
      if kind == .rejoin, !knowsState { out.event(.state(reply.call), to: .devices([device])) }
      out.append(later)
      return .reply(knowsState ? .rejoined(Rejoined(reply)) : .joined(reply))
    }
    done.speaker = device
    if isRinging { done.crossing = .answered(caller.calls) }
    return done
  }

  mutating func invite(
    _ id: CallID, _ request: Invite, _ message: BriefedRequest
  ) throws(RequestError) -> Transition {
    let device = message.caller.device
    let hashing = hashing
    try checkMetadata(request.metadata)
    return try run(id, by: device.user) { call, now, out throws(RequestError) in
      let words = try OfferedWords(
        request.admissions, for: Set(request.callees), by: try call.keys(ofInviting: device), in: id, hashing: hashing)
      let results = try call.invite(
        message.callees, by: device.user, words: words, metadata: request.metadata, now: now, out: &out)
      return .reply(.results(InviteResults(results: results)))
    }
  }

  // MARK: checks

  func checkMayStart(_ caller: Caller) throws(RequestError) {
    try checkServes()
    try checkRole(caller)
    guard caller.keys != nil else { throw .startsNoCall }
  }

  /// - Throws: `role.not-allowed` for a role that is configured not to start calls.
  func checkRole(_ caller: Caller) throws(RequestError) {
    guard caller.mayStart else {
      throw RequestError(.roleNotAllowed, "this role may not start calls or invite")
    }
  }

  func checkServes() throws(RequestError) {
    guard !isDraining else {
      throw RequestError(.serverDraining, "the server is about to stop: start the call again in a moment")
    }
  }

  func checkStart(_ request: StartCall) throws(RequestError) -> CallRules {
    let rules = try CallRules(request.policy ?? Policy(), defaultCodecs: configuration.defaultCodecs)
    try checkMetadata(request.metadata)
    guard calls.count < configuration.maximumCalls else {
      throw RequestError(.serverBusy, "the server has as many calls as it may")
    }
    return rules
  }

  mutating func joiner(
    _ caller: Caller, joinId: Base64Bytes?, joinKey: JoinKey?
  ) throws(RequestError) -> Joiner {
    if let joinId {
      guard joinId.bytes.count == 16, joinId.bytes.contains(where: { $0 != 0 }) else {
        throw RequestError(.requestInvalid, "a joinId is 16 random bytes", field: "joinId")
      }
    }
    if let joinKey {
      try joinKey.check()
      guard joinKey.generation == 0 else {
        throw RequestError(.requestInvalid, "the joinKey of a join has generation 0", field: "joinKey")
      }
    }
    return Joiner(
      device: caller.device, name: caller.name, joinId: joinId ?? makeJoinId(), joinKey: joinId == nil ? nil : joinKey,
      keys: caller.keys, peer: makePeer())
  }

  /// The words of a `start`: for each callee, and for the sender.
  func words(of request: StartCall, _ caller: Caller) throws(RequestError) -> OfferedWords {
    guard let keys = caller.keys else { throw .startsNoCall }
    return try OfferedWords(
      request.admissions, for: Set(request.callees + [caller.device.user]), by: keys, in: try request.checkedID(),
      hashing: hashing)
  }

  private func checkMetadata(_ metadata: Base64Bytes?) throws(RequestError) {
    guard (metadata?.bytes.count ?? 0) <= 2_048 else {
      throw RequestError(.requestTooLarge, "metadata has at most 2 KiB", field: "metadata")
    }
  }

  /// A random UUID (RFC 9562 section 5.4).
  func makeCallID() -> CallID {
    let high = random() & ~0xf000 | 0x4000
    let low = random() & ~(0b11 << 62) | 0b10 << 62
    let digits = [high, low].map { word in
      let text = String(word, radix: 16)
      return String(repeating: "0", count: 16 - text.count) + text
    }.joined()
    var text = ""
    for (place, digit) in digits.enumerated() {
      if [8, 12, 16, 20].contains(place) { text += "-" }
      text.append(digit)
    }
    return CallID(unchecked: text)
  }

  /// A joinId made by the server, for clients that send none.
  private func makeJoinId() -> Base64Bytes {
    Base64Bytes([random(), random()].flatMap { word in (0..<8).map { UInt8(truncatingIfNeeded: word >> ($0 * 8)) } })
  }

  private func checkRoom(for caller: Caller) throws(RequestError) {
    guard caller.presentCalls < configuration.maximumCallsOfUser else {
      throw RequestError(.callBusy, "this user is in \(caller.presentCalls) calls: leave one first")
    }
  }

  func checkCount(_ callees: [Callee]) throws(RequestError) {
    guard callees.count <= configuration.limits.members else {
      throw RequestError(.callFull, "a call has at most \(configuration.limits.members) members")
    }
  }

  /// The envelopes for devices that will ring. Envelopes for callees who cannot be rung are dropped; for anyone else they are
  /// refused.
  private func ringEnvelopes(
    _ envelopes: [Envelope], callees: [Callee], ringable: Set<UserID>, keys: [Device: DeviceEntry], from joiner: Joiner
  ) throws(RequestError) -> [Envelope] {
    guard !envelopes.isEmpty else { return [] }
    guard envelopes.count <= StartCall.maximumEnvelopes else {
      throw RequestError(
        .keysTooLarge, "a start has at most \(StartCall.maximumEnvelopes) envelopes; other devices ring without one",
        field: "envelopes")
    }
    guard joiner.keyedDevice(number: 1) != nil else {
      throw RequestError(
        .keysNotAllowed, "a device without registered keys, a joinId and a joinKey hands out none", field: "envelopes")
    }
    let users = Set(callees.map(\.user))
    var seen: Set<Device> = []
    for (place, envelope) in envelopes.enumerated() {
      try envelope.check(epoch: 1, field: "envelopes.\(place)")
      guard users.contains(envelope.to.user), keys[envelope.to] != nil else {
        throw RequestError(
          .keysNotAllowed, "an envelope is for a device that no callee has", field: "envelopes.\(place).to")
      }
      guard seen.insert(envelope.to).inserted else {
        throw RequestError(.requestInvalid, "a device has two envelopes", field: "envelopes.\(place).to")
      }
    }
    return envelopes.filter { ringable.contains($0.to.user) }.map { envelope in
      var envelope = envelope
      envelope.from = joiner.device
      return envelope
    }
  }

  /// The first reply of a repeated `start` (rule 14); nil for a new one.
  /// - Throws: `call.exists` if the id belongs to another call, `request.invalid` if the joinId belongs to another
  ///   `start`.
  func firstReply(to request: StartCall, from token: JoinToken) throws(RequestError) -> Joined? {
    let first = starts[token].flatMap { calls[$0]?.start.reply } ?? ended.reply(to: token)
    if let first {
      guard request.id == nil || request.id == first.call.id else {
        throw RequestError(.requestInvalid, "a new joinId is needed for each call", field: "joinId")
      }
      return first
    }
    if let id = request.id, calls[id] != nil || ended.isKnown(id) {
      throw RequestError(.callExists, "there is or was a call with this id: make another random one", field: "id")
    }
    return nil
  }
}

extension RequestError {
  fileprivate static let startsNoCall = RequestError(
    .keysNotAllowed, "a device without registered keys starts no call: register its keys first")
}

extension ListEntry {
  /// It is on epoch 1's list before it has joined: no participant, joinId or joinKey yet.
  fileprivate init(ringing device: DeviceEntry) {
    self.init(
      user: device.user, device: device.device, participant: 0, joinId: nil, joinKey: nil,
      fingerprint: device.fingerprint, keys: device.keys)
  }
}

extension StartCall {
  /// - Throws: `request.invalid` unless the id is a random UUID (RFC 9562 section 5.4), in lower case.
  func checkedID() throws(RequestError) -> CallID {
    guard let id, id.isRandomUUID else {
      throw RequestError(
        .requestInvalid, "a call's id is a random UUID (version 4) in lower case, made by the client", field: "id")
    }
    return id
  }
}

extension CallID {
  /// 8-4-4-4-12 hexadecimal digits in lower case, of version 4 and variant 10.
  fileprivate var isRandomUUID: Bool {
    let characters = Array(text.utf8)
    guard characters.count == 36 else { return false }
    return characters.enumerated().allSatisfy { place, character in
      switch place {
      case 8, 13, 18, 23: character == UInt8(ascii: "-")
      case 14: character == UInt8(ascii: "4")
      case 19: "89ab".utf8.contains(character)
      default: "0123456789abcdef".utf8.contains(character)
      }
    }
  }
}
