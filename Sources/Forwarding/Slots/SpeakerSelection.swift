import MediaModel

/// The speakers of a call: the dominant one, then the loudest, without flapping. A place is lost only to a clearly louder participant. The first place is lost to one that speaks
/// while the dominant speaker does not, or that has spoken beside it for `turn`: a claim to speak costs nothing, so they take turns. A guest takes the first place from no member
/// that speaks.
struct SpeakerSelection {
  struct Entry {
    var participant: ParticipantNumber
    /// As `Loudness` counts.
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

    /// To be a speaker: those who are need not be as loud. The dominant one stays.
    fileprivate var claim: Int {
      switch place {
      case nil: loudness
      case 0: .max
      case _?: loudness + SpeakerSelection.margin
      }
    }
  }

  /// About −57 dBov: speech is above, a quiet room below.
  static let threshold = 70_000
  static let margin = 6_000
  /// How long somebody speaks beside the dominant speaker before it becomes that for as long; a member beside a guest.
  static let turn = Duration.seconds(10)
  static let guestTurn = Duration.seconds(2)
  /// After so much silence of all others their time is counted from zero.
  private static let pause = Duration.seconds(2)

  /// The first is the dominant speaker.
  private(set) var current: [ParticipantNumber] = []
  /// Entries looked at since the start.
  private(set) var visits: UInt64 = 0
  private var ranking: [Entry] = []
  /// Since when others spoke beside the dominant speaker, and when the last one did.
  private var contested: (since: Instant, last: Instant)?
  /// Until when the dominant speaker has its turn.
  private var turnEnd = Instant(nanoseconds: 0)

  /// Whether the list changed. Its work is linear in the entries; it allocates nothing while the list does not grow.
  /// - Parameters:
  ///   - most: speakers at most.
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

  /// The place of the dominant speaker in the ranking: the one before, unless somebody displaces it or has its turn; when it is silent, the loudest. Several displace it:
  /// the one who has spoken most of late. Several have their turn: the one who was dominant longest ago.
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

  /// Keeps the entry if it is among the `most` with the strongest claim so far.
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

  /// Moves the entry at `i` ahead of those before it that it goes before.
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
