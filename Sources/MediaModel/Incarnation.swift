/// One run of one server: a number of 28 bits that no other run and no other server has. It is part of every id that a server makes by counting, so two
/// servers never make the same one.
package struct Incarnation: Hashable, Sendable, BitwiseCopyable {
  /// Less than 2²⁸.
  package let rawValue: UInt64

  /// The lower 28 bits of `number`: a server that starts every second begins again after 8 years.
  package init(_ number: UInt32) { rawValue = UInt64(number) & 0xfff_ffff }
}

/// An id that a server makes by counting: its incarnation in the upper 28 bits, a counter in the lower 36.
package protocol CountedID: Hashable, Sendable, BitwiseCopyable {
  var rawValue: UInt64 { get }
  init(rawValue: UInt64)
}

extension CountedID {
  /// - Parameter number: its lower 36 bits count, so the ids of an incarnation begin again after 68 billion and never become those of another one.
  package init(_ number: UInt64, of incarnation: Incarnation) {
    self.init(rawValue: incarnation.rawValue << 36 | number & 0xf_ffff_ffff)
  }

  /// The counter, without the incarnation: for logs and other readers that know only one server.
  package var number: UInt64 { rawValue & 0xf_ffff_ffff }
}
