import MediaModel

@testable import Forwarding

/// Carries out one SFU's steps of handshakes, each for a time that a test sets, one after the other, as a thread does.
final class SimulatedHandshakes: HandshakeRunner {
  /// Milliseconds that a step takes.
  private let time: UInt64
  private var steps: [HandshakeStep] = []
  private var isDue: UInt64?
  /// Steps that were taken back by the SFU.
  private(set) var finished = 0

  init(time: UInt64) { self.time = time }

  var isIdle: Bool { steps.isEmpty }

  func run(_ step: HandshakeStep) { steps.append(step) }

  /// The next step that is done at a time; nil when there is none.
  func next(at millisecond: UInt64) -> HandshakeStep? {
    guard !steps.isEmpty else { return nil }
    let due = isDue ?? millisecond + time
    isDue = due
    guard due <= millisecond else { return nil }
    isDue = nil
    finished += 1
    let step = steps.removeFirst()
    step.run()
    return step
  }
}
