import Octets

/// The pending actions, in virtual time, earliest first; actions of the same time keep their order of insertion.
struct Agenda {
  private var heap = Heap<Int64, () -> Void>()

  var nextTime: Int64? { heap.first?.key }

  mutating func add(at time: Int64, _ action: @escaping () -> Void) { heap.add(action, key: time) }

  mutating func popFirst() -> () -> Void { heap.removeFirst()! }
}
