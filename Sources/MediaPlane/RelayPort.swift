import Forwarding
import LinuxIO
import MediaModel
import Synchronization

/// The rings between the workers of one server and its recorder, and the means to wake each of them.
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

  /// The workers by number, and behind them the recorder.
  let ends: [RelayEnd]
  let bells: [Bell]
  /// The first index is the writing worker, the second the reading one. A ring's memory comes with its first message.
  let rings: [[RelayRing]]

  /// - Parameter node: the workers' server.
  init(workers: Int, of node: Incarnation, hasRecorder: Bool = false) throws(SystemError) {
    let workers = (0..<workers).map { RelayEnd.worker(WorkerAddress(node: node, worker: $0)) }
    let ends = hasRecorder ? workers + [.recorder] : workers
    self.ends = ends
    var bells: [Bell] = []
    for _ in ends { bells.append(try Bell()) }
    self.bells = bells
    rings = ends.map { _ in
      ends.map { RelayRing(capacity: $0 == .recorder ? RelayRing.recorder : RelayRing.workers) }
    }
  }
}

/// The links of one worker, or of the recorder, to the other ends. Used only on its thread.
final class RelayPort: Relay {
  /// The way to one end and back.
  private struct Link {
    let end: RelayEnd
    let outgoing: RelayRing
    /// Wakes the end.
    let wake: RelayExchange.Bell
    let incoming: RelayRing
  }

  private let ends: [RelayEnd]
  private let bell: RelayExchange.Bell
  /// Those to the ends of this server, in their order; the one to itself stays empty.
  private let links: [Link]
  /// The count of refused messages of each incoming ring when that was last asked.
  private var refused: [Int]
  /// Something was written since `publish`.
  private var hasWritten = false

  /// - Parameter place: the worker's number, or that behind all workers for the recorder.
  init(_ place: Int, of exchange: RelayExchange) {
    ends = exchange.ends
    bell = exchange.bells[place]
    links = exchange.ends.indices.map { other in
      Link(
        end: exchange.ends[other], outgoing: exchange.rings[place][other], wake: exchange.bells[other],
        incoming: exchange.rings[other][place])
    }
    refused = [Int](repeating: 0, count: exchange.ends.count)
  }

  /// The index of the link to the end, in constant time; nil if there is none.
  private func link(to end: RelayEnd) -> Int? {
    switch end {
    case .worker(let address):
      // The recorder is not at a worker's place.
      links.indices ~= address.worker && ends[address.worker] == end ? address.worker : nil
    case .recorder: ends.last == end ? ends.count - 1 : nil
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

  /// The ends whose messages to this one found no room since the last call.
  func takeLosers() -> [RelayEnd] {
    links.indices.compactMap { link in
      let count = links[link].incoming.refusedCount
      defer { refused[link] = count }
      return count == refused[link] ? nil : links[link].end
    }
  }
}
