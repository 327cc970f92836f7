/// Messages are padded before they are sealed, because the server sees their length (protocol section 5.10): a byte 80, then the fewest zeros up to a multiple of
/// 64.
enum MessagePadding {
  static let blockByteCount = 64
  private static let mark: UInt8 = 0x80

  static func padded(_ text: [UInt8]) -> [UInt8] {
    text + [mark] + [UInt8](repeating: 0, count: blockByteCount - 1 - text.count % blockByteCount)
  }

  /// nil for any padding but the shortest: a text has only one form.
  static func text(of padded: [UInt8]) -> [UInt8]? {
    guard padded.count % blockByteCount == 0, let end = padded.lastIndex(where: { $0 != 0 }), padded[end] == mark,
      padded.count - end <= blockByteCount
    else { return nil }
    return Array(padded[..<end])
  }
}
