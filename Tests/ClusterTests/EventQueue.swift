import MediaModel

/// The events of a world, in the order of time, and of scheduling at the same time.
struct EventQueue<Event> {
  private var heap: [(at: Instant, number: UInt64, event: Event)] = []
  private var last: UInt64 = 0

  mutating func add(_ event: Event, at time: Instant) {
    last += 1
    heap.append((time, last, event))
    var child = heap.count - 1
    while child > 0, isBefore(child, (child - 1) / 2) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func next() -> (at: Instant, event: Event)? {
    guard let first = heap.first else { return nil }
    heap.swapAt(0, heap.count - 1)
    heap.removeLast()
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && isBefore(child, least) { least = child }
      if least == parent { break }
      heap.swapAt(parent, least)
      parent = least
    }
    return (first.at, first.event)
  }

  private func isBefore(_ one: Int, _ other: Int) -> Bool {
    (heap[one].at, heap[one].number) < (heap[other].at, heap[other].number)
  }
}
