import MediaModel

/// Something that wants to be woken at a certain time.
protocol Scheduled: AnyObject {
  /// Its index in its queue, kept by the queue; −1 while it is in none.
  var place: Int { get set }
}

/// Elements by deadline: a binary heap. Each element knows its index, so setting a deadline needs no search.
///
/// It does not use `Heap` of Octets: the compiler would not specialize that for us, and setting a deadline took three to five times as long.
struct DeadlineQueue<Element: Scheduled> {
  private struct Entry {
    var due: Instant
    let element: Element
  }

  private var heap: ContiguousArray<Entry> = []
  /// Entries visited since the start.
  private(set) var visits: UInt64 = 0

  var first: Instant? { heap.first?.due }

  /// Sets the element's deadline; nil removes it.
  mutating func set(_ element: Element, to due: Instant?) {
    let place = element.place
    guard let due else {
      if place >= 0 { remove(at: place) }
      return
    }
    if place < 0 {
      heap.append(Entry(due: due, element: element))
      rise(from: heap.count - 1)
    } else if heap[place].due != due {
      let isEarlier = due < heap[place].due
      heap[place].due = due
      if isEarlier { rise(from: place) } else { sink(from: place) }
    }
  }

  /// Takes out the first element if it is due.
  mutating func takeDue(_ now: Instant) -> Element? {
    guard let first = heap.first, first.due <= now else { return nil }
    remove(at: 0)
    return first.element
  }

  private mutating func remove(at place: Int) {
    let last = heap.count - 1
    heap.swapAt(place, last)
    heap.removeLast().element.place = -1
    guard place < last else { return }
    // The entry that was last fits above or below; one of the two calls moves nothing.
    rise(from: place)
    sink(from: heap[place].element.place)
  }

  private mutating func rise(from place: Int) {
    var place = place
    while place > 0 {
      visits &+= 1
      let parent = (place - 1) / 2
      guard heap[place].due < heap[parent].due else { break }
      heap.swapAt(place, parent)
      heap[place].element.place = place
      place = parent
    }
    heap[place].element.place = place
  }

  private mutating func sink(from place: Int) {
    var place = place
    while true {
      visits &+= 1
      var least = place
      let left = 2 * place + 1
      if left < heap.count, heap[left].due < heap[least].due { least = left }
      if left + 1 < heap.count, heap[left + 1].due < heap[least].due { least = left + 1 }
      guard least != place else { break }
      heap.swapAt(place, least)
      heap[place].element.place = place
      place = least
    }
    heap[place].element.place = place
  }
}
