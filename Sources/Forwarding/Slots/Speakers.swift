import MediaModel

/// The speakers of a call, the loudest first, without flapping: a place is lost only to somebody clearly louder.
struct Speakers {
  struct Entry {
    var participant: ParticipantNumber
    /// As `Loudness` counts.
    var loudness: Int
    /// The index among the current speakers.
    fileprivate var place: Int?

    init(participant: ParticipantNumber, loudness: Int) {
      self.participant = participant
      self.loudness = loudness
    }

    /// To be a speaker: those who are need not be as loud.
    fileprivate var claim: Int { place == nil ? loudness : loudness + Speakers.margin }
  }

  /// About −57 dBov: speech is above, a quiet room below.
  static let threshold = 70_000
  static let margin = 6_000

  private(set) var current: [ParticipantNumber] = []
  /// Entries looked at since the start.
  private(set) var visits: UInt64 = 0
  private var ranking: [Entry] = []

  /// Whether the list changed. Its work is linear in the entries; it allocates nothing while the list does not grow.
  /// - Parameter most: speakers at most.
  mutating func update(_ entries: some Sequence<Entry>, most: Int) -> Bool {
    ranking.removeAll(keepingCapacity: true)
    for entry in entries where entry.loudness >= Self.threshold { admit(entry, most: most) }
    for i in ranking.indices { rise(i) { $0.outranks($1) } }
    guard !ranking.lazy.map(\.participant).elementsEqual(current) else { return false }
    current.removeAll(keepingCapacity: true)
    for entry in ranking { current.append(entry.participant) }
    return true
  }

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

extension Speakers.Entry {
  fileprivate func precedes(_ other: Self) -> Bool {
    claim != other.claim ? claim > other.claim : participant < other.participant
  }

  fileprivate func outranks(_ other: Self) -> Bool {
    let lead = loudness - other.loudness
    guard abs(lead) < Speakers.margin else { return lead > 0 }
    return switch (place, other.place) {
    case (let a?, let b?): a < b
    case (_?, nil): true
    case (nil, _?): false
    case (nil, nil): lead > 0 || lead == 0 && participant < other.participant
    }
  }
}
