/// Which of the newest 1,024 numbers of a sequence were seen, so that each is used once: SRTP's indices (RFC 3711 section 3.3.2), SFrame's
/// counters, the packets of an up-track.
///
/// Check with `arrival(of:)` and record only authentic numbers: a forged number must not move the window. Numbers are below 2^64 − 1.
package struct ReplayWindow: Sendable {
  package static let size: UInt64 = 1024

  package enum Arrival: Sendable {
    /// Not seen, and in the window or above it.
    case new
    case seen
    /// Too old to tell.
    case late
  }

  /// One more than the highest number; 0 before the first.
  @usableFromInline var end: UInt64
  /// A ring: number n is bit n mod 1,024. Not an `InlineArray`, which is not available to apps on macOS 15 and iOS 18.
  @usableFromInline var words: Words = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)

  @usableFromInline typealias Words = (
    UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64,
    UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64, UInt64
  )

  @inlinable package init() { end = 0 }

  /// A window whose highest number is `first`, which is not recorded yet.
  @inlinable package init(startingAt first: UInt64) { end = first &+ 1 }

  /// The highest recorded number, or the number at which the window starts; nil before the first.
  @inlinable package var highest: UInt64? { end == 0 ? nil : end &- 1 }

  /// Mutating only because Swift then reads a tuple's words in place, and otherwise copies all of them.
  @inlinable package mutating func arrival(of number: UInt64) -> Arrival {
    guard number < end else { return .new }
    guard end &- number <= Self.size else { return .late }
    return withWord(of: number) { $0 & Self.bit(number) == 0 } ? .new : .seen
  }

  /// Records a number that was `new`; the window moves up to it.
  @inlinable package mutating func record(_ number: UInt64) {
    if number >= end {
      if number &- end >= Self.size {
        words = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
      } else {
        var passed = end
        while passed < number {
          withWord(of: passed) { $0 &= ~Self.bit(passed) }
          passed &+= 1
        }
      }
      end = number &+ 1
      // The bit may belong to a number one window ago; it is set either way.
    }
    withWord(of: number) { $0 |= Self.bit(number) }
  }

  @inlinable static func bit(_ number: UInt64) -> UInt64 { 1 << (number & 63) }

  /// The mask keeps the word within the tuple.
  @inlinable mutating func withWord<Result>(of number: UInt64, _ body: (inout UInt64) -> Result) -> Result {
    withUnsafeMutableBytes(of: &words) {
      body(&$0.assumingMemoryBound(to: UInt64.self)[Int(truncatingIfNeeded: number >> 6 & 15)])
    }
  }
}
