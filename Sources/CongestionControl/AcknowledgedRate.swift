/// The rate at which packets arrive at the receiver, over the last 500 ms of its clock.
struct AcknowledgedRate: Sendable {
  private static let slices = 25
  private static let length = 20 * Microseconds.millisecond
  private static var window: Microseconds { Microseconds(slices) * length }

  private struct Slice {
    var bytes = 0
    /// Packets of at least 200 bytes: audio alone says nothing about the path.
    var large = 0
  }

  private var ring = [Slice](repeating: Slice(), count: slices)
  private var newest: Microseconds = .min
  private var first: Microseconds = .min

  /// In bit/s; nil until 10 large packets and 150 ms have been seen.
  private(set) var value: Int?

  /// In range: an arrival is within 2^57, and sizes are those of packets that left.
  mutating func arrived(at arrival: Microseconds, size: Int) {
    let slice = arrival / Self.length
    if slice > newest || newest == .min {
      let steps = newest == .min ? Microseconds(Self.slices) : min(slice - newest, Microseconds(Self.slices))
      for step in 0..<steps { ring[place(slice - step, in: Self.slices)] = Slice() }
      // After a silence the window starts again.
      if steps == Self.slices { first = slice }
      newest = slice
    }
    guard newest - slice < Self.slices else { return }
    ring[place(slice, in: Self.slices)].bytes += size
    if size >= 200 { ring[place(slice, in: Self.slices)].large += 1 }
  }

  /// Computes `value`, once a report. In range: sizes are those of packets that left, at 1 Gbit/s 2^63 bytes in 2,000 years.
  mutating func update() {
    guard newest != .min else { return }
    let span = min(Microseconds(Self.slices), newest - first + 1) * Self.length
    guard span >= 150 * .millisecond else { return }
    var bytes = 0
    var large = 0
    for slice in ring {
      bytes += slice.bytes
      large += slice.large
    }
    value = large >= 10 ? rate(bytes: bytes, in: span) : nil
  }
}
