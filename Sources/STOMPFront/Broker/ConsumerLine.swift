/// The subscribers of a queue by their number of unacknowledged messages, each level a FIFO: the next subscriber is found without visiting the others.
///
/// ## Invariants
/// - A consumer is in the line of the level that equals its number of unacknowledged messages, or in none if it has no room.
struct ConsumerLine {
  /// A place in the line, valid until its subscriber is removed.
  typealias Place = Int

  private struct Consumer {
    var subscriber: Broker.Subscriber
    var given: [UInt64: BrokerQueue.Entry] = [:]
    var bytes = 0
    /// The level in whose line it is; nil if it has no room.
    var level: Int?
    var previous: Place?
    var next: Place?
  }

  private struct Level {
    var first: Place?
    var last: Place?
  }

  private let limits: Broker.Limits
  private var consumers: [Consumer?] = []
  private var free: [Place] = []
  private var places: [Broker.Subscriber: Place] = [:]
  /// As many as were needed so far.
  private var levels: [Level] = []
  /// All lower levels are empty.
  private var lowest = 0
  /// How many have room.
  private(set) var roomy = 0

  init(limits: Broker.Limits) { self.limits = limits }

  var isEmpty: Bool { places.isEmpty }

  func place(of subscriber: Broker.Subscriber) -> Place? { places[subscriber] }

  func subscriber(at place: Place) -> Broker.Subscriber? { consumers[place]?.subscriber }

  mutating func add(_ subscriber: Broker.Subscriber) {
    guard places[subscriber] == nil else { return }
    let place = free.popLast() ?? consumers.count
    if place == consumers.count { consumers.append(nil) }
    consumers[place] = Consumer(subscriber: subscriber)
    places[subscriber] = place
    enter(place)
  }

  /// Returns the messages that the subscriber had not acknowledged.
  mutating func remove(_ subscriber: Broker.Subscriber) -> [BrokerQueue.Entry] {
    guard let place = places.removeValue(forKey: subscriber) else { return [] }
    leave(place)
    let given = consumers[place]?.given ?? [:]
    consumers[place] = nil
    free.append(place)
    return Array(given.values)
  }

  /// The consumer with the fewest unacknowledged messages that has waited longest; the next one if that is `refuser`.
  mutating func first(without refuser: Broker.Subscriber? = nil) -> Place? {
    while lowest < levels.count, levels[lowest].first == nil { lowest += 1 }
    for level in lowest..<levels.count {
      guard let first = levels[level].first else { continue }
      guard let refuser, consumers[first]?.subscriber == refuser else { return first }
      if let next = consumers[first]?.next { return next }
    }
    return nil
  }

  mutating func give(_ entry: BrokerQueue.Entry, to place: Place) {
    leave(place)
    consumers[place]?.given[entry.number] = entry
    consumers[place]?.bytes += entry.size
    enter(place)
  }

  /// Takes back a delivered message; nil if the subscriber does not have it.
  mutating func take(_ number: UInt64, from subscriber: Broker.Subscriber) -> BrokerQueue.Entry? {
    guard let place = places[subscriber], let entry = consumers[place]?.given[number] else { return nil }
    leave(place)
    consumers[place]?.given[number] = nil
    consumers[place]?.bytes -= entry.size
    enter(place)
    return entry
  }

  /// Appends it to its level's line, if it has room.
  private mutating func enter(_ place: Place) {
    guard let consumer = consumers[place], consumer.given.count < limits.unacknowledged,
      consumer.bytes < limits.unacknowledgedBytes
    else { return }
    let level = consumer.given.count
    while levels.count <= level { levels.append(Level()) }
    let last = levels[level].last
    consumers[place]?.level = level
    consumers[place]?.previous = last
    consumers[place]?.next = nil
    if let last { consumers[last]?.next = place } else { levels[level].first = place }
    levels[level].last = place
    lowest = min(lowest, level)
    roomy += 1
  }

  private mutating func leave(_ place: Place) {
    guard let consumer = consumers[place], let level = consumer.level else { return }
    if let previous = consumer.previous {
      consumers[previous]?.next = consumer.next
    } else {
      levels[level].first = consumer.next
    }
    if let next = consumer.next {
      consumers[next]?.previous = consumer.previous
    } else {
      levels[level].last = consumer.previous
    }
    consumers[place]?.level = nil
    roomy -= 1
  }
}
