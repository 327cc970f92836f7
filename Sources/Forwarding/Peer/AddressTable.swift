import MediaModel

/// Maps an address to its pair, and so to its peer. Open addressing on flat memory, because it is looked up once for each datagram, including
/// hostile ones.
final class AddressTable {
  private struct Entry {
    var address: SocketAddress
    var pair: Unmanaged<CandidatePair>
  }

  private var entries: UnsafeMutablePointer<Entry?>
  private var mask: Int
  private(set) var count = 0
  /// So that nobody can choose colliding addresses.
  private let seed: UInt64

  init(seed: UInt64) {
    self.seed = seed | 1
    mask = 63
    entries = .allocate(capacity: mask + 1)
    entries.initialize(repeating: nil, count: mask + 1)
  }

  deinit { entries.deallocate() }

  /// The table holds no reference: a pair is removed before it is freed.
  subscript(address: SocketAddress) -> CandidatePair? {
    var slot = home(address)
    while let entry = entries[slot] {
      if entry.address == address { return entry.pair.takeUnretainedValue() }
      slot = (slot + 1) & mask
    }
    return nil
  }

  func insert(_ pair: CandidatePair) {
    let address = pair.address
    if (count + 1) * 2 > mask { grow() }
    var slot = home(address)
    while let entry = entries[slot] {
      if entry.address == address {
        entries[slot]!.pair = .passUnretained(pair)
        return
      }
      slot = (slot + 1) & mask
    }
    entries[slot] = Entry(address: address, pair: .passUnretained(pair))
    count += 1
  }

  func remove(_ address: SocketAddress) {
    var slot = home(address)
    while let entry = entries[slot], entry.address != address { slot = (slot + 1) & mask }
    guard entries[slot] != nil else { return }
    entries[slot] = nil
    count -= 1
    // It may have displaced the entries behind it; insert them again.
    var next = (slot + 1) & mask
    while let entry = entries[next] {
      entries[next] = nil
      count -= 1
      insert(entry.pair.takeUnretainedValue())
      next = (next + 1) & mask
    }
  }

  private func grow() {
    let old = entries
    let capacity = mask + 1
    mask = capacity * 2 - 1
    entries = .allocate(capacity: mask + 1)
    entries.initialize(repeating: nil, count: mask + 1)
    count = 0
    for slot in 0..<capacity {
      if let entry = old[slot] { insert(entry.pair.takeUnretainedValue()) }
    }
    old.deallocate()
  }

  private func home(_ address: SocketAddress) -> Int {
    var hash = (address.high ^ seed) &* 0x9e37_79b9_7f4a_7c15
    hash = (hash ^ (hash >> 32) ^ address.low) &* 0xbf58_476d_1ce4_e5b9
    hash = (hash ^ (hash >> 29) ^ UInt64(address.port) << 32 ^ UInt64(address.scope)) &* 0x94d0_49bb_1331_11eb
    return Int(truncatingIfNeeded: hash >> 40) & mask
  }
}
