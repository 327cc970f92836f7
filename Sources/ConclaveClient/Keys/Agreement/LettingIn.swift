import Contract
package import MediaModel

/// The words of the call, and the users whom they let in for this client (protocol section 5.13).
///
/// A user who was let in stays so, across stays. Words that have let somebody in are forgotten; those that have not yet are judged again when something new is
/// known.
package struct LettingIn: Sendable {
  /// How many words, and devices that signed them, are read from a body and kept.
  static let limit = 8_256
  /// A client without a root waits for look-ups this long after its first list.
  static let lookUpTime: Duration = .seconds(5)

  /// How this device joined the call, which determines which words for its own user count.
  package enum Entrance: Sendable {
    case started
    /// The user of the newest ring, or the people whom this user has just called.
    case invited(by: Set<UserID>)
    case link(LinkSecret)
    /// A link that was made without a call: the server has named the call, so the device that made the link must have started it. `own` is this device.
    case lasting(LinkSecret, own: Device)
    /// After a restart of the app, which has kept the root of the call.
    case back(root: UserID)
    /// After a restart of an app that has kept no root, or by a transfer: any chain of good words counts.
    case other
  }

  /// The user or link that a word lets in, or that signs it.
  private enum Subject: Hashable, Sendable {
    case user(UserID)
    /// A guest's device: a link lets in no other device of the guest.
    case guest(UserID, [UInt8])
    case link([UInt8])
  }

  /// The signer of the word that let a user or link in.
  private enum Origin: Sendable {
    case root
    case member(UserID)
    /// A link that this user made.
    case link(UserID)
  }

  /// A word that has not let anybody in so far.
  private struct Word: Sendable {
    var admission: Admission
    var subject: Subject
    /// Its signature was checked, and is good.
    var isGood = false
    /// The signature of the member who admitted the guest was checked, and is good.
    var isAdmitted = false
  }

  private let call: CallID
  private let entrance: Entrance
  private var open: [Word] = []
  /// Devices that signed words and are on no list, as shown by the server.
  private var signers: [[UInt8]: DeviceKeys] = [:]
  private var letIn: [Subject: Origin] = [:]
  /// Links that are let in and whose guests wait until a member admits them.
  private var waitingLinks: Set<[UInt8]> = []
  /// The user who started the call, by the chain of words for this device's own user.
  private(set) var root: UserID?
  /// Listed devices whose user no word has let in.
  private(set) var uninvited: [Device: ListEntry] = [:]
  /// Something is known by which the words have not been judged.
  private var isStale = false
  private var judgedPins = 0
  /// When a client without a root counts as let in by the service although a look-up is open.
  private var rootDue: Instant?
  private(set) var isLetInByService = false

  init(_ call: CallID, _ entrance: Entrance) {
    self.call = call
    self.entrance = entrance
    if case .back(let root) = entrance { begin(at: root) }
  }

  var nextTimeout: Instant? { root == nil && !isLetInByService && lasting == nil ? rootDue : nil }

  /// The lasting link by which this device came.
  private var lasting: (secret: LinkSecret, own: Device)? {
    if case .lasting(let secret, let own) = entrance { (secret, own) } else { nil }
  }

  /// Whether it judges who is uninvited. The service lets nobody in by a lasting link.
  private var judges: Bool { root != nil || lasting != nil }

  /// The next stay of this device in the call continues with what this one knew.
  mutating func remember(_ former: LettingIn) {
    let stale = !open.isEmpty
    self = former
    uninvited = [:]
    isStale = isStale || stale
  }

  // MARK: what it hears

  /// Words that came with an accepted list, or with a ring. `isWhole`: they include everything that the list needs.
  mutating func take(_ admissions: [Admission]?, _ signers: [Signer]?, isWhole: Bool) {
    if isWhole {
      open = []
      self.signers = [:]
    }
    for signer in (signers ?? []).prefix(Self.limit) where self.signers.count < Self.limit {
      guard let keys = DeviceKeys(Device(user: signer.user, device: signer.device), keys: signer.keys),
        keys.fingerprint == signer.fingerprint.bytes
      else { continue }
      self.signers[keys.fingerprint] = keys
    }
    for word in (admissions ?? []).prefix(Self.limit) where open.count < Self.limit {
      let subject = Self.subject(of: word)
      if word.isWellFormed, letIn[subject] == nil { open.append(Word(admission: word, subject: subject)) }
    }
    isStale = true
  }

  /// This client started the call: it is its own root.
  mutating func start(as own: UserID) { begin(at: own) }

  private mutating func begin(at root: UserID) {
    self.root = root
    letIn[.user(root)] = .root
    isStale = true
  }

  /// A ring's words have arrived, including everything that this client needs to find its root.
  mutating func accept(_ ring: Ring, now: Instant) {
    take(ring.admissions, ring.signers, isWhole: false)
    rootDue = now
  }

  /// A list was accepted.
  mutating func admit(_ list: EpochList, added: [ListEntry], isFirst: Bool, now: Instant) {
    rootDue = rootDue ?? now.advanced(by: Self.lookUpTime)
    if judges { note(isFirst ? list.entries : added) }
    // The signers of words are on it.
    isStale = true
  }

  /// The epoch of a list is in use. A device that is neither on it nor on the newest list hears nothing any longer.
  mutating func use(_ list: EpochList, newest: EpochList?) {
    uninvited = uninvited.filter { device, _ in list[device] != nil || newest?[device] != nil }
  }

  /// Public keys arrived, or a person has trusted a device.
  mutating func reconsider() { isStale = true }

  // MARK: what follows

  /// Whether guests who come by the link wait, and it is a link of this call. A client without a root judges by the link's word alone.
  mutating func isWaiting(_ link: [UInt8], own: OwnStay, known: KnownDevices, work: PublicWork) -> Bool {
    guard root == nil, isLetInByService else { return waitingLinks.contains(link) }
    var bad: Set<Int> = []
    return open.indices.contains { index in
      open[index].subject == .link(link) && open[index].admission.waits == true
        && signer(of: open[index].admission, own, known) != nil && isGood(index, known, work, bad: &bad)
    }
  }

  /// How the user of a listed device was let in; nil if this client has no chain of words by which to judge.
  func origin(of entry: ListEntry) -> LetIn? {
    guard judges else { return nil }
    let found = letIn[.user(entry.user)] ?? letIn[.guest(entry.user, entry.fingerprint.bytes)]
    switch found {
    case .root: return .started
    case .member(let user): return .by(user: user.text)
    case .link(let user): return .link(of: user.text)
    case nil: return .nobody
    }
  }

  /// Judges the words that have not let anybody in, if something new is known. `list` is the newest.
  mutating func judge(_ list: EpochList?, own: OwnStay, known: KnownDevices, work: PublicWork) {
    guard isStale || judgedPins != known.pins.revision else { return }
    isStale = false
    judgedPins = known.pins.revision
    if root == nil, let found = findRoot(own, known, work) {
      root = found
      uninvited = [:]
      note(list?.entries ?? [])
    }
    guard root != nil, !open.isEmpty else { return }
    spread(own, known, work)
    uninvited = uninvited.filter { !isLetIn($0.value) }
  }

  /// Reports when a client is let in only by the service, and when that is over.
  mutating func tell(isLookingUp: Bool, now: Instant, into effects: inout [KeyEffect]) {
    let isByService =
      root == nil && lasting == nil && rootDue != nil && (!isLookingUp || rootDue.map { $0 <= now } ?? false)
    guard isByService != isLetInByService, isByService || root != nil else { return }
    isLetInByService = isByService
    effects.append(.letInByService(isByService))
  }

  // MARK: inside

  private func isLetIn(_ entry: ListEntry) -> Bool {
    letIn[.user(entry.user)] != nil
      || entry.user.isGuest && letIn[.guest(entry.user, entry.fingerprint.bytes)] != nil
  }

  private mutating func note(_ entries: [ListEntry]) {
    for entry in entries where entry.participant > 0 && !isLetIn(entry) && entry.address != lasting?.own {
      uninvited[entry.address] = entry
    }
  }

  private static func subject(of word: Admission) -> Subject {
    guard let user = word.user else { return .link(word.link?.bytes ?? []) }
    return word.isByLink && user.isGuest ? .guest(user, word.fingerprint.bytes) : .user(user)
  }

  private func keys(of word: Admission, _ known: KnownDevices) -> DeviceKeys? { keys(word.fingerprint, known) }

  private func keys(_ fingerprint: Base64Bytes, _ known: KnownDevices) -> DeviceKeys? {
    known.directory[fingerprint] ?? signers[fingerprint.bytes]
  }

  /// The signer of a word, which counts if that signer is let in; nil if its device is not known, or its words do not count for this client.
  private func signer(of word: Admission, _ own: OwnStay, _ known: KnownDevices) -> Subject? {
    if word.isByLink { return .link(word.link?.bytes ?? []) }
    return member(with: word.fingerprint, own, known)
  }

  /// The user of a device whose signatures let people in.
  private func member(with fingerprint: Base64Bytes, _ own: OwnStay, _ known: KnownDevices) -> Subject? {
    guard let keys = keys(fingerprint, known) else { return nil }
    let device = keys.address
    // Guests let nobody in.
    guard !device.user.isGuest else { return nil }
    guard !known.pins.isRevoked(device.user, keys.fingerprint) else { return nil }
    if device == own.address { return keys.fingerprint == own.identity.fingerprint ? .user(device.user) : nil }
    if let pin = known.pins[device] {
      guard pin.fingerprint == keys.fingerprint else { return nil }
    } else if known.pins.knows(device.user) || device.user == own.address.user {
      // A server could sign with a new device of an absent member. Devices of accepted lists are pinned.
      return nil
    }
    return .user(device.user)
  }

  /// Whether the word is that of a guest who comes by a link whose guests wait.
  private func isOfWaitingGuest(_ word: Admission) -> Bool {
    word.isByLink && word.user?.isGuest == true && waitingLinks.contains(word.link?.bytes ?? [])
  }

  /// The member who is let in and has admitted the guest whose word it is; nil if there is none. A bad signature is marked as a bad word is.
  private mutating func admitter(
    _ index: Int, _ own: OwnStay, _ known: KnownDevices, bad: inout Set<Int>
  ) -> UserID? {
    guard let by = open[index].admission.admittedBy, let keys = keys(by.fingerprint, known),
      let member = member(with: by.fingerprint, own, known), letIn[member] != nil
    else { return nil }
    if !open[index].isAdmitted { open[index].isAdmitted = open[index].admission.isAdmitted(into: call, by: keys) }
    guard open[index].isAdmitted else {
      bad.insert(index)
      return nil
    }
    return keys.address.user
  }

  /// The word lets its subject in.
  private mutating func admit(_ word: Word, by origin: Origin) {
    letIn[word.subject] = origin
    if case .link(let link) = word.subject, word.admission.waits == true { waitingLinks.insert(link) }
  }

  /// Whether the word's signature is good. Each is checked once: a bad one is marked to be dropped.
  private mutating func isGood(
    _ index: Int, _ known: KnownDevices, _ work: PublicWork, bad: inout Set<Int>
  ) -> Bool {
    if open[index].isGood { return true }
    guard !bad.contains(index) else { return false }
    open[index].isGood = work.isGood(
      open[index].admission, in: call, by: keys(of: open[index].admission, known))
    if !open[index].isGood { bad.insert(index) }
    return open[index].isGood
  }

  private mutating func drop(_ indices: Set<Int>) {
    guard !indices.isEmpty else { return }
    open = open.indices.filter { !indices.contains($0) }.map { open[$0] }
  }

  /// Follows good words from this device's own user to a user whose device signed a root, and lets in everybody on the way.
  private mutating func findRoot(_ own: OwnStay, _ known: KnownDevices, _ work: PublicWork) -> UserID? {
    var words: [Subject: [Int]] = [:]
    for index in open.indices { words[open[index].subject, default: []].append(index) }
    let user = own.address.user
    let first: Subject = if user.isGuest { .guest(user, own.identity.fingerprint) } else { .user(user) }
    /// The word that led to a signer.
    var below: [Subject: Int] = [:]
    var reached: Set = [first]
    var next = [first]
    var bad: Set<Int> = []
    defer { drop(bad) }
    while let subject = next.popLast() {
      for index in words[subject] ?? [] {
        let word = open[index].admission
        guard counts(word, for: subject, isOwn: subject == first, known), let signer = signer(of: word, own, known),
          isGood(index, known, work, bad: &bad)
        else { continue }
        if signer == subject, case .user(let root) = signer {
          guard mayBeRoot(root, known) else { continue }
          letIn[signer] = .root
          letInBelow(signer, below)
          return root
        }
        if reached.insert(signer).inserted {
          below[signer] = index
          next.append(signer)
        }
      }
    }
    return nil
  }

  /// An accomplice who lets in the one who made a lasting link does not become the one who started its call.
  private func mayBeRoot(_ user: UserID, _ known: KnownDevices) -> Bool {
    guard let lasting else { return true }
    return keys(Base64Bytes(lasting.secret.maker), known)?.address.user == user
  }

  /// Whether a client without a root counts a word. For its own user it counts the words of its inviters, or of the link by which it came.
  private func counts(_ word: Admission, for subject: Subject, isOwn: Bool, _ known: KnownDevices) -> Bool {
    switch entrance {
    case .started, .back, .other: return true
    case .invited(let users):
      return !isOwn || !word.isByLink && keys(of: word, known).map { users.contains($0.address.user) } == true
    case .link(let secret), .lasting(let secret, _):
      let link = secret.link(of: call)
      if isOwn { return word.isByLink && word.link?.bytes == link }
      return subject != .link(link) || word.fingerprint.bytes == secret.maker
    }
  }

  private mutating func letInBelow(_ root: Subject, _ below: [Subject: Int]) {
    var signer = root
    // A signer is reached once, so this terminates.
    while let index = below[signer] {
      let word = open[index]
      // The member who admitted a guest is judged with all other words.
      if !isOfWaitingGuest(word.admission) { admit(word, by: origin(signer)) }
      signer = word.subject
    }
  }

  /// Follows words from the users and links that are let in to those that they let in, and so on.
  private mutating func spread(_ own: OwnStay, _ known: KnownDevices, _ work: PublicWork) {
    var signed: [Subject: [Int]] = [:]
    for index in open.indices {
      let word = open[index].admission
      if let signer = signer(of: word, own, known) { signed[signer, default: []].append(index) }
      // It waits for both: its link, and the member who has admitted the guest.
      if let by = word.admittedBy, let member = member(with: by.fingerprint, own, known) {
        signed[member, default: []].append(index)
      }
    }
    var bad: Set<Int> = []
    var next = signed.keys.filter { letIn[$0] != nil }
    while let signer = next.popLast() {
      for index in signed.removeValue(forKey: signer) ?? [] {
        let word = open[index]
        guard letIn[word.subject] == nil, let signer = self.signer(of: word.admission, own, known),
          letIn[signer] != nil, isGood(index, known, work, bad: &bad)
        else { continue }
        var origin = origin(signer)
        if isOfWaitingGuest(word.admission) {
          guard let member = admitter(index, own, known, bad: &bad) else { continue }
          origin = .member(member)
        }
        admit(word, by: origin)
        next.append(word.subject)
      }
    }
    drop(bad.union(open.indices.filter { letIn[open[$0].subject] != nil }))
  }

  private func origin(_ signer: Subject) -> Origin {
    switch signer {
    case .user(let user), .guest(let user, _): return .member(user)
    case .link:
      guard case .member(let maker)? = letIn[signer] else { return .root }
      return .link(maker)
    }
  }
}
