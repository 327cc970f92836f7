/// The numbers under which the packets of one source are sent in a slot, some of them left out.
///
/// Indices are unwrapped sequence numbers of the source, outputs are unwrapped sequence numbers of the slot. Invariants: outputs rise with
/// indices, no output is used twice, and a packet keeps its output as long as it is in the window. A packet that is omitted while it is the
/// newest gets no output, so the receiver sees no gap. A packet that is omitted after a newer one was sent leaves its output unused: a gap that
/// is never filled.
struct SequenceMap {
  /// How far behind the newest packet an index can still be mapped, and an output traced back.
  static let window: UInt64 = 1024

  /// The first packet of the source here, and the number that it got.
  private let first: UInt64
  private let firstOutput: UInt64
  /// The newest packet that was mapped or omitted; `first` − 1 before any.
  private var newest: UInt64
  /// Difference from the newest index to its output, modulo 2^64. It decreases by one with each packet that is omitted
  /// without a gap.
  private var offset: UInt64
  /// Within the window: the indices without an output, and those whose output is unused.
  private var omitted = IndexSet()
  private var withheld = IndexSet()
  /// Something was omitted within the window. Most maps omit nothing, and then no set is examined.
  private var hasOmissions = false

  /// The packet `first` gets `output`, unless it is omitted.
  /// - Parameters:
  ///   - first: above 0.
  ///   - output: neither it nor a higher number has been used before.
  init(first: UInt64, output: UInt64) {
    self.first = first
    firstOutput = output
    newest = first &- 1
    offset = output &- first
  }

  /// Whether no packet from `index` on was mapped or omitted.
  func isAhead(_ index: UInt64) -> Bool { index > newest }

  /// The output of a packet that is to be sent. The packet becomes the newest if no newer one exists.
  /// - Returns: nil if the packet precedes the first or the window, or was omitted.
  mutating func map(_ index: UInt64) -> UInt64? {
    if index > newest, index >= first { advance(to: index) }
    return output(of: index)
  }

  /// The output that a packet has; nil if it precedes the first or the window, is newer than the newest, or was omitted.
  func output(of index: UInt64) -> UInt64? {
    guard index >= first, index <= newest, newest &- index < Self.window else { return nil }
    return hasOmissions ? outputBesideOmissions(of: index) : index &+ offset
  }

  /// A separate function, so that the usual path copies no set.
  @inline(never)
  private func outputBesideOmissions(of index: UInt64) -> UInt64? {
    guard !omitted.contains(index), !withheld.contains(index) else { return nil }
    return index &+ offset &+ omitted.count(above: index, through: newest)
  }

  /// Omits a packet that was not mapped.
  mutating func omit(_ index: UInt64) {
    guard index >= first else { return }
    if index > newest {
      advance(to: index)
      omitted.insert(index)
      offset &-= 1
    } else if newest &- index < Self.window, !omitted.contains(index) {
      withheld.insert(index)
    } else {
      return
    }
    hasOmissions = true
  }

  /// The packet that has this output; nil if no packet has it, if it is unused, or if the packet precedes the window.
  func index(of output: UInt64) -> UInt64? {
    place(of: output).flatMap { withheld.contains($0) ? nil : $0 }
  }

  /// Whether `output` is a gap that is never filled, or precedes the first.
  func isUnused(_ output: UInt64) -> Bool {
    output < firstOutput || hasOmissions && place(of: output).map { withheld.contains($0) } ?? false
  }

  /// The packet that `output` belongs to, used or not.
  private func place(of output: UInt64) -> UInt64? {
    // The distance in outputs back from the last one that was used.
    let back = newest &+ offset &- output
    guard back < Self.window else { return nil }
    guard let index = !hasOmissions ? newest &- back : omitted.gap(back, from: newest) else { return nil }
    guard index >= first, index <= newest, newest &- index < Self.window else { return nil }
    return index
  }

  private mutating func advance(to index: UInt64) {
    if hasOmissions { forgetOmissions(through: index) }
    newest = index
  }

  /// The indices up to `index` enter the window, and others leave it.
  @inline(never)
  private mutating func forgetOmissions(through index: UInt64) {
    omitted.clear(after: newest, through: index)
    withheld.clear(after: newest, through: index)
    hasOmissions = !omitted.isEmpty || !withheld.isEmpty
  }

  /// Indices of the last window, one bit each.
  private struct IndexSet {
    private var words = InlineArray<16, UInt64>(repeating: 0)
    private var count = 0

    var isEmpty: Bool { count == 0 }

    func contains(_ index: UInt64) -> Bool { words[word(index)] & bit(index) != 0 }

    mutating func insert(_ index: UInt64) {
      if !contains(index) { count += 1 }
      words[word(index)] |= bit(index)
    }

    /// Makes room for indices that enter the window.
    mutating func clear(after old: UInt64, through new: UInt64) {
      guard count > 0 else { return }
      guard new &- old < window else {
        self = IndexSet()
        return
      }
      var index = old
      while index != new {
        index &+= 1
        if contains(index) { count -= 1 }
        words[word(index)] &= ~bit(index)
      }
    }

    /// Members in `low + 1 ... high`, which is within the window.
    func count(above low: UInt64, through high: UInt64) -> UInt64 {
      var total = 0
      var index = low &+ 1
      while index <= high {
        let end = min(high, index | 63)
        total &+= (words[word(index)] & mask(index, end)).nonzeroBitCount
        index = end &+ 1
      }
      return UInt64(total)
    }

    /// The index of the (`back` + 1)-th non-member, counted down from `high`; nil when the window has fewer. In range: it
    /// looks back over one window, and not below 0.
    func gap(_ back: UInt64, from high: UInt64) -> UInt64? {
      var left = Int(back)
      var end = high
      var seen: UInt64 = 0
      while seen < window {
        let start = max(end & ~63, high - min(high, window - 1))
        var others = ~words[word(end)] & mask(start, end)
        if others.nonzeroBitCount > left {
          // From the top, because the newest come first.
          while left > 0 {
            others &= ~(1 << UInt64(63 - others.leadingZeroBitCount))
            left -= 1
          }
          return end & ~63 | UInt64(63 - others.leadingZeroBitCount)
        }
        left -= others.nonzeroBitCount
        seen += end - start + 1
        guard start > 0 else { return nil }
        end = start - 1
      }
      return nil
    }

    private func word(_ index: UInt64) -> Int { Int(index >> 6 & 15) }

    private func bit(_ index: UInt64) -> UInt64 { 1 << (index & 63) }

    /// The bits of `low ... high`, both in one word.
    private func mask(_ low: UInt64, _ high: UInt64) -> UInt64 {
      UInt64.max >> (63 - (high & 63)) & UInt64.max << (low & 63)
    }
  }
}
