/// Counters of one worker's TCP connections since its start.
package struct TCPCounters: Sendable {
  /// Why a connection was not accepted.
  package enum Rejection: Int, CaseIterable, Sendable {
    /// Participants occupy all places of the worker.
    case full
    /// Too many connections from this address have not yet proven that they belong to a participant.
    case tooManyWaiting
    /// The system is out of files or memory. Pending connections are accepted once it has some again.
    case exhausted
  }

  /// Why a connection ended.
  package enum Ending: Int, CaseIterable, Sendable {
    /// The other side closed it, or it broke.
    case gone
    /// It belongs to no participant, not yet or no longer.
    case unproven
    /// A length greater than a datagram may have.
    case tooLong
    /// It had proven nothing yet when all places were taken and another connection arrived.
    case evicted
  }

  /// Why a datagram was not sent.
  package enum Loss: Int, CaseIterable, Sendable {
    /// The connection does not accept what is sent to it.
    case slowReader
    /// The connection has ended.
    case ended
  }

  /// Current number of connections.
  package var open = 0
  package var accepted: UInt64 = 0
  private var rejections: InlineArray<3, UInt64> = .init(repeating: 0)
  private var endings: InlineArray<4, UInt64> = .init(repeating: 0)
  private var losses: InlineArray<2, UInt64> = .init(repeating: 0)

  package init() {}

  package internal(set) subscript(rejection: Rejection) -> UInt64 {
    get { rejections[rejection.rawValue] }
    set { rejections[rejection.rawValue] = newValue }
  }

  package internal(set) subscript(ending: Ending) -> UInt64 {
    get { endings[ending.rawValue] }
    set { endings[ending.rawValue] = newValue }
  }

  package internal(set) subscript(loss: Loss) -> UInt64 {
    get { losses[loss.rawValue] }
    set { losses[loss.rawValue] = newValue }
  }
}
