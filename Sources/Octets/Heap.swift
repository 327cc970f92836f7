/// Values by key, the least key first, and those with equal keys in the order in which they were added. Adding and removing take logarithmic time.
///
/// The compiler specializes generic code only within its module, so this is for queues that are not on the path of a packet.
package struct Heap<Key: Comparable, Value> {
  package typealias Entry = (key: Key, value: Value)

  fileprivate struct Numbered {
    let entry: Entry
    let number: UInt64

    func precedes(_ other: Numbered) -> Bool {
      entry.key == other.entry.key ? number < other.number : entry.key < other.entry.key
    }
  }

  private var entries: ContiguousArray<Numbered> = []
  private var added: UInt64 = 0

  package init() {}

  package var count: Int { entries.count }
  package var first: Entry? { entries.first?.entry }

  package mutating func add(_ value: Value, key: Key) {
    added += 1
    append(Numbered(entry: (key, value), number: added))
  }

  package mutating func removeFirst() -> Value? {
    guard let first else { return nil }
    let last = entries.removeLast()
    if !entries.isEmpty { sink(last) }
    return first.value
  }

  package mutating func removeAll(where isUnwanted: (Value) -> Bool) {
    let kept = entries.filter { !isUnwanted($0.entry.value) }
    entries.removeAll(keepingCapacity: true)
    for entry in kept { append(entry) }
  }

  private mutating func append(_ entry: Numbered) {
    entries.append(entry)
    var child = entries.count - 1
    while child > 0, entry.precedes(entries[(child - 1) / 2]) {
      entries.swapAt(child, (child - 1) / 2)
      child = (child - 1) / 2
    }
  }

  /// Puts the entry in the place of the first, and moves it down to its own.
  private mutating func sink(_ entry: Numbered) {
    entries[0] = entry
    var parent = 0
    while true {
      var least = parent
      for child in [2 * parent + 1, 2 * parent + 2]
      where child < entries.count && entries[child].precedes(entries[least]) { least = child }
      if least == parent { return }
      entries.swapAt(parent, least)
      parent = least
    }
  }
}

extension Heap: Sendable where Key: Sendable, Value: Sendable {}
extension Heap.Numbered: Sendable where Key: Sendable, Value: Sendable {}
