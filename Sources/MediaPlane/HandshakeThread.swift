import Forwarding
import LinuxIO

/// Runs the steps of one worker's handshakes on a separate thread with lower priority than the worker's. While a worker keeps a processor busy, handshakes get a
/// tenth of it: the kernel's weight for a nice value of 10.
final class HandshakeThread: HandshakeRunner, Sendable {
  /// Steps that were run, for the worker.
  let results: WorkerQueue<HandshakeStep>
  private let steps: WorkerQueue<HandshakeStep>
  private let thread: OSThread

  /// - Parameter index: the worker's number.
  init(_ index: Int) throws(SystemError) {
    let steps = try WorkerQueue<HandshakeStep>()
    let results = try WorkerQueue<HandshakeStep>()
    let epoll = try Epoll()
    try epoll.add(steps.descriptor, token: 0)
    thread = try OSThread(name: "handshakes-\(index)", isBackground: true) {
      Self.run(steps, results, waitingIn: epoll)
    }
    self.steps = steps
    self.results = results
  }

  deinit { steps.stop() }

  private static func run(
    _ steps: WorkerQueue<HandshakeStep>, _ results: WorkerQueue<HandshakeStep>, waitingIn epoll: borrowing Epoll
  ) {
    var taken: [HandshakeStep] = []
    while true {
      _ = epoll.wait(nanoseconds: nil)
      // The worker has ended, so nobody would take the results.
      if steps.take(into: &taken) { return }
      for step in taken {
        step.run()
        results.submit(step)
      }
      taken.removeAll(keepingCapacity: true)
    }
  }

  func run(_ step: HandshakeStep) { steps.submit(step) }

  /// Ends the thread and waits for it; may be called on any thread. Waiting steps are dropped.
  func stop() {
    steps.stop()
    thread.join()
  }
}
