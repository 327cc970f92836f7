import LinuxIO
import Synchronization

/// Passes elements in order to a thread from other threads, and the request to stop.
final class WorkerQueue<Element: Sendable>: Sendable {
  private struct Waiting {
    var elements: [Element] = []
    var isStopping = false
  }

  private let waiting = Mutex(Waiting())
  private let wake: EventFD

  init() throws(SystemError) { wake = try EventFD() }

  /// Readable while there is something to take.
  var descriptor: Int32 { wake.descriptor }

  /// Any thread. Elements submitted after `stop` are dropped.
  func submit(_ element: Element) {
    let isFirst = waiting.withLock { waiting in
      guard !waiting.isStopping else { return false }
      waiting.elements.append(element)
      return waiting.elements.count == 1
    }
    if isFirst { wake.signal() }
  }

  /// Any thread. The reader learns it after the elements that were submitted before.
  func stop() {
    waiting.withLock { $0.isStopping = true }
    wake.signal()
  }

  /// For the reader: exchanges the waiting elements for the empty `taken`, so that both arrays keep their memory. Returns whether to stop after
  /// them.
  func take(into taken: inout [Element]) -> Bool {
    wake.drain()
    return waiting.withLock { waiting in
      swap(&waiting.elements, &taken)
      return waiting.isStopping
    }
  }
}
