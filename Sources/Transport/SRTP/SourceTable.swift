import Octets

/// The replay windows of one direction by SSRC: open addressing, doubled when half full, at most `limit` sources.
///
/// Sources are never evicted, because a forgotten window would accept old packets again. Its contents are behind a pointer, so that an owner can store the
/// table as a constant: the runtime would check each packet's access to a variable for exclusivity.
struct SourceTable: ~Copyable {
  static let limit = 256

  private struct Source {
    var ssrc: UInt32
    var isUsed: Bool
    var window: ReplayWindow
  }

  private struct Contents {
    var sources = SourceTable.allocate(8)
    var count = 0
  }

  private let contents: UnsafeMutablePointer<Contents>

  init() {
    contents = .allocate(capacity: 1)
    contents.initialize(to: Contents())
  }

  deinit {
    contents.pointee.sources.deallocate()
    contents.deallocate()
  }

  var isFull: Bool { contents.pointee.count == Self.limit }

  /// Valid until the next `insert`.
  func find(_ ssrc: UInt32) -> UnsafeMutablePointer<ReplayWindow>? {
    let source = slot(ssrc)
    return source.pointee.isUsed ? window(source) : nil
  }

  /// - Parameters:
  ///   - ssrc: not in the table.
  ///   - index: of its first packet.
  func insert(_ ssrc: UInt32, first index: UInt64) -> UnsafeMutablePointer<ReplayWindow> {
    precondition(!isFull)
    if contents.pointee.count * 2 >= contents.pointee.sources.count { grow() }
    let source = slot(ssrc)
    source.initialize(to: Source(ssrc: ssrc, isUsed: true, window: ReplayWindow(startingAt: index)))
    contents.pointee.count += 1
    return window(source)
  }

  private func grow() {
    let old = contents.pointee.sources
    contents.pointee.sources = Self.allocate(old.count * 2)
    for source in old where source.isUsed { slot(source.ssrc).initialize(to: source) }
    old.deallocate()
  }

  /// Where `ssrc` is or belongs.
  private func slot(_ ssrc: UInt32) -> UnsafeMutablePointer<Source> {
    let sources = contents.pointee.sources
    let base = sources.baseAddress.unsafelyUnwrapped
    let mask = sources.count - 1
    var i = Int(truncatingIfNeeded: (ssrc &* 0x9e37_79b1) >> 16) & mask
    while base[i].isUsed, base[i].ssrc != ssrc { i = (i + 1) & mask }
    return base + i
  }

  private func window(_ source: UnsafeMutablePointer<Source>) -> UnsafeMutablePointer<ReplayWindow> {
    let offset = MemoryLayout<Source>.offset(of: \.window).unsafelyUnwrapped
    return (UnsafeMutableRawPointer(source) + offset).assumingMemoryBound(to: ReplayWindow.self)
  }

  private static func allocate(_ capacity: Int) -> UnsafeMutableBufferPointer<Source> {
    let sources = UnsafeMutableBufferPointer<Source>.allocate(capacity: capacity)
    sources.initialize(repeating: Source(ssrc: 0, isUsed: false, window: ReplayWindow()))
    return sources
  }
}
