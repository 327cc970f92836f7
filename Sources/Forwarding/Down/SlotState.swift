/// The state of a slot: what it does with its track, and how the next packet continues its stream. A pure value with one method for each transition.
///
/// Layers are identified by their rank among the track's encodings; a track with one encoding has rank 0.
enum SlotState: Equatable {
  /// How the first packet that is sent continues from the one before.
  enum Continuation: Equatable {
    case newSource
    /// The source was in this slot before a pause.
    case resumed
    /// Another layer of the same track, with the difference that converts its timestamps to those of the previous layer, if
    /// known.
    case layer(UInt32?)
  }

  /// The slot has no track.
  case empty
  /// Nothing is sent, because the receiver's rate or the worker's time has no room for the track.
  case withheld(rank: Int, Continuation)
  /// Nothing is sent until the next packet of the layer, or until its next key frame where key frames can be recognized. `next` is the layer to which
  /// the slot was switching when its source paused.
  case awaiting(rank: Int, next: Int?, Continuation)
  /// The layer's packets are sent.
  case running(rank: Int)
  /// The layer's packets are sent until the next key frame of `next`.
  case switching(rank: Int, next: Int)

  /// Packets are sent.
  var isRunning: Bool {
    switch self {
    case .running, .switching: true
    case .empty, .withheld, .awaiting: false
    }
  }

  var isWithheld: Bool { if case .withheld = self { true } else { false } }

  /// The layer whose packets the slot gets; nil without a track.
  var rank: Int? {
    switch self {
    case .empty: nil
    case .withheld(let rank, _), .awaiting(let rank, _, _), .running(let rank), .switching(let rank, _): rank
    }
  }

  /// The layer whose next key frame the slot waits for while it shows another one.
  var next: Int? {
    switch self {
    case .empty, .withheld, .running: nil
    case .awaiting(_, let next, _): next
    case .switching(_, let next): next
    }
  }

  /// It waits for a lower layer than it shows.
  var isSteppingDown: Bool {
    guard let rank, let next else { return false }
    return next < rank
  }

  /// A track takes the slot.
  mutating func take(rank: Int) { self = .awaiting(rank: rank, next: nil, .newSource) }

  /// The track leaves the slot.
  mutating func leave() { self = .empty }

  /// The first packet is sent.
  /// - Returns: how it continues the stream; nil in a state in which no packet can be the first.
  mutating func begin() -> Continuation? {
    guard case .awaiting(let rank, let next, let continuation) = self else { return nil }
    self = next.map { .switching(rank: rank, next: $0) } ?? .running(rank: rank)
    return continuation
  }

  /// The source was muted, the receiver was away, or a frame that others refer to was not sent. The source may continue at a later packet.
  mutating func pause() {
    guard let rank, isRunning else { return }
    self = .awaiting(rank: rank, next: next, .resumed)
  }

  /// The source starts again with other numbers.
  mutating func restart() {
    switch self {
    case .empty: break
    case .withheld(let rank, _): self = .withheld(rank: rank, .newSource)
    case .awaiting(let rank, _, _), .running(let rank), .switching(let rank, _):
      self = .awaiting(rank: rank, next: next, .newSource)
    }
  }

  /// There is no room for the track any longer. A switch that was under way ends.
  mutating func withhold() {
    switch self {
    case .empty, .withheld: break
    case .awaiting(let rank, _, let continuation): self = .withheld(rank: rank, continuation)
    case .running(let rank), .switching(let rank, _): self = .withheld(rank: rank, .resumed)
    }
  }

  /// There is room for the track again.
  mutating func admit() {
    guard case .withheld(let rank, let continuation) = self else { return }
    self = .awaiting(rank: rank, next: nil, continuation)
  }

  /// The slot switches to layer `next` at that layer's next key frame; nil keeps the current layer.
  mutating func expect(_ next: Int?) {
    switch self {
    case .empty, .withheld: break
    case .awaiting(let rank, _, let continuation): self = .awaiting(rank: rank, next: next, continuation)
    case .running(let rank), .switching(let rank, _):
      self = next.map { .switching(rank: rank, next: $0) } ?? .running(rank: rank)
    }
  }

  /// The slot shows another layer from that layer's next key frame on, and nothing until then.
  /// - Parameter difference: added to the layer's timestamps to get those of the layer before; nil if unknown.
  mutating func show(rank: Int, difference: UInt32?) {
    switch self {
    case .empty: break
    case .withheld(_, let continuation):
      self = .withheld(rank: rank, continuation.followed(by: difference))
    case .awaiting(_, _, let continuation):
      self = .awaiting(rank: rank, next: nil, continuation.followed(by: difference))
    case .running, .switching: self = .awaiting(rank: rank, next: nil, .layer(difference))
    }
  }
}

extension SlotState.Continuation {
  /// The continuation of another layer, where the layer before has sent nothing since this one was due.
  fileprivate func followed(by difference: UInt32?) -> Self {
    switch self {
    case .newSource: .newSource
    case .resumed: .layer(difference)
    case .layer(let before): .layer(before.flatMap { before in difference.map { before &+ $0 } })
    }
  }
}
