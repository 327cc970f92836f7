import MediaModel

/// When people were last in a call: its length and the end of a member who is alone follow from that.
struct LastSeen {
  /// Since when one member has been alone (rule 9). The timer runs.
  var aloneSince: Timestamp?
  /// When the last of the departed participants was there; nil if nobody has left.
  private(set) var departed: Timestamp?
  /// The server's last outage: from the time when it is last known to have run until its start.
  var outage: ClosedRange<Timestamp>?

  init(aloneSince: Timestamp? = nil, departed: Timestamp? = nil) {
    self.aloneSince = aloneSince
    self.departed = departed
  }

  /// A participant of a call that began at `start` is about to go.
  mutating func note(_ participant: Participant, start: Timestamp, now: Timestamp) {
    departed = max(departed ?? start, lastHeard(participant, now: now))
  }

  /// When signaling or media of the participant was last up. A participant that was up when the server stopped, and has not returned, was up until that
  /// time.
  private func lastHeard(_ participant: Participant, now: Timestamp) -> Timestamp {
    guard let since = participant.goneSince else { return now }
    return outage.map { $0.contains(since) ? $0.lowerBound : since } ?? since
  }

  /// How long somebody was there from the given time on, in whole seconds.
  func seconds(since start: Timestamp, with participants: [Participant], now: Timestamp) -> Int {
    let heard = participants.map { lastHeard($0, now: now) }
    let last = (heard + [departed].compactMap { $0 }).max() ?? now
    // The clock may have been set back, and a damaged file may contain any time.
    guard last > start else { return 0 }
    return Int((last.milliseconds - start.milliseconds) / 1_000)
  }
}
