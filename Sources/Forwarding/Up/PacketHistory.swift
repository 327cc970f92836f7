import MediaModel
import RTP

/// The last packets of one encoding, as they arrived, for retransmission.
///
/// A ring of bytes that contains packets in the order of arrival, each after its `Record`, and a table from numbers to offsets in the ring. The ring has no memory
/// before the first packet, and doubles while it would lose a packet younger than `span`: a requested packet is as old as the receiver's round trip, whatever the
/// rate. The age is counted from the arrival, because a sender's timestamps may be arbitrary. All memory is charged to a `HistoryBudget`.
final class PacketHistory {
  /// Precedes each packet in the ring.
  private struct Record {
    var index: UInt64
    /// When it arrived, in milliseconds, modulo 2^32.
    var time: UInt32
    var length: UInt32

    var size: Int { PacketHistory.size(of: Int(length)) }
  }

  /// Browsers send at most 1,250 bytes, others up to an Ethernet frame less its headers. Longer packets are not kept.
  static let longestPacket = 1440
  /// The table has one entry for this many bytes of the ring, because few packets with their records are shorter. It has room for the longest packet of the
  /// smallest ring.
  private static let bytesAPlace = 64
  /// Not an offset of the ring.
  private static let nowhere = UInt32.max

  /// Initial and maximum size of the ring in bytes; powers of two.
  private let first: Int
  private let limit: Int
  /// In milliseconds.
  private let span: UInt32
  private let budget: HistoryBudget
  /// Bytes of the ring; 0 while it has no memory.
  private(set) var capacity = 0
  /// Its index among the budget's histories of this capacity.
  var place = 0
  private var memory = UnsafeMutableRawPointer(bitPattern: 64)!
  /// The table: at each index, the offset of the packet whose number ends in these bits.
  private var places = UnsafeMutablePointer<UInt32>(bitPattern: 64)!
  /// Packets in the ring. They are from `tail` to `head`, or from `tail` to `end` and from 0 to `head`.
  private var count = 0
  private var tail = 0
  private var head = 0
  private var end = 0
  private(set) var lastArrival = Instant(nanoseconds: 0)

  init(first: Int, limit: Int, span: Duration, budget: HistoryBudget) {
    precondition(first & (first - 1) == 0 && limit & (limit - 1) == 0 && Self.size(of: Self.longestPacket) <= first)
    self.first = first
    self.limit = max(first, limit)
    self.span = UInt32(truncatingIfNeeded: span.nanoseconds / 1_000_000)
    self.budget = budget
  }

  deinit {
    budget.remove(at: place, capacity: capacity)
    if capacity > 0 { memory.deallocate() }
  }

  /// Bytes of a packet in the ring.
  private static func size(of length: Int) -> Int { (MemoryLayout<Record>.stride + length + 7) & ~7 }

  private static func milliseconds(_ now: Instant) -> UInt32 { UInt32(truncatingIfNeeded: now.nanoseconds / 1_000_000) }

  private func record(at offset: Int) -> Record { memory.load(fromByteOffset: offset, as: Record.self) }

  private func entry(_ index: UInt64) -> UnsafeMutablePointer<UInt32> {
    places + Int(truncatingIfNeeded: index & UInt64(capacity / Self.bytesAPlace - 1))
  }

  /// Keeps a copy of header and payload, if there is room for it.
  func insert(_ packet: borrowing Packet, now: Instant) {
    let time = Self.milliseconds(now)
    guard packet.length <= Self.longestPacket, makeRoom(Self.size(of: packet.length), time) else { return }
    lastArrival = now
    let record = Record(index: packet.index, time: time, length: UInt32(truncatingIfNeeded: packet.length))
    let bytes = append(record)
    bytes.copyMemory(from: packet.base, byteCount: packet.length)
    // The padding is cut off.
    if packet.header.paddingLength > 0 {
      RTPHeader.setPadding(false, in: UnsafeMutableRawBufferPointer(start: bytes, count: packet.length))
    }
  }

  /// Keeps a copy of a datagram as it was sent under this index, if there is room for it.
  func insert(_ datagram: UnsafeRawBufferPointer, index: UInt64, now: Instant) {
    let time = Self.milliseconds(now)
    guard datagram.count <= Self.longestPacket, makeRoom(Self.size(of: datagram.count), time) else { return }
    lastArrival = now
    append(Record(index: index, time: time, length: UInt32(truncatingIfNeeded: datagram.count))).copyMemory(
      from: datagram.baseAddress!, byteCount: datagram.count)
  }

  /// Puts a record at the head, where there must be room, and returns a pointer to its bytes.
  private func append(_ record: Record) -> UnsafeMutableRawPointer {
    memory.storeBytes(of: record, toByteOffset: head, as: Record.self)
    entry(record.index).pointee = UInt32(truncatingIfNeeded: head)
    defer {
      head += record.size
      count += 1
    }
    return memory + head + MemoryLayout<Record>.stride
  }

  /// Makes room for this many bytes at the head: by more memory while the oldest packet is young, else by overwriting
  /// it.
  private func makeRoom(_ size: Int, _ time: UInt32) -> Bool {
    guard capacity > 0 || resize(to: first) else { return false }
    while true {
      if count == 0 { (tail, head, end) = (0, 0, capacity) }
      if count == 0 || head > tail {
        if capacity - head >= size { return true }
        (end, head) = (head, 0)
      } else {
        if tail - head >= size { return true }
        let isYoung = time &- record(at: tail).time < span
        if !isYoung || capacity == limit || !resize(to: capacity * 2) { removeOldest() }
      }
    }
  }

  private func removeOldest() {
    let oldest = record(at: tail)
    if entry(oldest.index).pointee == UInt32(truncatingIfNeeded: tail) { entry(oldest.index).pointee = Self.nowhere }
    tail += oldest.size
    count -= 1
    if tail == end { (tail, end) = (0, capacity) }
  }

  /// Moves the newest packets that fit into a ring of this size.
  /// - Returns: whether the budget grants that.
  private func resize(to new: Int) -> Bool {
    guard budget.grants(self, new) else { return false }
    move(to: new)
    return true
  }

  /// Gives half of its memory back, with the older packets.
  func halve() { move(to: capacity / 2) }

  private func move(to new: Int) {
    budget.remove(at: place, capacity: capacity)
    while count > 0, (head > tail ? head - tail : end - tail + head) > new { removeOldest() }
    let (old, oldMemory, oldCount, oldEnd) = (capacity, memory, count, end)
    var offset = tail
    let table = new / Self.bytesAPlace
    capacity = new
    memory = .allocate(byteCount: new + table * MemoryLayout<UInt32>.stride, alignment: 64)
    places = (memory + new).bindMemory(to: UInt32.self, capacity: table)
    places.initialize(repeating: Self.nowhere, count: table)
    (tail, head, end, count) = (0, 0, new, 0)
    for _ in 0..<oldCount {
      let record = oldMemory.load(fromByteOffset: offset, as: Record.self)
      append(record).copyMemory(
        from: oldMemory + offset + MemoryLayout<Record>.stride, byteCount: Int(record.length))
      offset += record.size
      if offset == oldEnd { offset = 0 }
    }
    if old > 0 { oldMemory.deallocate() }
    budget.add(self)
  }

  /// The packet with this index, in the ring's own memory, until the next one is inserted; nil if it never arrived or is
  /// gone.
  func packet(_ index: UInt64) -> Packet? {
    guard let bytes = datagram(index), let base = bytes.baseAddress, let header = RTPHeader(parsing: bytes.bytes) else {
      return nil
    }
    return Packet(base: base, length: bytes.count, header: header, index: index)
  }

  /// The same as bytes.
  func datagram(_ index: UInt64) -> UnsafeMutableRawBufferPointer? {
    guard count > 0 else { return nil }
    let offset = entry(index).pointee
    guard offset != Self.nowhere else { return nil }
    let record = record(at: Int(offset))
    guard record.index == index else { return nil }
    return UnsafeMutableRawBufferPointer(
      start: memory + Int(offset) + MemoryLayout<Record>.stride, count: Int(record.length))
  }

  /// Forgets all packets and gives the memory back.
  func removeAll() {
    guard capacity > 0 else { return }
    budget.remove(at: place, capacity: capacity)
    memory.deallocate()
    (capacity, count) = (0, 0)
  }
}
