import RTP

/// The last packets of one encoding, as they came, for retransmission.
///
/// A ring, which doubles while it holds less than `span` of the stream: what a receiver asks for is as old as its round trip, whatever the rate. Its pages cost memory when
/// first used.
final class PacketHistory {
  struct Entry {
    var index: UInt64
    var length: Int
    var header: RTPHeader
  }

  /// Browsers send at most 1,250 bytes, others up to an Ethernet frame less its headers.
  static let longestPacket = 1440

  /// Room for one packet; a longer one is not kept.
  private let slotSize: Int
  private let limit: Int
  private let span: UInt32
  private(set) var capacity: Int
  private var entries: UnsafeMutablePointer<Entry?>
  private var memory: UnsafeMutableRawPointer

  /// - Parameters:
  ///   - capacity: packets at first, a power of two.
  ///   - limit: packets at most.
  ///   - span: in the stream's RTP clock; with 0 the capacity stays.
  init(capacity: Int, limit: Int = 0, span: UInt32 = 0, slotSize: Int = longestPacket) {
    precondition(capacity > 0 && capacity & (capacity - 1) == 0)
    self.capacity = capacity
    self.limit = limit
    self.span = span
    self.slotSize = slotSize
    (entries, memory) = Self.room(capacity, slotSize)
  }

  deinit {
    entries.deallocate()
    memory.deallocate()
  }

  private static func room(_ capacity: Int, _ slotSize: Int) -> (UnsafeMutablePointer<Entry?>, UnsafeMutableRawPointer)
  {
    let entries = UnsafeMutablePointer<Entry?>.allocate(capacity: capacity)
    entries.initialize(repeating: nil, count: capacity)
    return (entries, .allocate(byteCount: capacity * slotSize, alignment: 64))
  }

  private func slot(_ index: UInt64) -> Int { Int(index & UInt64(capacity - 1)) }

  /// Keeps a copy of header and payload.
  func insert(_ packet: borrowing Packet) {
    guard packet.length <= slotSize else { return }
    while let oldest = entries[slot(packet.index)], capacity * 2 <= limit,
      packet.header.timestamp &- oldest.header.timestamp < span
    {
      grow()
    }
    let slot = slot(packet.index)
    entries[slot] = Entry(index: packet.index, length: packet.length, header: packet.header)
    (memory + slot * slotSize).copyMemory(from: packet.base, byteCount: packet.length)
  }

  private func grow() {
    let (old, oldMemory, count) = (entries, memory, capacity)
    capacity *= 2
    (entries, memory) = Self.room(capacity, slotSize)
    for place in 0..<count {
      guard let entry = old[place] else { continue }
      let slot = slot(entry.index)
      entries[slot] = entry
      (memory + slot * slotSize).copyMemory(from: oldMemory + place * slotSize, byteCount: entry.length)
    }
    old.deallocate()
    oldMemory.deallocate()
  }

  /// The packet with this index, in the ring's own memory, until the next one is inserted; nil when it never came or is gone.
  func packet(_ index: UInt64) -> Packet? {
    let slot = slot(index)
    guard let entry = entries[slot], entry.index == index else { return nil }
    return Packet(
      base: memory + slot * slotSize, length: entry.length, header: entry.header, index: index)
  }

  /// Forgets all packets.
  func removeAll() {
    for slot in 0..<capacity { entries[slot] = nil }
  }
}
