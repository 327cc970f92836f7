import Synchronization

/// A FIFO of arrivals that are not handled yet, from one sender to one reader. While too much waits, the sender waits, too: it reads nothing more from the
/// socket, so TCP holds the server back and nothing is lost.
package final class ArrivalQueue: AsyncSequence, Sendable {
  package typealias Element = IncomingMessage
  /// Arrivals that may wait.
  static let limit = 1_024
  /// Bytes of bodies that may wait, plus one arrival.
  static let byteLimit = 4 << 20

  private struct State {
    var elements: [IncomingMessage] = []
    /// The elements before it have been taken.
    var first = 0
    var bytes = 0
    var isFinished = false

    var count: Int { elements.count - first }
    var isFull: Bool { count >= ArrivalQueue.limit || bytes >= ArrivalQueue.byteLimit }

    mutating func takeFirst() -> IncomingMessage? {
      guard first < elements.count else { return nil }
      let element = elements[first]
      bytes -= element.size
      first += 1
      // Rarely enough to cost little, and often enough that nothing taken stays for long.
      if first == elements.count || first >= 64 {
        elements.removeFirst(first)
        first = 0
      }
      return element
    }
  }

  private let state = Mutex(State())
  private let (arrivals, arrival) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
  private let (rooms, room) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))

  /// Arrivals that wait.
  var count: Int { state.withLock { $0.count } }

  /// Appends an arrival once there is room; immediately if the sender is cancelled.
  func send(_ element: IncomingMessage) async {
    while state.withLock({ $0.isFull && !$0.isFinished }) {
      var iterator = rooms.makeAsyncIterator()
      if await iterator.next() == nil { break }
    }
    add(element)
  }

  /// Appends an arrival that does not wait for room. The caller bounds how many there are.
  func add(_ element: IncomingMessage) {
    state.withLock { state in
      guard !state.isFinished else { return }
      state.elements.append(element)
      state.bytes += element.size
    }
    arrival.yield()
  }

  /// Ends the sequence; pending arrivals are still delivered.
  func finish() {
    state.withLock { $0.isFinished = true }
    arrival.finish()
    room.finish()
  }

  fileprivate func next() async -> IncomingMessage? {
    while true {
      let (element, isFinished) = state.withLock { ($0.takeFirst(), $0.isFinished) }
      if element != nil { room.yield() }
      if element != nil || isFinished { return element }
      var iterator = arrivals.makeAsyncIterator()
      // nil at the end, which is also in the state, and when the reader is cancelled.
      guard await iterator.next() != nil || state.withLock({ $0.isFinished }) else { return nil }
    }
  }

  package struct AsyncIterator: AsyncIteratorProtocol {
    fileprivate let queue: ArrivalQueue

    package mutating func next() async -> IncomingMessage? { await queue.next() }
  }

  package func makeAsyncIterator() -> AsyncIterator { AsyncIterator(queue: self) }
}
