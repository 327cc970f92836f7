/// The one part of a file that a request wants (RFC 9110 section 14.1.2).
struct ByteRange: Hashable, Sendable {
  enum Wanted: Hashable, Sendable {
    case whole
    case part(Range<Int>)
    /// No byte of the file is in it.
    case nothing
  }

  /// A header of several parts, or of another form, is ignored, as the RFC allows.
  /// - Parameters:
  ///   - header: `Range`.
  ///   - count: the bytes of the file.
  static func wanted(_ header: String?, of count: Int) -> Wanted {
    guard let header, header.hasPrefix("bytes=") else { return .whole }
    let bounds = header.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
    guard bounds.count == 2, bounds.allSatisfy({ $0.utf8.allSatisfy(isDigit) && $0.utf8.count <= 18 }) else {
      return .whole
    }
    switch (Int(bounds[0]), Int(bounds[1])) {
    case (let first?, let last?):
      guard first <= last else { return .whole }
      return first < count ? .part(first..<min(last, count - 1) + 1) : .nothing
    case (let first?, nil): return first < count ? .part(first..<count) : .nothing
    case (nil, let suffix?): return suffix > 0 && count > 0 ? .part(max(0, count - suffix)..<count) : .nothing
    case (nil, nil): return .whole
    }
  }

  private static func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
}
