/// The actions to come, in virtual time: a binary heap, earliest first; actions of one time keep their order of insertion.
struct Agenda {
  private var heap: [(time: Int64, order: Int, action: () -> Void)] = []
  private var count = 0

  var nextTime: Int64? { heap.first?.time }

  mutating func add(at time: Int64, _ action: @escaping () -> Void) {
    count += 1
    heap.append((time, count, action))
    var child = heap.count - 1
    while child > 0, isBefore(child, (child - 1) / 2) {
      heap.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  mutating func popFirst() -> () -> Void {
    heap.swapAt(0, heap.count - 1)
    let first = heap.removeLast().action
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2] where child < heap.count && isBefore(child, least) { least = child }
      if least == parent { return first }
      heap.swapAt(parent, least)
      parent = least
    }
  }

  private func isBefore(_ a: Int, _ b: Int) -> Bool { (heap[a].time, heap[a].order) < (heap[b].time, heap[b].order) }
}
