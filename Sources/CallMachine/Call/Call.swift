import CallMessages
import Contract
import MediaModel

/// One call: its members and what they may do to each other (protocol section 4, rules 1 to 17). Transitions put their consequences into
/// `Outputs`.
struct Call {
  enum Phase {
    /// Only the initiator has joined.
    case ringing
    case active(since: Timestamp)
    /// `wasActive`: somebody other than the initiator had joined.
    case ended(wasActive: Bool)
  }

  let id: CallID
  let media: CallMedia
  let initiator: UserID
  let startedAt: Timestamp
  let rules: CallRules
  let limits: CallLimits
  let metadata: Base64Bytes?
  /// The only callee of `start`, while nobody else has been invited (rule 9).
  var soleCallee: UserID?
  var silenced = Silenced()
  var phase = Phase.ringing
  var epochs: Epochs
  var joins = JoinMemory()
  var start: CallStart
  var journal = CallJournal()
  private var roster = Roster()
  /// The devices of participant numbers, including past ones.
  private(set) var numbers = ParticipantNumbers()
  /// As last announced.
  var speakers: [ParticipantNumber] = []
  var lastSeen = LastSeen()
  /// The number that the log has counted.
  var failures = 0
  /// nil if there are none that could be valid.
  var links: CallLinks?
  /// Guests who wait to be admitted. A restart forgets them, and they knock again.
  var knocks = Knocks()
  var waiting = WaitingChanges()
  /// nil while the call is not recorded.
  var recording: CallRecording?
  /// The recordings that have ended; their ids are not taken again.
  var endedRecordings: [RecordingID] = []
  /// Rises with each change of the state, also across restarts.
  var revision: UInt64 = 0
  /// Revisions are stored in steps, so that a change of a track writes nothing else.
  static let revisionStep: UInt64 = 1_024

  init(
    id: CallID, media: CallMedia, starter: Joiner, initiator: UserID? = nil, rules: CallRules, limits: CallLimits,
    metadata: Base64Bytes?, epochs: Epochs, now: Timestamp
  ) {
    self.id = id
    self.media = media
    self.initiator = initiator ?? starter.device.user
    startedAt = now
    self.rules = rules
    self.limits = limits
    self.metadata = metadata
    start = CallStart(token: starter.token)
    self.epochs = epochs
  }

  var isEnded: Bool { if case .ended = phase { true } else { false } }
  var isActive: Bool { if case .active = phase { true } else { false } }

  /// Restores a call as it was stored.
  init(
    restoring stored: StoredCall, _ progress: StoredProgress, rules: CallRules, limits: CallLimits, epochs: Epochs,
    members: [Member], numbers: ParticipantNumbers
  ) {
    id = stored.id
    media = stored.media
    initiator = stored.initiator
    startedAt = stored.startedAt
    self.rules = rules
    self.limits = limits
    metadata = stored.metadata
    start = CallStart(token: JoinToken(device: stored.starter, joinId: stored.joinId), reply: stored.reply)
    soleCallee = progress.soleCallee
    silenced = Silenced(wasAny: progress.hasSilenced == true)
    if let since = progress.activeSince { phase = .active(since: since) }
    self.epochs = epochs
    lastSeen = LastSeen(aloneSince: progress.aloneSince, departed: progress.lastThere)
    failures = progress.failures ?? 0
    links = progress.links.map(CallLinks.init)
    revision = progress.revisionLimit
    recording = progress.recording.map { CallRecording($0.statement, since: $0.since) }
    endedRecordings = progress.endedRecordings ?? []
    self.numbers = numbers
    roster = Roster(restoring: members)
  }

  // MARK: members

  var members: [Member] { roster.members }
  var ringingCount: Int { roster.ringing }
  var joinedCount: Int { roster.joined }
  var presentCount: Int { roster.present }

  func member(_ user: UserID) -> Member? { roster[user] }

  func place(of user: UserID) -> Int? { roster.place(of: user) }

  /// Removes a user whose data is deleted. The user must not be present or ringing.
  mutating func removeMember(_ user: UserID) { journal.touched.formUnion(roster.remove(user)) }

  /// Adds a member, or gives it a new phase. This is the only place where either happens.
  mutating func setPhase(_ phase: Member.Phase, of user: UserID, name: String? = nil, out: inout Outputs) {
    journal.touched.insert(user)
    let wasListening = member(user)?.isListening ?? false
    roster.setPhase(phase, of: user, name: name)
    let isListening = member(user)?.isListening ?? false
    if isListening != wasListening, !isEnded { out.add(.listens(user, isListening)) }
    if !isEnded { out.add(.memberMoved(user)) }
  }

  /// The members are ringing, and nobody has joined yet: a service started the call (protocol section 11).
  var awaitsFirst: Bool { numbers.last == 0 && ringingCount > 0 }

  /// A push woke devices of the user, so the ring's end is pushed, too. If the ring is already over, its end is pushed
  /// immediately.
  mutating func pushed(_ user: UserID, out: inout Outputs) {
    guard case .ringing(var ringing)? = member(user)?.phase else { return out.tell(.pushOver(user)) }
    ringing.isPushed = true
    journal.touched.insert(user)
    roster.change(user) { $0.phase = .ringing(ringing) }
  }

  /// Begins a joined member's transfer, or ends it (nil).
  mutating func setArriving(_ participant: Participant?, of user: UserID, out: inout Outputs) {
    journal.touched.insert(user)
    roster.change(user) { $0.arriving = participant }
    if !isEnded { out.add(.memberMoved(user)) }
  }

  mutating func letInByLink(_ user: UserID) {
    journal.touched.insert(user)
    roster.change(user) { $0.cameByLink = true }
  }

  /// Must be called for each new participant.
  mutating func remember(_ participant: Participant) {
    numbers.add(participant.number, participant.device, participant.joinId)
  }

  /// The device that has, or had, this number.
  func device(of number: ParticipantNumber) -> Device? {
    numbers[number] ?? members.lazy.flatMap(\.participants).first { $0.number == number }?.device
  }

  /// The joined participant of this number.
  func participant(_ number: ParticipantNumber) -> Participant? {
    guard let device = device(of: number), let participant = member(device.user)?.participant(on: device),
      participant.number == number, member(device.user)?.isJoined == true
    else { return nil }
    return participant
  }

  mutating func nextNumber() -> ParticipantNumber { numbers.next() }

  /// Changes a joined participant in place; nil if the device has none.
  /// - Parameter isStored: false for a change that a restart discards.
  mutating func withParticipant<Result>(
    of device: Device, isStored: Bool = true, _ change: (inout Participant) -> Result
  ) -> Result? {
    // No copy of the member may remain: each change of the tracks would copy them.
    guard roster[device.user]?.isJoined == true else { return nil }
    if isStored { journal.touched.insert(device.user) }
    return roster.change(device.user) { $0.change(device, change) } ?? nil
  }

  /// This device's joined participant.
  func participant(of device: Device) throws(RequestError) -> Participant {
    guard let member = member(device.user), member.isJoined, let participant = member.participant(on: device) else {
      throw RequestError(.callNotJoined, "this device is not in the call: join or rejoin it")
    }
    return participant
  }

  // MARK: who hears

  /// Joined, ringing or disconnected members: every device of theirs gets `call.member`.
  var listeners: [UserID] { members.filter(\.isListening).map(\.user) }

  var participantDevices: [Device] {
    var devices: [Device] = []
    devices.reserveCapacity(joinedCount)
    for member in members {
      guard case .joined(let participant) = member.phase else { continue }
      devices.append(participant.device)
      if let arriving = member.arriving { devices.append(arriving.device) }
    }
    return devices
  }

  func announce(_ user: UserID, _ cause: MemberCause, out: inout Outputs) {
    guard let member = member(user) else { return }
    let change = MemberChange(member: member.state, cause: cause)
    guard joinedCount < limits.crowd else { return out.add(.changed(change)) }
    let audience = member.isListening ? listeners : listeners + [user]
    out.event(.member(change), to: .users(audience))
  }

  // MARK: state

  func state(of phase: Phase) -> CallPhase {
    switch phase {
    case .ringing: .ringing
    case .active: .active
    case .ended: .ended
    }
  }

  var state: CallState {
    var state = stateWithoutMembers
    state.members = members.map(\.state)
    return state
  }

  var stateWithoutMembers: CallState {
    CallState(
      id: id, rev: revision, state: state(of: phase), media: media, initiator: initiator, startedAt: startedAt,
      answeredAt: activeSince, epoch: max(1, epochs.current), policy: rules.shown, members: [], metadata: metadata,
      recording: recording?.state)
  }

  /// When somebody other than the initiator joined first; nil before that, and after the end of the call.
  var activeSince: Timestamp? { if case .active(let since) = phase { since } else { nil } }

  /// `call.ring` for a ringing member, without an envelope.
  func ring(of user: UserID, members: @autoclosure () -> [MemberState]) -> Ring? {
    guard case .ringing(let ringing)? = member(user)?.phase else { return nil }
    let admissions = epochs.admissions
    let words = admissions.shown(admissions.needed(by: [user]))
    return Ring(
      from: ringing.by, media: media, members: members(), waiting: ringing.waiting, expiresAt: ringing.expiresAt,
      metadata: ringing.metadata, envelope: nil, list: nil, admissions: words.admissions, signers: words.signers)
  }

  /// `call.ring` for one device.
  func ring(for device: Device) -> Ring? {
    guard var ring = ring(of: device.user, members: members.map(\.state)) else { return nil }
    let key = epochs.ringEnvelope(for: device)
    ring.envelope = key?.envelope
    ring.list = key?.list
    return ring
  }

  /// `call.ring` for a topic: without the fields that belong to one device or one callee.
  func topicRing(of user: UserID, members: [MemberState]) -> Ring? {
    guard var ring = ring(of: user, members: members) else { return nil }
    ring.waiting = false
    ring.metadata = metadata
    ring.admissions = nil
    ring.signers = nil
    return ring
  }

  /// The member's part as the people's side keeps it.
  func part(of user: UserID) -> Membership.Part? {
    guard let member = member(user) else { return nil }
    let phase: Membership.Phase =
      switch member.phase {
      case .ringing: .ringing
      case .joined: .joined
      case .disconnected: .disconnected
      case .left, .declined, .missed, .cancelled: .away
      }
    return Membership.Part(phase: phase, devices: member.participants.map(\.device.device))
  }
}
