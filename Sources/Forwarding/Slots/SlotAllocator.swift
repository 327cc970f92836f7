import MediaModel

/// Chooses the tracks for a peer's slots when there are more tracks than slots.
enum SlotAllocator {
  /// A camera or microphone keeps its slot for this long before a louder one can take it, so that slots do not flap. A voice also keeps it
  /// while it speaks, for at most `Voices.turn`.
  static let hold = Duration.seconds(2)

  /// - Parameters:
  ///   - candidates: the first `limit` + 1 tracks that the peer may get, best first; fewer if there are no more.
  ///   - slots: of one kind, as are the tracks.
  ///   - limit: the most slots to fill.
  /// - Returns: a track or nothing for each slot, and until when a slot is held against a better ranked track.
  static func choose(
    _ candidates: [UpTrack], for slots: [DownTrack], of peer: Peer, _ wishes: Wishes, limit: Int, now: Instant
  ) -> (tracks: [UpTrack?], heldUntil: Instant?) {
    var choice = Choice(slots: slots, peer: peer, limit: limit)
    for track in candidates {
      guard track.isScreen, !track.isMuted else { break }
      choice.add(track)
    }
    var heldUntil: Instant?
    if choice.hasRoom, candidates.count > limit {
      // A slot is held against louder tracks, but not against a higher priority.
      let priority = wishes.priority(of: candidates[limit - 1])
      for track in candidates.prefix(limit) where wishes.priority(of: track) > priority { choice.add(track) }
      // All voices come before the other microphones.
      for isVoice in [true, false] {
        for slot in slots {
          guard let track = slot.source, track.isVoice == isVoice, !track.isSilent, slot.heldUntil > now,
            wishes.priority(of: track) >= priority, wishes.videos[track.track]?.isPaused != true, !wishes.mutes(track)
          else { continue }
          choice.add(track)
          heldUntil = min(heldUntil ?? .init(nanoseconds: .max), slot.heldUntil)
        }
        for track in candidates where isVoice && track.isVoice { choice.add(track) }
      }
    }
    for track in candidates {
      guard choice.hasRoom else { break }
      choice.add(track)
    }
    return (choice.assign(), heldUntil)
  }

  /// The tracks chosen for one peer's slots of one kind.
  private struct Choice {
    let slots: [DownTrack]
    let peer: Peer
    let limit: Int
    let pass: UInt64
    var chosen: [UpTrack] = []

    init(slots: [DownTrack], peer: Peer, limit: Int) {
      self.slots = slots
      self.peer = peer
      self.limit = limit
      peer.call.pass += 1
      pass = peer.call.pass
      chosen.reserveCapacity(limit)
    }

    var hasRoom: Bool { chosen.count < limit }

    mutating func add(_ track: UpTrack) {
      guard hasRoom, track.peer !== peer, track.chosenIn != pass, slots.contains(where: { carries($0, track) })
      else { return }
      track.chosenIn = pass
      chosen.append(track)
    }

    /// Tracks keep the slots that they have; the others fill the free ones.
    func assign() -> [UpTrack?] {
      var result = [UpTrack?](repeating: nil, count: slots.count)
      for (i, slot) in slots.enumerated() {
        guard let source = slot.source, source.chosenIn == pass, carries(slot, source) else { continue }
        result[i] = source
        source.placedIn = pass
      }
      for track in chosen where track.placedIn != pass {
        if let free = slots.indices.first(where: { result[$0] == nil && carries(slots[$0], track) }) {
          result[free] = track
          track.placedIn = pass
        }
      }
      return result
    }

    private func carries(_ slot: DownTrack, _ track: UpTrack) -> Bool {
      slot.carries(track.formatKey, of: peer.call.formats)
    }
  }
}

extension DownTrack {
  /// The time until which its source keeps the slot against a better ranked one.
  fileprivate var heldUntil: Instant {
    let held = since.advanced(by: SlotAllocator.hold)
    guard let source, source.isVoice else { return held }
    // Rounded to tenths of a second, so that the slots of a whole call are examined at few times.
    func rounded(_ instant: Instant) -> Instant {
      Instant(nanoseconds: (instant.nanoseconds / 100_000_000 + 1) * 100_000_000)
    }
    // Claiming to speak costs nothing: if there are more voices than slots, they take turns in these, too.
    let turn = rounded(since.advanced(by: Voices.turn))
    return max(held, min(rounded(source.peer.voice.speech.lastLoud.advanced(by: Voices.silence)), turn))
  }
}
