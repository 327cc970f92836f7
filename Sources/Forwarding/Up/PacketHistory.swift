import RTP

/// The last packets of one up-track, as they came, for retransmission. A ring allocated once; its pages cost memory when first used.
final class PacketHistory {
  /// Room for one packet; a longer one is not kept. Browsers send at most 1,250 bytes, others up to an Ethernet frame less its headers.
  private let slotSize: Int

  struct Entry {
    var index: UInt64
    var length: Int
    var header: RTPHeader
  }

  let mask: UInt64
  let entries: UnsafeMutablePointer<Entry?>
  private let memory: UnsafeMutableRawPointer

  /// - Parameter capacity: packets, a power of two.
  init(capacity: Int, slotSize: Int = 1440) {
    precondition(capacity > 0 && capacity & (capacity - 1) == 0)
    mask = UInt64(capacity - 1)
    self.slotSize = slotSize
    entries = .allocate(capacity: capacity)
    entries.initialize(repeating: nil, count: capacity)
    memory = .allocate(byteCount: capacity * slotSize, alignment: 64)
  }

  deinit {
    entries.deallocate()
    memory.deallocate()
  }

  /// Keeps a copy of header and payload.
  func insert(_ packet: borrowing Packet) {
    guard packet.length <= slotSize else { return }
    let slot = Int(packet.index & mask)
    entries[slot] = Entry(index: packet.index, length: packet.length, header: packet.header)
    (memory + slot * slotSize).copyMemory(from: packet.base, byteCount: packet.length)
  }

  /// The packet with this index, in the ring's own memory; nil when it never came or is gone.
  func packet(_ index: UInt64) -> Packet? {
    let slot = Int(index & mask)
    guard let entry = entries[slot], entry.index == index else { return nil }
    return Packet(
      base: memory + slot * slotSize, length: entry.length, header: entry.header, index: index)
  }
}

extension PacketHistory {
  /// Forgets all packets.
  func removeAll() {
    for slot in 0...Int(mask) { entries[slot] = nil }
  }
}
