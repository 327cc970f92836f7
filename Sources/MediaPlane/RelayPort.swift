import Forwarding
import LinuxIO
import Synchronization

/// The rings between all workers, and the means to wake each of them.
final class RelayExchange: Sendable {
  /// Tells a worker that other workers have published something.
  final class Bell: Sendable {
    let event: EventFD
    /// It was rung and not heard yet, so that a busy worker costs the others no system calls.
    private let isRung = Atomic<Bool>(false)

    init() throws(SystemError) { event = try EventFD() }

    func ring() { if !isRung.exchange(true, ordering: .acquiringAndReleasing) { event.signal() } }

    /// Must be called before the rings are read. Both sides exchange the flag, so one of them sees what the other did
    /// before.
    func hear() {
      event.drain()
      _ = isRung.exchange(false, ordering: .acquiringAndReleasing)
    }
  }

  let bells: [Bell]
  /// The first index is the writing worker, the second the reading one.
  let rings: [[RelayRing]]

  init(workers: Int) throws(SystemError) {
    var bells: [Bell] = []
    for _ in 0..<workers { bells.append(try Bell()) }
    self.bells = bells
    rings = (0..<workers).map { _ in (0..<workers).map { _ in RelayRing() } }
  }
}

/// One worker's end of the rings. Used only on its thread.
final class RelayPort: Relay {
  private let bells: [RelayExchange.Bell]
  private let bell: RelayExchange.Bell
  /// Indexed by the other worker's number; the one with this worker's own number stays empty.
  private let outgoing: [RelayRing]
  private let incoming: [RelayRing]
  /// Something was written since `publish`.
  private var hasWritten = false

  init(_ worker: Int, of exchange: RelayExchange) {
    bells = exchange.bells
    bell = exchange.bells[worker]
    outgoing = exchange.rings[worker]
    incoming = exchange.rings.map { $0[worker] }
  }

  /// Readable when others have published something.
  var descriptor: Int32 { bell.event.descriptor }

  func send(_ message: RelayMessage, _ packet: UnsafeRawBufferPointer, to other: Int) -> Bool {
    guard outgoing.indices.contains(other), outgoing[other].write(message, packet) else { return false }
    hasWritten = true
    return true
  }

  /// Lets the other workers see what was sent.
  func publish() {
    guard hasWritten else { return }
    hasWritten = false
    for (other, ring) in outgoing.enumerated() where ring.publish() { bells[other].ring() }
  }

  /// Resets the readiness of `descriptor`; call `receive` next until it returns 0.
  func hear() { bell.hear() }

  /// Makes `descriptor` readable again, for messages that were not received yet.
  func remind() { bell.ring() }

  /// Passes what has arrived to `each`, with the number of the worker that sent it, at most `limit` messages of each
  /// worker.
  /// - Returns: the number of messages.
  func receive(_ limit: Int, each: (RelayMessage, UnsafeMutableRawBufferPointer, Int) -> Void) -> Int {
    var count = 0
    for (other, ring) in incoming.enumerated() { count += ring.read(limit) { each($0, $1, other) } }
    return count
  }
}
