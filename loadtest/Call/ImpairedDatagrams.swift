import MediaModel
import Paths

/// One direction of a peer's impaired path: datagrams wait in memory that is allocated once, until they are due.
final class ImpairedDatagrams {
  private var path: ImpairedPath
  private let memory: UnsafeMutableRawPointer
  private let entries: UnsafeMutablePointer<Entry>
  let capacity: Int
  private var first = 0
  private var count = 0
  /// Datagrams for which there was no memory.
  private(set) var withoutRoom = 0

  private struct Entry {
    var length: Int
    var due: Instant
    var address: SocketAddress
  }

  /// Room for one datagram. Datagrams larger than Ethernet's are dropped.
  private static let slotSize = 1_500
  /// Enough for small packets at the link's rate, or for the packets that 25 cameras send in a second.
  private static let smallPacket = 60
  private static let packetsPerSecond = 4_000
  private static let capacities = 64...4_096

  init(_ impairment: Impairment, seed: UInt64) {
    path = ImpairedPath(impairment, seed: seed)
    let perSecond = min(impairment.rate.map { $0 / 8 / Self.smallPacket } ?? .max, Self.packetsPerSecond)
    let wanted = impairment.longestStay * perSecond / 1_000_000
    capacity = min(max(wanted, Self.capacities.lowerBound), Self.capacities.upperBound)
    memory = .allocate(byteCount: capacity * Self.slotSize, alignment: 64)
    entries = .allocate(capacity: capacity)
  }

  deinit {
    memory.deallocate()
    entries.deallocate()
  }

  var dropped: Int { path.lost + path.queueDrops + withoutRoom }

  /// When the next datagram arrives; nil when none is in flight.
  var nextDue: Instant? { count == 0 ? nil : entries[first].due }

  /// Queues a datagram, or drops it.
  func send(_ datagram: UnsafeRawBufferPointer, _ address: SocketAddress, now: Instant) {
    guard let due = path.arrival(of: datagram.count, now: Int(now.nanoseconds / 1_000)) else { return }
    guard count < capacity, datagram.count <= Self.slotSize, let start = datagram.baseAddress else {
      withoutRoom += 1
      return
    }
    let place = (first + count) % capacity
    (memory + place * Self.slotSize).copyMemory(from: start, byteCount: datagram.count)
    (entries + place).initialize(
      to: Entry(length: datagram.count, due: Instant(nanoseconds: UInt64(due) * 1_000), address: address))
    count += 1
  }

  /// Returns the next datagram that has arrived. Its bytes are valid, and may be changed, until the next `send`.
  func takeArrived(_ now: Instant) -> (bytes: UnsafeMutableRawBufferPointer, address: SocketAddress)? {
    guard count > 0, entries[first].due <= now else { return nil }
    let entry = entries[first]
    let bytes = UnsafeMutableRawBufferPointer(start: memory + first * Self.slotSize, count: entry.length)
    first = (first + 1) % capacity
    count -= 1
    return (bytes, entry.address)
  }
}
