import MediaModel

@testable import Forwarding

/// Carries out one SFU's handshake steps one after the other, like a thread; a test sets the duration of each.
final class SimulatedHandshakes: HandshakeRunner {
  /// Milliseconds that a step takes.
  private let time: UInt64
  private var steps: [HandshakeStep] = []
  private var isDue: UInt64?
  /// Steps that the SFU took back.
  private(set) var finished = 0

  init(time: UInt64) { self.time = time }

  var isIdle: Bool { steps.isEmpty }

  func run(_ step: HandshakeStep) { steps.append(step) }

  /// The next step that is finished by a given time; nil when there is none.
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
