/// Which of the last 1,024 packets of a stream have come, so that each is used once, however it came.
///
/// Once matters beyond waste: a sequence number sent twice with other contents would repeat a GCM nonce towards the receivers.
struct ReceiveWindow {
  static let size: UInt64 = 1024

  enum Arrival { case new, duplicate, late }

  private var words = InlineArray<16, UInt64>(repeating: 0)
  private var highest: UInt64?

  mutating func insert(_ index: UInt64) -> Arrival {
    guard let highest else {
      self.highest = index
      set(index)
      return .new
    }
    if index > highest {
      clear(behind: highest, through: index)
      self.highest = index
      set(index)
      return .new
    }
    guard highest - index < Self.size else { return .late }
    guard words[word(index)] & bit(index) == 0 else { return .duplicate }
    set(index)
    return .new
  }

  private mutating func clear(behind old: UInt64, through new: UInt64) {
    guard new - old < Self.size else {
      words = .init(repeating: 0)
      return
    }
    var index = old + 1
    while index <= new {
      words[word(index)] &= ~bit(index)
      index += 1
    }
  }

  private mutating func set(_ index: UInt64) { words[word(index)] |= bit(index) }

  private func word(_ index: UInt64) -> Int { Int(index >> 6 & 15) }

  private func bit(_ index: UInt64) -> UInt64 { 1 << (index & 63) }
}
