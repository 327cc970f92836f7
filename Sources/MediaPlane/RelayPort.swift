import Forwarding
import LinuxIO
import MediaModel
import Synchronization

/// The rings between the workers of one server, and the means to wake each of them.
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

  /// The workers' server.
  let node: Incarnation
  let bells: [Bell]
  /// The first index is the writing worker, the second the reading one. A ring's memory comes with its first message.
  let rings: [[RelayRing]]

  init(workers: Int, of node: Incarnation) throws(SystemError) {
    self.node = node
    var bells: [Bell] = []
    for _ in 0..<workers { bells.append(try Bell()) }
    self.bells = bells
    rings = (0..<workers).map { _ in (0..<workers).map { _ in RelayRing() } }
  }
}

/// One worker's links to the other ends. Used only on its thread.
final class RelayPort: Relay {
  /// The way to one end and back.
  private struct Link {
    let end: RelayEnd
    let outgoing: RelayRing
    /// Wakes the end.
    let wake: RelayExchange.Bell
    let incoming: RelayRing
  }

  private let node: Incarnation
  private let bell: RelayExchange.Bell
  /// Those to the workers of this server, by number; the one to this worker itself stays empty.
  private let links: [Link]
  /// Something was written since `publish`.
  private var hasWritten = false

  init(_ worker: Int, of exchange: RelayExchange) {
    node = exchange.node
    bell = exchange.bells[worker]
    links = exchange.bells.indices.map { other in
      Link(
        end: .worker(WorkerAddress(node: exchange.node, worker: other)), outgoing: exchange.rings[worker][other],
        wake: exchange.bells[other], incoming: exchange.rings[other][worker])
    }
  }

  /// The index of the link to the end, in constant time; nil if there is none.
  private func link(to end: RelayEnd) -> Int? {
    switch end {
    case .worker(let address): address.node == node && links.indices ~= address.worker ? address.worker : nil
    }
  }

  /// Readable when others have published something.
  var descriptor: Int32 { bell.event.descriptor }

  func send(_ message: RelayMessage, _ packet: UnsafeRawBufferPointer, to end: RelayEnd) -> Bool {
    guard let link = link(to: end), links[link].outgoing.write(message, packet) else { return false }
    hasWritten = true
    return true
  }

  /// Lets the other ends see what was sent.
  func publish() {
    guard hasWritten else { return }
    hasWritten = false
    for link in links.indices where links[link].outgoing.publish() { links[link].wake.ring() }
  }

  /// Resets the readiness of `descriptor`; call `receive` next until it returns 0.
  func hear() { bell.hear() }

  /// Makes `descriptor` readable again, for messages that were not received yet.
  func remind() { bell.ring() }

  /// Passes what has arrived to `each`, with the end that sent it, at most `limit` messages of each end.
  /// - Returns: the number of messages.
  func receive(_ limit: Int, each: (RelayMessage, UnsafeMutableRawBufferPointer, RelayEnd) -> Void) -> Int {
    var count = 0
    for link in links.indices { count += links[link].incoming.read(limit) { each($0, $1, links[link].end) } }
    return count
  }
}
