import MediaModel

extension Wishes {
  /// Of microphones nothing is wished.
  static let none = Wishes(lastN: .max)

  func priority(of track: UpTrack) -> Int { videos.isEmpty ? 0 : videos[track.track]?.priority ?? 0 }

  /// `ranked` without what is paused; higher priorities first among those that are alike to `SlotAllocator.ranked`: muted or not, screen or not.
  func applied(to ranked: [UpTrack]) -> [UpTrack] {
    guard !videos.isEmpty else { return ranked }
    let wanted = ranked.filter { videos[$0.track]?.isPaused != true }
    guard videos.contains(where: { $0.value.priority != 0 }) else { return wanted }
    let places = wanted.enumerated().map { (place: $0.offset, track: $0.element, priority: priority(of: $0.element)) }
    let sorted = places.sorted { a, b in
      if a.track.isMuted != b.track.isMuted { return b.track.isMuted }
      if a.track.isScreen != b.track.isScreen { return a.track.isScreen }
      return a.priority != b.priority ? a.priority > b.priority : a.place < b.place
    }
    return sorted.map(\.track)
  }
}
