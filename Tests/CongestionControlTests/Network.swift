import CongestionControl
import Seeded

let millisecond: Microseconds = 1_000
let second: Microseconds = 1_000_000

/// A packet in flight. Sizes are those on the wire.
struct Packet {
  var flow: Int
  var number: Int
  var size: Int
  var kind: SentKind
  var sent: Microseconds
  /// The number of a video packet, counted without gaps; a retransmission has its original's number. −1 otherwise.
  var sequence = -1
  var frame = -1
}

/// A FIFO that reuses its memory.
struct Queue<Element> {
  private var elements: [Element] = []
  private var head = 0

  var count: Int { elements.count - head }
  var first: Element? { head < elements.count ? elements[head] : nil }

  mutating func append(_ element: Element) { elements.append(element) }

  mutating func removeFirst() -> Element {
    defer {
      head += 1
      if head > 1_000, head * 2 > elements.count {
        elements.removeFirst(head)
        head = 0
      }
    }
    return elements[head]
  }

  /// Inserts `element` behind all elements that are not after it.
  mutating func insert(_ element: Element, isAfter: (Element, Element) -> Bool) {
    var i = elements.count
    while i > head, isAfter(elements[i - 1], element) { i -= 1 }
    elements.insert(element, at: i)
  }
}

/// The link that all flows share: a rate that changes with time, and a queue that drops at its tail.
final class Bottleneck {
  /// The rates in bit/s, each from a time on.
  let schedule: [(from: Microseconds, rate: Int)]
  /// The queue's length, as time at the current rate.
  let limit: Microseconds
  private var waiting = Queue<(packet: Packet, came: Microseconds)>()
  private var waitingBytes = 0
  private var busyUntil: Microseconds = 0

  init(schedule: [(from: Microseconds, rate: Int)], limit: Microseconds) {
    self.schedule = schedule
    self.limit = limit
  }

  func rate(at time: Microseconds) -> Int { schedule.last { $0.from <= time }!.rate }

  /// How long a packet that arrives now would wait.
  func delay(at now: Microseconds) -> Microseconds {
    max(0, busyUntil - now) + Microseconds(waitingBytes * 8 * 1_000_000 / rate(at: now))
  }

  /// False when the queue is full.
  func enqueue(_ packet: Packet, now: Microseconds) -> Bool {
    guard delay(at: now) <= limit else { return false }
    waiting.append((packet, now))
    waitingBytes += packet.size
    return true
  }

  /// Returns the packets that have left the link until `now`, with their times.
  func drain(until now: Microseconds, _ deliver: (Packet, Microseconds) -> Void) {
    while let (packet, came) = waiting.first {
      let start = max(busyUntil, came)
      guard start <= now else { return }
      let end = start + Microseconds(packet.size * 8 * 1_000_000 / rate(at: start))
      guard end <= now else { return }
      busyUntil = end
      waitingBytes -= packet.size
      _ = waiting.removeFirst()
      deliver(packet, end)
    }
  }
}

/// A flow's path behind the bottleneck.
struct PathModel {
  var roundTrip: Microseconds = 50 * millisecond
  /// Losses that are independent of each other.
  var loss = 0.0
  /// Losses in bursts (Gilbert–Elliott): the share, and the mean length in packets.
  var burstLoss = 0.0
  var burstLength = 8.0
  /// Uniform from 0 to twice this, in order except for `reordering`.
  var jitter: Microseconds = 0
  var reordering = 0.0
  /// The share of reports that are lost.
  var feedbackLoss = 0.0
  /// The time in which no report arrives.
  var feedbackOutage: Range<Microseconds> = 0..<0
  /// The delay of reports from a time on.
  var feedbackDelay: (from: Microseconds, delay: Microseconds) = (.max, 0)
  private var isBad = false

  init(_ change: (inout PathModel) -> Void = { _ in }) { change(&self) }

  mutating func loses(_ random: inout SeededGenerator) -> Bool {
    if burstLoss > 0 {
      let leave = isBad ? 1 / burstLength : burstLoss / ((1 - burstLoss) * burstLength)
      if random.uniform() < leave { isBad.toggle() }
      if isBad { return true }
    }
    return loss > 0 && random.uniform() < loss
  }
}
