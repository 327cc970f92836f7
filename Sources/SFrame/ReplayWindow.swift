/// Which of the newest 1,024 counters of a key have been seen. Check first, mark only what the tag proved: a forged frame must not move the window.
struct ReplayWindow: Sendable {
  static let size: UInt64 = 1024

  private var highest: UInt64?
  /// A bit a counter, at counter mod 1,024; bits of counters that have left the window are cleared as it moves.
  private var bits = [UInt64](repeating: 0, count: Int(size) / 64)

  /// False when `counter` was marked before, is older than the window, or lies more than `limit` above the highest one (0 before the first).
  func accepts(_ counter: UInt64, movingAtMost limit: UInt64 = .max) -> Bool {
    guard let highest, counter <= highest else { return counter - (highest ?? 0) <= limit }
    guard highest - counter < Self.size else { return false }
    return bits[Self.word(counter)] & Self.mask(counter) == 0
  }

  /// Marks a counter that `accepts` let through and that was authentic.
  mutating func mark(_ counter: UInt64) {
    if let highest, counter > highest {
      if counter - highest >= Self.size {
        for i in bits.indices { bits[i] = 0 }
      } else {
        var passed = highest + 1
        while passed < counter {
          bits[Self.word(passed)] &= ~Self.mask(passed)
          passed += 1
        }
      }
    }
    highest = max(highest ?? 0, counter)
    bits[Self.word(counter)] |= Self.mask(counter)
  }

  private static func word(_ counter: UInt64) -> Int { Int(counter % size) / 64 }
  private static func mask(_ counter: UInt64) -> UInt64 { 1 << (counter % 64) }
}
