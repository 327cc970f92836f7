package import MediaModel

extension Timestamp {
  /// A client of any language can write it as a number, so it may be in what devices sign.
  package var isSignable: Bool { (0..<(1 << 53)).contains(milliseconds) }
}
