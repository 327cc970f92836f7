package import MediaModel

/// The server's view of this device's participant.
package enum ParticipantStanding: Sendable, Hashable {
  case absent
  /// It is in the call, but no media flows.
  case silent
  case connected
}

/// How a participant stays in its call: when it requests the state, an ICE restart, or rejoins (protocol section 4, rules 10 to 13 and 16).
///
/// A value without a clock: `handle` takes an input and returns the actions to take.
package struct Recovery: Sendable {
  /// How long to wait for the `call.state` that begins a connection.
  static let stateTime: Duration = .seconds(2)
  /// How long an ICE restart may take before the participant is replaced.
  static let restartTime: Duration = .seconds(8)

  package enum Input: Sendable {
    case signalingLost
    /// The connection is up again and the device registered.
    case signalingBack
    /// A `call.state`.
    case state(ParticipantStanding)
    /// A `call.member` of the own user.
    case standing(ParticipantStanding)
    /// The app's PeerConnection has lost its path.
    case mediaFailed
    case rejoined
    /// The lists of keys do not follow from each other: a new stay starts over.
    case historyBroken
    /// `rejoin` was answered with an error, or (nil) not at all.
    case rejoinFailed(code: String?)
  }

  package enum Action: Sendable, Hashable {
    case askState
    case restartMedia
    case rejoin
    /// There is no way back; the code is from protocol section 9.
    case giveUp(String)
  }

  private enum Phase: Sendable {
    case steady
    case unreachable
    case asking(until: Instant)
    case restarting(until: Instant)
    case rejoining
    case pausing(until: Instant)
    case over
  }

  private var phase = Phase.steady
  private var backoff = Backoff()
  /// Media has flowed: only then is its end a loss.
  private var wasConnected = false
  private var hasFailed = false

  package init() {}

  package mutating func handle(
    _ input: Input, now: Instant, using generator: inout some RandomNumberGenerator
  ) -> Action? {
    switch (input, phase) {
    case (_, .over): return nil
    case (.signalingLost, .rejoining), (.signalingLost, .pausing): return nil
    case (.signalingLost, _):
      phase = .unreachable
      return nil
    case (.signalingBack, .unreachable):
      phase = .asking(until: now.advanced(by: Self.stateTime))
      return nil
    case (.signalingBack, _): return nil
    // It may arrive before the registration is answered.
    case (.state(let standing), .asking), (.state(let standing), .unreachable): return firstState(standing, now: now)
    case (.state(let standing), .steady), (.state(let standing), .restarting), (.standing(let standing), .steady),
      (.standing(let standing), .restarting):
      return see(standing, now: now)
    case (.state, _), (.standing, _): return nil
    case (.historyBroken, .rejoining), (.historyBroken, .pausing): return nil
    case (.historyBroken, _): return rejoin()
    case (.mediaFailed, .steady): return restart(now: now)
    case (.mediaFailed, _):
      hasFailed = true
      return nil
    case (.rejoined, _):
      self = Recovery()
      return nil
    case (.rejoinFailed(let code), _):
      if let code, Self.isFinal(code) {
        phase = .over
        return .giveUp(code)
      }
      phase = .pausing(until: now.advanced(by: backoff.next(using: &generator)))
      return nil
    }
  }

  package mutating func handleTimeout(now: Instant) -> Action? {
    guard let nextTimeout, nextTimeout <= now else { return nil }
    switch phase {
    case .asking:
      phase = .asking(until: now.advanced(by: Self.stateTime * 4))
      return .askState
    case .restarting, .pausing: return rejoin()
    case .steady, .unreachable, .rejoining, .over: return nil
    }
  }

  package var nextTimeout: Instant? {
    switch phase {
    case .asking(let until), .restarting(let until), .pausing(let until): until
    case .steady, .unreachable, .rejoining, .over: nil
    }
  }

  /// While a rejoin is under way, events belong to the previous participant or to the next one.
  package var isRejoining: Bool { if case .rejoining = phase { true } else { false } }

  /// The first state on a connection: a participant that it shows as not connected does not wait for ICE to fail (rule 16).
  private mutating func firstState(_ standing: ParticipantStanding, now: Instant) -> Action? {
    guard standing == .connected else { return rejoin() }
    phase = .steady
    wasConnected = true
    return hasFailed ? restart(now: now) : nil
  }

  private mutating func see(_ standing: ParticipantStanding, now: Instant) -> Action? {
    switch standing {
    case .absent: return rejoin()
    case .connected:
      phase = .steady
      wasConnected = true
      return nil
    case .silent:
      guard wasConnected, case .steady = phase else { return nil }
      return restart(now: now)
    }
  }

  private mutating func restart(now: Instant) -> Action {
    hasFailed = false
    wasConnected = false
    phase = .restarting(until: now.advanced(by: Self.restartTime))
    return .restartMedia
  }

  private mutating func rejoin() -> Action {
    phase = .rejoining
    return .rejoin
  }

  /// Retrying would bring the same answer.
  private static func isFinal(_ code: String) -> Bool {
    switch code {
    case "call.not-found", "call.ended", "call.answered-elsewhere", "call.not-joined", "auth.forbidden",
      "request.invalid", "request.unknown":
      true
    default: false
    }
  }
}
