/// The last packets of one stream that this side sent, before encryption, for pacing and retransmission. Allocated
/// once.
final class PacketRing {
  /// Room for one packet.
  static let slotSize = 1_280
  let capacity: Int
  private let memory: UnsafeMutableRawPointer
  private let lengths: UnsafeMutablePointer<Int>
  private let headers: UnsafeMutablePointer<Int>
  private let numbers: UnsafeMutablePointer<UInt16?>

  init(capacity: Int) {
    self.capacity = capacity
    memory = .allocate(byteCount: capacity * Self.slotSize, alignment: 64)
    lengths = .allocate(capacity: capacity)
    headers = .allocate(capacity: capacity)
    numbers = .allocate(capacity: capacity)
    lengths.initialize(repeating: 0, count: capacity)
    headers.initialize(repeating: 0, count: capacity)
    numbers.initialize(repeating: nil, count: capacity)
  }

  deinit {
    memory.deallocate()
    lengths.deallocate()
    headers.deallocate()
    numbers.deallocate()
  }

  /// Room for the packet with this sequence number; `finish` says how much of it was used.
  func room(for number: UInt16) -> UnsafeMutableRawBufferPointer {
    UnsafeMutableRawBufferPointer(start: memory + Int(number) % capacity * Self.slotSize, count: Self.slotSize)
  }

  func finish(_ number: UInt16, headerLength: Int, length: Int) {
    let slot = Int(number) % capacity
    lengths[slot] = length
    headers[slot] = headerLength
    numbers[slot] = number
  }

  /// The packet and the length of its header; nil when it has been overwritten or never existed.
  func packet(_ number: UInt16) -> (bytes: UnsafeRawBufferPointer, headerLength: Int)? {
    let slot = Int(number) % capacity
    guard numbers[slot] == number else { return nil }
    return (UnsafeRawBufferPointer(start: memory + slot * Self.slotSize, count: lengths[slot]), headers[slot])
  }
}
