import Contract
import MediaModel

/// Compares the list of the epoch in use with the call's members: a device that may hear but is absent is shown, and after a second look this device
/// stops sending (protocol section 5, "Rules of the client").
///
/// A value without clock. It counts time only while the server can be heard, so that an honest server on a bad network never stops anybody.
struct RosterWatch: Sendable {
  static let strangerTime: Duration = .seconds(5)
  static let departedTileTime: Duration = .seconds(3)
  static let departedQuestionTime: Duration = .seconds(10)
  static let departedTime: Duration = .seconds(15)
  /// After a reconnect the state may take so long: announcements that come before it name devices that this one has missed.
  static let stateTime: Duration = .seconds(10)
  /// A second stop so soon after the first waits for the person; time as a stranger adds up so long.
  static let memory: Duration = .seconds(60)

  enum Kind: Sendable { case stranger, departed }

  /// A listed device that is not in the call.
  struct Suspect: Sendable {
    var entry: ListEntry
    var kind: Kind
    /// Time that was counted up to `since`; with an older appearance within the last minute.
    var counted: Duration = .zero
    var since: Instant
    var isConfirmed = false
    /// It appeared while the call's state was out of date: nothing is said of it until the state has come.
    var isHidden = false
  }

  private(set) var suspects: [ParticipantNumber: Suspect] = [:]
  /// A stop that waits for the person.
  private(set) var isHeld = false
  private(set) var isConnected = true
  /// Events may have been lost since the last whole state.
  private var isStale = false
  private var staleUntil: Instant?
  /// This device's own number, which is never suspect.
  var own: ParticipantNumber = 0
  private var list: EpochList?
  private var members: [UserID: MemberState] = [:]
  /// Participants that were in the call at some time, with their user.
  private var seen: [ParticipantNumber: UserID] = [:]
  /// The subject of a suspicion that ended. A departed device that comes back honestly has a new number.
  private enum Past: Hashable {
    case stranger(Device)
    case departed(ParticipantNumber)

    init(_ entry: ListEntry, _ kind: Kind) {
      self = kind == .stranger ? .stranger(entry.address) : .departed(entry.participant)
    }
  }

  /// How long ended suspicions had lasted, and when they ended: a server must not reset the time by naming a ghost a member now and then.
  private var past: [Past: (counted: Duration, at: Instant)] = [:]
  /// Replies that a second look waits for.
  private var awaited = 0
  private var stopEnded: Instant?
  private var isStopped = false
  /// Stays that the person has accepted.
  private var accepted: Set<[UInt8]> = []

  // MARK: what it hears

  /// The call's whole state.
  mutating func see(_ state: [MemberState], now: Instant) {
    members = Dictionary(state.map { ($0.user, $0) }) { _, last in last }
    for member in state { note(member) }
    examineAll(now: now)
    if isConnected { showAll() }
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
    forgetUnlisted(now: now)
    // The others are judged by the members, which have not changed.
    for entry in changes.added { examine(entry, now: now) }
    settle(now: now)
  }

  /// Time counts only while the server can be heard, and begins anew when it can again.
  mutating func signaling(_ isConnected: Bool, now: Instant) {
    self.isConnected = isConnected
    awaited = 0
    isStale = true
    staleUntil = isConnected ? now.advanced(by: Self.stateTime) : nil
    for number in suspects.keys where suspects[number]?.isConfirmed == false {
      suspects[number]?.counted = .zero
      suspects[number]?.since = now
    }
  }

  /// A reply of the second look; nil when it failed though the server can be heard.
  mutating func answered(now: Instant) {
    guard awaited > 0 else { return }
    awaited -= 1
    guard awaited == 0 else { return }
    for (number, suspect) in suspects where isDue(suspect, now: now) { suspects[number]?.isConfirmed = true }
    settle(now: now)
  }

  /// The person sends in spite of these devices.
  mutating func accept() {
    for suspect in suspects.values { accepted.insert(suspect.entry.joinId?.bytes ?? []) }
    isHeld = false
    isStopped = false
  }

  // MARK: what follows

  /// The devices because of which this one must not send.
  func stopping(_ kind: Kind, now: Instant) -> [ListEntry] {
    suspects.values.filter { $0.kind == kind && isStopping($0, now: now) }.map(\.entry).sorted {
      $0.address < $1.address
    }
  }

  /// Whether the server is to be asked for the state and the list, once for each stretch of suspicion.
  mutating func takeQuestion(now: Instant) -> Bool {
    guard isConnected, awaited == 0 else { return false }
    let due = suspects.values.contains {
      !$0.isConfirmed && !isAccepted($0) && count($0, now: now) >= questionTime($0.kind)
    }
    if due { awaited = 2 }
    return due
  }

  /// The standing to show for a listed device that is not in the call.
  func standing(of participant: ParticipantNumber, now: Instant) -> Kind? {
    guard let suspect = suspects[participant], !suspect.isHidden else { return nil }
    return suspect.kind == .stranger || count(suspect, now: now) >= Self.departedTileTime ? suspect.kind : nil
  }

  var nextTimeout: Instant? {
    guard isConnected else { return nil }
    let next = suspects.values.compactMap { suspect -> Instant? in
      guard !isAccepted(suspect) else { return nil }
      let counted = suspect.counted
      let marks: [Duration] =
        suspect.kind == .stranger
        ? [Self.strangerTime] : [Self.departedTileTime, Self.departedQuestionTime, Self.departedTime]
      return marks.map { suspect.since.advanced(by: $0 - counted) }.filter { $0 > last }.min()
    }.min()
    return [next, staleUntil].compactMap { $0 }.min()
  }

  /// The time of the last `handleTimeout`: what was due by then is done.
  private var last = Instant(nanoseconds: 0)

  mutating func handleTimeout(now: Instant) {
    last = max(last, now)
    if let due = staleUntil, due <= now { showAll() }
    settle(now: now)
  }

  // MARK: inside

  private mutating func showAll() {
    isStale = false
    staleUntil = nil
    for number in suspects.keys { suspects[number]?.isHidden = false }
  }

  private mutating func note(_ member: MemberState) {
    for participant in member.participants { seen[participant.participant] = member.user }
  }

  private mutating func examineAll(now: Instant) {
    guard let list else { return }
    forgetUnlisted(now: now)
    for entry in list.entries { examine(entry, now: now) }
    settle(now: now)
  }

  private mutating func forgetUnlisted(now: Instant) {
    for (number, suspect) in suspects where list?[number].map({ $0 != suspect.entry }) ?? true {
      forget(number, now: now)
    }
  }

  private mutating func examine(_ entry: ListEntry, now: Instant) {
    let number = entry.participant
    guard number > 0, let kind = suspicion(entry) else { return forget(number, now: now) }
    guard suspects[number]?.kind != kind else { return }
    let before = past[Past(entry, kind)].flatMap { $0.at.duration(to: now) < Self.memory ? $0.counted : nil }
    let isHidden = isStale && suspects[number]?.isHidden ?? true
    suspects[number] = Suspect(entry: entry, kind: kind, counted: before ?? .zero, since: now, isHidden: isHidden)
  }

  /// Why a listed device is suspect: nobody heard that it joined, or it has gone.
  private func suspicion(_ entry: ListEntry) -> Kind? {
    guard entry.participant != own else { return nil }
    guard let member = members[entry.user] else { return .stranger }
    let isThere = member.participants.contains {
      $0.participant == entry.participant && $0.device == entry.device && $0.joinId == entry.joinId
    }
    if isThere { return member.state == .disconnected ? .departed : nil }
    if seen[entry.participant] == entry.user || member.state == .left || member.state == .disconnected {
      return .departed
    }
    // The same device has come back since, in a stay of its own.
    let isReplaced = member.participants.contains {
      $0.device == entry.device && $0.participant > entry.participant
    }
    return isReplaced ? .departed : .stranger
  }

  private mutating func forget(_ number: ParticipantNumber, now: Instant) {
    guard let suspect = suspects.removeValue(forKey: number) else { return }
    past[Past(suspect.entry, suspect.kind)] = (count(suspect, now: now), now)
    past = past.filter { $0.value.at.duration(to: now) < Self.memory }
  }

  private func count(_ suspect: Suspect, now: Instant) -> Duration {
    isConnected ? suspect.counted + suspect.since.duration(to: now) : suspect.counted
  }

  private func isAccepted(_ suspect: Suspect) -> Bool { accepted.contains(suspect.entry.joinId?.bytes ?? []) }

  private func questionTime(_ kind: Kind) -> Duration {
    kind == .stranger ? Self.strangerTime : Self.departedQuestionTime
  }

  private func isDue(_ suspect: Suspect, now: Instant) -> Bool {
    !isAccepted(suspect) && count(suspect, now: now) >= questionTime(suspect.kind)
  }

  private func isStopping(_ suspect: Suspect, now: Instant) -> Bool {
    guard suspect.isConfirmed, !isAccepted(suspect) else { return false }
    return suspect.kind == .stranger || count(suspect, now: now) >= Self.departedTime || !isConnected
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
