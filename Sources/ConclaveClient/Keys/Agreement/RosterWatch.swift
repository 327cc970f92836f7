import Contract
import MediaModel

/// Compares the list of the epoch in use with the call's members: a listed device that is not in the call is suspect as long as it is listed, people are warned
/// about it, and after a second look this device stops sending (protocol section 5.12).
///
/// A value without clock. A suspicion is about a device of a user, whatever its number. Its time counts while signaling is connected, so that an honest server on a
/// bad network never stops anybody. It accumulates across reconnects and across the numbers of the device, runs back while the device is listed and in the call,
/// and is forgotten a minute after the device was last listed.
struct RosterWatch: Sendable {
  static let strangerTime: Duration = .seconds(5)
  static let departedWarningTime: Duration = .seconds(3)
  static let departedQuestionTime: Duration = .seconds(10)
  static let departedTime: Duration = .seconds(15)
  /// After this time without a reply, on all connections together, a question counts as answered. A state that does not arrive after a reconnect delays no
  /// warning for longer.
  static let answerTime: Duration = .seconds(5)
  /// A second stop this soon after the first waits for the person; the suspicion of a device that is on no list is remembered for
  /// this long.
  static let memory: Duration = .seconds(60)

  enum Kind: Sendable {
    case stranger
    /// In the call, although nobody let its user in.
    case uninvited
    case departed
  }

  /// A listed device that is not in the call.
  struct Suspect: Sendable {
    var entry: ListEntry
    var kind: Kind
    /// The time counted up to `since`, including what remains of earlier suspicions.
    var counted: Duration
    var since: Instant
    var isConfirmed = false
  }

  /// A device with its key and its stay, as shown to a person.
  struct Shown: Hashable, Sendable {
    var device: Device
    var fingerprint: [UInt8]
    var joinId: [UInt8]
  }

  private struct Past: Sendable {
    /// The time that remained at `since`.
    var counted: Duration
    var since: Instant
    /// Since then the device is listed and in the call; otherwise it is on no list.
    var isListed: Bool
  }

  private struct SeenStay: Hashable, Sendable {
    var device: Device
    var joinId: Base64Bytes?
  }

  private struct Key: Hashable, Sendable {
    var device: Device
    var fingerprint: Base64Bytes
  }

  /// Time that accumulates while signaling is connected.
  private struct ConnectedTime: Sendable {
    var counted: Duration = .zero
    var since: Instant?

    func length(now: Instant) -> Duration { counted + (since?.duration(to: now) ?? .zero) }

    mutating func run(_ isRunning: Bool, now: Instant) {
      counted = length(now: now)
      since = isRunning ? now : nil
    }
  }

  private(set) var suspects: [Device: Suspect] = [:]
  /// A stop that waits for the person.
  private(set) var isHeld = false
  private(set) var isConnected = true
  /// The time since a reconnect after which no whole state has arrived: events may have been lost, and a warning waits for the
  /// state.
  private var stale: ConnectedTime?
  /// This device's own number, which is never suspect.
  var own: ParticipantNumber = 0
  private var list: EpochList?
  /// Devices of lists whose users nobody let in (section 5.13).
  private var uninvited: Set<Device> = []
  /// A look-up is open that may show who let them in.
  private var isUndecided = false
  private var members: [UserID: MemberState] = [:]
  /// Devices that were participants while the list in use showed them as such.
  private var seen: Set<Key> = []
  /// Stays that the server has named as participants at some time, whether or not they were on a list.
  private var named: Set<SeenStay> = []
  /// The remaining time of suspicions that have ended: naming a ghost a member for an instant, or giving it another number, does not restart the
  /// time.
  private var past: [Device: Past] = [:]
  /// Replies for which a second look waits, on this connection.
  private var awaited = 0
  private var stopEnded: Instant?
  private var isStopped = false
  /// Listed stays that the person has accepted.
  private var accepted: Set<Shown> = []
  /// Devices that nobody let in, which left the list before the person was told: they may have heard.
  private var untold: [Device: ListEntry] = [:]
  private static let untoldLimit = 256
  /// The suspects that the app knows of, and those that it was warned of.
  private var told: [Device: Kind] = [:]
  private var warned: [Device: Kind] = [:]

  /// The next stay of this device in the call remembers what this one suspected: a server must not restart the time by losing the participant.
  mutating func remember(_ former: RosterWatch, now: Instant) {
    for (device, rest) in former.past {
      past[device] = Past(counted: former.left(rest, now: now), since: now, isListed: false)
    }
    for (device, suspect) in former.suspects {
      past[device] = Past(counted: former.count(suspect, now: now), since: now, isListed: false)
    }
    seen = former.seen
    accepted = former.accepted
    isHeld = former.isHeld
    stopEnded = former.isStopped ? now : former.stopEnded
  }

  // MARK: what it hears

  /// The call's whole state.
  mutating func see(_ state: [MemberState], now: Instant) {
    members = Dictionary(state.map { ($0.user, $0) }) { _, last in last }
    for member in state { note(member) }
    if isConnected { stale = nil }
    for entry in list?.entries ?? [] { examine(entry, now: now) }
    settle(now: now)
  }

  mutating func see(_ member: MemberState, now: Instant) {
    members[member.user] = member
    note(member)
    for entry in list?.entries(of: member.user) ?? [] { examine(entry, now: now) }
    settle(now: now)
  }

  /// The list of the epoch in use. Devices that rang are on it before they join.
  mutating func use(_ list: EpochList, now: Instant) {
    let changes = list.changes(since: self.list)
    self.list = list
    for device in suspects.keys where list.position(of: device) == nil { end(device, isListed: false, now: now) }
    for (device, rest) in past where rest.isListed && list.position(of: device) == nil {
      past[device] = Past(counted: left(rest, now: now), since: now, isListed: false)
    }
    // The others are judged by the members, which have not changed.
    for entry in changes.added { examine(entry, now: now) }
    past = past.filter { left($0.value, now: now) > .zero }
    if !accepted.isEmpty { accepted = accepted.filter { list[$0.device].map(Shown.init) == $0 } }
    settle(now: now)
  }

  /// Takes the devices whose users nobody let in, as far as is known. While a look-up may still change this, no warning is due.
  mutating func see(uninvited devices: Set<Device>, isUndecided: Bool, now: Instant) {
    self.isUndecided = isUndecided
    guard devices != uninvited else { return }
    let changed = devices.symmetricDifference(uninvited)
    uninvited = devices
    for device in changed { if let entry = list?[device] { examine(entry, now: now) } }
    settle(now: now)
  }

  /// Time counts only while the server can be heard.
  mutating func signaling(_ isConnected: Bool, now: Instant) {
    for (device, suspect) in suspects {
      let counted = count(suspect, now: now)
      suspects[device]?.counted = counted
      suspects[device]?.since = now
    }
    for (device, rest) in past where rest.isListed {
      past[device] = Past(counted: left(rest, now: now), since: now, isListed: true)
    }
    self.isConnected = isConnected
    // The question is asked again on the next connection.
    awaited = 0
    var stale = self.stale ?? ConnectedTime()
    stale.run(isConnected, now: now)
    self.stale = stale
  }

  /// A reply of the second look; also one that failed although the server can be heard.
  mutating func answered(now: Instant) {
    guard awaited > 0 else { return }
    awaited -= 1
    guard awaited == 0 else { return }
    for (device, suspect) in suspects where isDue(suspect, now: now) { suspects[device]?.isConfirmed = true }
    settle(now: now)
  }

  /// The person sends although these devices may hear: exactly these, as they were shown.
  mutating func accept(_ shown: some Sequence<Shown>, now: Instant) {
    accepted.formUnion(shown)
    isHeld = false
    isStopped = suspects.values.contains { isStopping($0, now: now) }
  }

  // MARK: what follows

  /// Whether the server says that another device of this list has joined.
  func hasOthers(on list: EpochList) -> Bool {
    list.entries.contains { entry in
      entry.participant != own && members[entry.user]?.participants.contains { $0.device == entry.device } ?? false
    }
  }

  /// The devices because of which this device must not send.
  func stopping(_ kind: Kind, now: Instant) -> [ListEntry] {
    suspects.values.filter { $0.kind == kind && isStopping($0, now: now) }.map(\.entry).sorted {
      $0.address < $1.address
    }
  }

  func isAccepted(_ entry: ListEntry) -> Bool { accepted.contains(Shown(entry)) }

  /// Whether the server must be asked for the state and the list: once for each period of suspicion, and again on each connection until it answers.
  mutating func takeQuestion(now: Instant) -> Bool {
    guard isConnected, awaited == 0 else { return false }
    guard suspects.values.contains(where: { !isConfirmed($0, now: now) && isDue($0, now: now) }) else { return false }
    awaited = 2
    return true
  }

  /// Whether people must be warned about a suspect now. It is shown from the first moment on.
  func warns(of suspect: Suspect, now: Instant) -> Bool {
    guard isUpToDate(now: now) else { return false }
    // A device that came and went before its list was in use is a stranger by the list, and an honest server brings the next list soon.
    let isNamed = named.contains(SeenStay(device: suspect.entry.address, joinId: suspect.entry.joinId))
    switch suspect.kind {
    case .stranger: return !isNamed || count(suspect, now: now) >= Self.departedWarningTime
    case .uninvited: return !isUndecided || count(suspect, now: now) >= Self.strangerTime
    case .departed: return count(suspect, now: now) >= Self.departedWarningTime
    }
  }

  /// False after a reconnect, while events may have been lost: until a state has arrived or the time for it is over.
  private func isUpToDate(now: Instant) -> Bool { stale.map { $0.length(now: now) >= Self.answerTime } ?? true }

  /// Warns of devices that nobody let in and that have left. Otherwise a server could list one just while it withholds the reply that a warning waits for.
  private mutating func tellOfGone(_ lettingIn: LettingIn, now: Instant, into effects: inout [KeyEffect]) {
    guard !untold.isEmpty, isUpToDate(now: now) else { return }
    for (_, entry) in untold.sorted(by: { $0.key < $1.key }) where lettingIn.origin(of: entry) == .nobody {
      effects.append(.warn(KeyWarning(.uninvited, entry)))
    }
    untold = [:]
  }

  /// Tells of tiles that change, and warns of devices that may hear and are not in the call.
  mutating func tell(_ lettingIn: LettingIn, now: Instant, into effects: inout [KeyEffect]) {
    tellOfGone(lettingIn, now: now, into: &effects)
    guard !suspects.isEmpty || !told.isEmpty else { return }
    warned = warned.filter { suspects[$0.key]?.kind == $0.value }
    let news = suspects.filter { warned[$0.key] == nil && warns(of: $0.value, now: now) }
    for (device, suspect) in news.sorted(by: { $0.key < $1.key }) {
      warned[device] = suspect.kind
      effects.append(.warn(KeyWarning(Self.problem(suspect.kind), suspect.entry)))
    }
    let shown = suspects.mapValues(\.kind)
    guard shown != told else { return }
    told = shown
    effects.append(.tilesChanged)
  }

  private static func problem(_ kind: Kind) -> KeyWarning.Problem {
    switch kind {
    case .stranger: .notInCall
    case .uninvited: .uninvited
    case .departed: .mayStillHear
    }
  }

  var nextTimeout: Instant? {
    guard isConnected else { return nil }
    let marks = suspects.values.flatMap { suspect -> [Instant] in
      guard !isAccepted(suspect.entry) else { return [] }
      let marks: [Duration] =
        suspect.kind != .departed
        ? [Self.strangerTime, Self.strangerTime + Self.answerTime]
        : [Self.departedWarningTime, Self.departedQuestionTime, Self.departedTime]
      return marks.filter { $0 > suspect.counted }.map { suspect.since.advanced(by: $0 - suspect.counted) }
    }
    let state = stale.flatMap { stale in
      stale.counted < Self.answerTime ? stale.since?.advanced(by: Self.answerTime - stale.counted) : nil
    }
    return (marks + [state].compactMap { $0 }).filter { $0 > last }.min()
  }

  /// The time of the last `handleTimeout`: what was due by then is done.
  private var last = Instant(nanoseconds: 0)

  mutating func handleTimeout(now: Instant) {
    last = max(last, now)
    settle(now: now)
  }

  // MARK: inside

  private mutating func note(_ member: MemberState) {
    for participant in member.participants {
      named.insert(
        SeenStay(device: Device(user: member.user, device: participant.device), joinId: participant.joinId))
    }
  }

  private mutating func examine(_ entry: ListEntry, now: Instant) {
    let device = entry.address
    guard entry.participant > 0, entry.participant != own, let kind = suspicion(entry) else {
      return end(device, isListed: true, now: now)
    }
    if suspects[device]?.kind == kind {
      suspects[device]?.entry = entry
    } else {
      let known = suspects[device].map { count($0, now: now) } ?? past[device].map { left($0, now: now) } ?? .zero
      past[device] = nil
      suspects[device] = Suspect(entry: entry, kind: kind, counted: known, since: now)
    }
  }

  /// Why a listed device is suspect: it is not in the call as the list says, and was never seen so, or has left since.
  private mutating func suspicion(_ entry: ListEntry) -> Kind? {
    let key = Key(device: entry.address, fingerprint: entry.fingerprint)
    let member = members[entry.user]
    let isThere = member?.participants.contains {
      $0.participant == entry.participant && $0.device == entry.device && $0.joinId == entry.joinId
    }
    if isThere == true {
      seen.insert(key)
      if member?.state == .disconnected { return .departed }
      return uninvited.contains(entry.address) ? .uninvited : nil
    }
    return seen.contains(key) ? .departed : .stranger
  }

  /// The device is no longer suspect.
  private mutating func end(_ device: Device, isListed: Bool, now: Instant) {
    if let suspect = suspects.removeValue(forKey: device) {
      let isUntold = suspect.kind == .uninvited && warned[device] != .uninvited
      if !isListed, !isUndecided, isUntold, untold.count < Self.untoldLimit { untold[device] = suspect.entry }
      past[device] = Past(counted: count(suspect, now: now), since: now, isListed: isListed)
    } else if let rest = past[device], rest.isListed != isListed {
      past[device] = Past(counted: left(rest, now: now), since: now, isListed: isListed)
    }
  }

  private func left(_ rest: Past, now: Instant) -> Duration {
    let passed = rest.since.duration(to: now)
    if rest.isListed { return isConnected ? max(.zero, rest.counted - passed) : rest.counted }
    return passed < Self.memory ? rest.counted : .zero
  }

  /// Never more than the time that stops sending permanently.
  private func count(_ suspect: Suspect, now: Instant) -> Duration {
    min(Self.departedTime, isConnected ? suspect.counted + suspect.since.duration(to: now) : suspect.counted)
  }

  private func questionTime(_ kind: Kind) -> Duration {
    kind == .departed ? Self.departedQuestionTime : Self.strangerTime
  }

  private func isDue(_ suspect: Suspect, now: Instant) -> Bool {
    !isAccepted(suspect.entry) && count(suspect, now: now) >= questionTime(suspect.kind)
  }

  /// The second look has confirmed it, or its question, which is asked whenever the server can be heard, has been open for long enough.
  private func isConfirmed(_ suspect: Suspect, now: Instant) -> Bool {
    suspect.isConfirmed || count(suspect, now: now) >= questionTime(suspect.kind) + Self.answerTime
  }

  private func isStopping(_ suspect: Suspect, now: Instant) -> Bool {
    guard isConfirmed(suspect, now: now), !isAccepted(suspect.entry) else { return false }
    return suspect.kind != .departed || count(suspect, now: now) >= Self.departedTime
  }

  /// Begins or ends a stop.
  private mutating func settle(now: Instant) {
    let stops = suspects.values.contains { isStopping($0, now: now) }
    if stops, !isStopped {
      isHeld = isHeld || stopEnded.map { $0.duration(to: now) < Self.memory } ?? false
    } else if !stops, isStopped {
      stopEnded = now
    }
    isStopped = stops
  }
}

extension RosterWatch.Shown {
  init(_ entry: ListEntry) {
    self.init(device: entry.address, fingerprint: entry.fingerprint.bytes, joinId: entry.joinId?.bytes ?? [])
  }

  /// nil for a device with invalid ids.
  init?(_ listed: ListedDevice) {
    guard let user = UserID(listed.user), let device = DeviceID(listed.device) else { return nil }
    self.init(
      device: Device(user: user, device: device), fingerprint: listed.fingerprint, joinId: listed.joinId)
  }
}
