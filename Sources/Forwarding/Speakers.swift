import MediaModel

/// Who speaks in a call, the loudest first, without flapping: a place is lost only to one who is clearly louder.
struct Speakers {
  struct Entry {
    var participant: ParticipantNumber
    /// As `Loudness` counts.
    var loudness: Int
  }

  /// About −57 dBov: speech is above, a quiet room below.
  static let threshold = 70_000
  static let margin = 6_000

  private(set) var current: [ParticipantNumber] = []
  private var ranking: [Entry] = []

  /// Whether the list changed. Allocates nothing while it does not grow.
  mutating func update(_ entries: some Sequence<Entry>) -> Bool {
    ranking.removeAll(keepingCapacity: true)
    for entry in entries where entry.loudness >= Self.threshold { ranking.append(entry) }
    for i in ranking.indices { insert(i) }
    guard !ranking.lazy.map(\.participant).elementsEqual(current) else { return false }
    current.removeAll(keepingCapacity: true)
    for entry in ranking { current.append(entry.participant) }
    return true
  }

  /// Moves the entry at `i` ahead of those before it that it outranks.
  private mutating func insert(_ i: Int) {
    var i = i
    while i > 0, outranks(ranking[i], ranking[i - 1]) {
      ranking.swapAt(i, i - 1)
      i -= 1
    }
  }

  private func outranks(_ a: Entry, _ b: Entry) -> Bool {
    let lead = a.loudness - b.loudness
    guard abs(lead) < Self.margin else { return lead > 0 }
    switch (current.firstIndex(of: a.participant), current.firstIndex(of: b.participant)) {
    case (let a?, let b?): return a < b
    case (_?, nil): return true
    case (nil, _?): return false
    case (nil, nil): return lead > 0 || lead == 0 && a.participant < b.participant
    }
  }
}
