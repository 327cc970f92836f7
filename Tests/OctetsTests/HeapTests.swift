import Octets
import Seeded
import Testing

struct HeapTests {
  /// Compared with a list that is searched.
  @Test(arguments: 1...20 as ClosedRange<UInt64>) func theLeastKeyLeavesFirstAndEqualKeysInOrder(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var heap = Heap<Int, Int>()
    var list: [(key: Int, value: Int)] = []
    for value in 0..<1_000 {
      if random.chance(60) {
        let key = random.below(20)
        heap.add(value, key: key)
        list.append((key, value))
      } else {
        let first = list.map(\.key).min().flatMap { least in list.firstIndex { $0.key == least } }
        #expect(heap.removeFirst() == first.map { list.remove(at: $0).value }, "seed \(seed), value \(value)")
      }
      if random.chance(1) {
        heap.removeAll { $0 % 2 == 0 }
        list.removeAll { $0.value % 2 == 0 }
      }
      #expect(heap.count == list.count && heap.first?.key == list.map(\.key).min(), "seed \(seed), value \(value)")
    }
    #expect(list.count > 10)
  }

  @Test func anEmptyHeapHasNoFirst() {
    var heap = Heap<Int, String>()
    #expect(heap.first == nil && heap.removeFirst() == nil)
    heap.add("one", key: 1)
    #expect(heap.removeFirst() == "one" && heap.first == nil && heap.count == 0)
  }
}
