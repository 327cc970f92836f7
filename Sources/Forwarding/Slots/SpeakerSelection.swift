import MediaModel

/// The speakers of a call: the dominant one, then the loudest, without flapping. A place is lost only to somebody clearly louder, the first only to
/// somebody who speaks while the dominant speaker does not.
struct SpeakerSelection {
  struct Entry {
    var participant: ParticipantNumber
    /// As `Loudness` counts.
    var loudness: Int
    /// The index among the current speakers.
    fileprivate var place: Int?
    /// The index among all entries.
    fileprivate var index = 0

    init(participant: ParticipantNumber, loudness: Int) {
      self.participant = participant
      self.loudness = loudness
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

  /// The first is the dominant speaker.
  private(set) var current: [ParticipantNumber] = []
  /// Entries looked at since the start.
  private(set) var visits: UInt64 = 0
  private var ranking: [Entry] = []

  /// Whether the list changed. Its work is linear in the entries; it allocates nothing while the list does not grow.
  /// - Parameters:
  ///   - most: speakers at most.
  ///   - scores: of the entry at an index.
  mutating func update(_ entries: some Sequence<Entry>, most: Int, scores: (Int) -> SpeechScores) -> Bool {
    ranking.removeAll(keepingCapacity: true)
    var index = 0
    for var entry in entries {
      entry.index = index
      index += 1
      if entry.loudness >= Self.threshold { admit(entry, most: most) }
    }
    for i in ranking.indices { rise(i) { $0.outranks($1) } }
    putFirst(dominant(scores))
    guard !ranking.lazy.map(\.participant).elementsEqual(current) else { return false }
    current.removeAll(keepingCapacity: true)
    for entry in ranking { current.append(entry.participant) }
    return true
  }

  /// The place of the dominant speaker in the ranking: the one before, unless somebody displaces it; when it is silent, the loudest. Several displace it:
  /// the one who has spoken most of late.
  private mutating func dominant(_ scores: (Int) -> SpeechScores) -> Int {
    guard let known = ranking.firstIndex(where: { $0.place == 0 }) else { return 0 }
    let own = scores(ranking[known].index)
    var (best, place) = (0.0, known)
    for i in ranking.indices where i != known {
      visits &+= 1
      let challenger = scores(ranking[i].index)
      if challenger.displaces(own), challenger.medium > best { (best, place) = (challenger.medium, i) }
    }
    return place
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
