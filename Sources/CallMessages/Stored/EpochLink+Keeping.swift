package import Contract

/// How much of a call's chain of lists is kept.
extension EpochLink {
  /// The maximum of links.
  package static let maximumKept = 1_000

  /// The last epoch whose link is no longer kept when this one is the newest.
  package var endOfForgotten: UInt32? {
    epoch > Self.maximumKept ? epoch - UInt32(Self.maximumKept) : nil
  }
}
