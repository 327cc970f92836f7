import Forwarding
import Synchronization

/// The messages from one worker to another: a ring of bytes that one thread writes and the other reads, without a lock.
///
/// An entry is its length with padding, the packet's length, the message and the packet. The writer publishes several entries at once. The memory is allocated
/// with the first entry, because most pairs of workers share no call.
final class RelayRing: @unchecked Sendable {
  /// In bytes: 40 ms of 200 Mbit/s.
  static let workers = 1 << 20
  /// 240 ms of 270 Mbit/s: the recorder's thread has the lower priority.
  static let recorder = 8 << 20
  private static let alignment = 16
  private static let messageOffset = 16
  private static let packetOffset = messageOffset + (MemoryLayout<RelayMessage>.size + 15) / 16 * 16
  /// In place of a length: the next entry is at the beginning of the ring.
  private static let wrap: UInt32 = 0

  /// A power of two.
  private let capacity: Int
  /// Messages that found no room.
  private let refused = Atomic<Int>(0)
  /// The total number of bytes published, and of bytes read.
  private let published = Atomic<Int>(0)
  private let consumed = Atomic<Int>(0)
  /// The writer sets it once, before it publishes the first entry; the reader reads it at any time after that.
  private var memory: UnsafeMutableRawPointer?
  /// Used by the writer: total bytes written, and the last value of `consumed` that it saw.
  private var written = 0
  private var knownConsumed = 0
  /// Used by the reader.
  private var taken = 0

  /// - Parameter capacity: in bytes, a power of two.
  init(capacity: Int = RelayRing.workers) { self.capacity = capacity }

  deinit { memory?.deallocate() }

  /// Messages that found no room since the start; for any thread.
  var refusedCount: Int { refused.load(ordering: .relaxed) }

  /// For the writer: adds an entry, which the reader sees after `publish`.
  /// - Returns: false if there is no room.
  func write(_ message: RelayMessage, _ packet: UnsafeRawBufferPointer) -> Bool {
    let length = (Self.packetOffset + packet.count + Self.alignment - 1) / Self.alignment * Self.alignment
    let offset = written & (capacity - 1)
    let rest = capacity - offset
    let needed = rest < length ? rest + length : length
    guard hasRoom(for: needed) else {
      refused.wrappingAdd(1, ordering: .relaxed)
      return false
    }
    let ring: UnsafeMutableRawPointer
    if let memory {
      ring = memory
    } else {
      ring = .allocate(byteCount: capacity, alignment: 64)
      memory = ring
    }
    var entry = ring + offset
    if rest < length {
      entry.storeBytes(of: Self.wrap, as: UInt32.self)
      entry = ring
    }
    entry.storeBytes(of: UInt32(length), as: UInt32.self)
    entry.storeBytes(of: UInt32(packet.count), toByteOffset: 4, as: UInt32.self)
    entry.storeBytes(of: message, toByteOffset: Self.messageOffset, as: RelayMessage.self)
    if let bytes = packet.baseAddress { (entry + Self.packetOffset).copyMemory(from: bytes, byteCount: packet.count) }
    written += needed
    return true
  }

  private func hasRoom(for length: Int) -> Bool {
    if written + length - knownConsumed <= capacity { return true }
    knownConsumed = consumed.load(ordering: .acquiring)
    return written + length - knownConsumed <= capacity
  }

  /// For the writer: makes everything written visible to the reader. Returns whether there was anything.
  func publish() -> Bool {
    guard published.load(ordering: .relaxed) != written else { return false }
    published.store(written, ordering: .releasing)
    return true
  }

  /// For the reader: passes at most `limit` entries to `each`, oldest first. The packet's bytes are valid until it returns.
  /// - Returns: the number of entries.
  func read(_ limit: Int, each: (RelayMessage, UnsafeMutableRawBufferPointer) -> Void) -> Int {
    let end = published.load(ordering: .acquiring)
    guard taken < end, let ring = memory else { return 0 }
    var count = 0
    while taken < end, count < limit {
      var entry = ring + taken & (capacity - 1)
      var length = Int(entry.load(as: UInt32.self))
      if length == Self.wrap {
        taken += capacity - taken & (capacity - 1)
        entry = ring
        length = Int(entry.load(as: UInt32.self))
      }
      let message = entry.load(fromByteOffset: Self.messageOffset, as: RelayMessage.self)
      let packet = UnsafeMutableRawBufferPointer(
        start: entry + Self.packetOffset, count: Int(entry.load(fromByteOffset: 4, as: UInt32.self)))
      each(message, packet)
      taken += length
      count += 1
    }
    consumed.store(taken, ordering: .releasing)
    return count
  }
}
