import MediaModel

/// The speakers of a call: the dominant one, then the loudest, without flapping. A place is lost only to a clearly louder participant. The first place is lost to a
/// participant that speaks while the dominant speaker does not, or that has spoken beside it for `turn`: claiming to speak costs nothing, so they take turns. A
/// guest never takes the first place from a member that speaks.
struct SpeakerSelection {
  struct Entry {
    var participant: ParticipantNumber
    /// As measured by `Loudness`.
    var loudness: Int
    var isGuest: Bool
    /// When it last became the dominant speaker.
    var dominantAt: Instant
    /// The index among the current speakers.
    fileprivate var place: Int?
    /// The index among all entries.
    fileprivate var index = 0

    init(
      participant: ParticipantNumber, loudness: Int, isGuest: Bool = false,
      dominantAt: Instant = Instant(nanoseconds: 0)
    ) {
      self.participant = participant
      self.loudness = loudness
      self.isGuest = isGuest
      self.dominantAt = dominantAt
    }

    /// The claim to be a speaker: current speakers need not be as loud. The dominant one stays.
    fileprivate var claim: Int {
      switch place {
      case nil: loudness
      case 0: .max
      case _?: loudness + SpeakerSelection.margin
      }
    }
  }

  /// About −57 dBov: above is speech, below is a quiet room.
  static let threshold = 70_000
  static let margin = 6_000
  /// How long somebody speaks beside the dominant speaker before becoming dominant for the same time; shorter for a
  /// member beside a guest.
  static let turn = Duration.seconds(10)
  static let guestTurn = Duration.seconds(2)
  /// After this much silence of all others their time counts from zero.
  private static let pause = Duration.seconds(2)

  /// The first is the dominant speaker.
  private(set) var current: [ParticipantNumber] = []
  /// Entries examined since the start.
  private(set) var visits: UInt64 = 0
  private var ranking: [Entry] = []
  /// Since when others have spoken beside the dominant speaker, and when the last one did.
  private var contested: (since: Instant, last: Instant)?
  /// The time until which the dominant speaker has its turn.
  private var turnEnd = Instant(nanoseconds: 0)

  /// Returns whether the list changed. Linear in the number of entries; allocates nothing unless the list grows.
  /// - Parameters:
  ///   - most: the maximum number of speakers.
  ///   - scores: of the entry at an index.
  mutating func update(
    _ entries: some Sequence<Entry>, most: Int, now: Instant, scores: (Int) -> SpeechScores
  ) -> Bool {
    ranking.removeAll(keepingCapacity: true)
    var index = 0
    for var entry in entries {
      entry.index = index
      index += 1
      if entry.loudness >= Self.threshold { admit(entry, most: most) }
    }
    for i in ranking.indices { rise(i) { $0.outranks($1) } }
    putFirst(dominant(scores, now))
    guard !ranking.lazy.map(\.participant).elementsEqual(current) else { return false }
    current.removeAll(keepingCapacity: true)
    for entry in ranking { current.append(entry.participant) }
    return true
  }

  /// The index of the dominant speaker in the ranking: the previous one, unless another displaces it or is due for its turn; when the previous one is silent, the
  /// loudest. If several displace it: the one that has spoken most recently. If several are due: the one that was dominant longest ago.
  private mutating func dominant(_ scores: (Int) -> SpeechScores, _ now: Instant) -> Int {
    guard let known = ranking.firstIndex(where: { $0.place == 0 }) else {
      (contested, turnEnd) = (nil, now)
      return 0
    }
    let own = scores(ranking[known].index)
    let isGuest = ranking[known].isGuest
    var (best, place) = (0.0, known)
    var (turn, beside) = (known, known)
    for i in ranking.indices where i != known {
      visits &+= 1
      let challenger = scores(ranking[i].index)
      guard own.isSilent || isGuest || !ranking[i].isGuest else { continue }
      if challenger.displaces(own), challenger.medium > best { (best, place) = (challenger.medium, i) }
      guard challenger.isSpeech else { continue }
      beside = i
      if turn == known || ranking[i].hasTurn(before: ranking[turn]) { turn = i }
    }
    if beside != known { contested = (contested?.since ?? now, now) }
    if let last = contested?.last, last.advanced(by: Self.pause) < now { contested = nil }
    if place != known, own.isSilent || now >= turnEnd { return place }
    guard beside != known, let contested else { return known }
    let wait = isGuest && !ranking[turn].isGuest ? Self.guestTurn : Self.turn
    guard contested.since.advanced(by: wait) <= now, isGuest && !ranking[turn].isGuest || now >= turnEnd else {
      return known
    }
    self.contested = nil
    turnEnd = now.advanced(by: Self.turn)
    return turn
  }

  private mutating func putFirst(_ place: Int) { for i in (0..<place).reversed() { ranking.swapAt(i, i + 1) } }

  /// Keeps the entry if it is among the `most` with the strongest claims so far.
  private mutating func admit(_ entry: Entry, most: Int) {
    var entry = entry
    entry.place = current.firstIndex(of: entry.participant)
    visits &+= 1
    if ranking.count == most {
      guard let last = ranking.last, entry.precedes(last) else { return }
      ranking.removeLast()
    }
    ranking.append(entry)
    rise(ranking.count - 1) { $0.precedes($1) }
  }

  /// Moves the entry at `i` ahead of the preceding entries that it goes before.
  private mutating func rise(_ i: Int, by goesBefore: (Entry, Entry) -> Bool) {
    var i = i
    while i > 0, goesBefore(ranking[i], ranking[i - 1]) {
      visits &+= 1
      ranking.swapAt(i, i - 1)
      i -= 1
    }
  }
}

extension SpeakerSelection.Entry {
  fileprivate func precedes(_ other: Self) -> Bool {
    claim != other.claim ? claim > other.claim : participant < other.participant
  }

  fileprivate func hasTurn(before other: Self) -> Bool {
    isGuest != other.isGuest ? !isGuest : dominantAt < other.dominantAt
  }

  fileprivate func outranks(_ other: Self) -> Bool {
    let lead = loudness - other.loudness
    guard abs(lead) < SpeakerSelection.margin else { return lead > 0 }
    return switch (place, other.place) {
    case (let a?, let b?): a < b
    case (_?, nil): true
    case (nil, _?): false
    case (nil, nil): lead > 0 || lead == 0 && participant < other.participant
    }
  }
}
