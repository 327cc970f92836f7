package import Contract
package import MediaModel

/// How far a reel went at some time: as a witness says, or as this client saw it.
package struct ReelHead: Hashable, Sendable {
  package var segments: UInt32
  /// The last one's; `.zeros` if there are no segments.
  package var hash: SegmentHash
  /// No further segment follows.
  package var isEnd: Bool

  package init(segments: UInt32, hash: SegmentHash, isEnd: Bool = false) {
    self.segments = segments
    self.hash = hash
    self.isEnd = isEnd
  }
}

/// The segments of one reel as the server lists them, page by page, and what a reader says about that.
package struct ReelIndex: Sendable {
  package struct Entry: Hashable, Sendable {
    package var byteCount: Int
    package var hash: SegmentHash
    /// Microseconds since 1970.
    package var start: Int64
  }

  package enum Finding: Hashable, Sendable {
    /// All that its author made.
    case complete
    /// No witness says that this is the end.
    case unfinished
    /// It was longer.
    case cutOff
    /// It is not what its author made, or not what this client saw.
    case changed
  }

  /// The most segments: three days of 2 s.
  package static let capacity = 131_072

  package let recording: RecordingID
  package let reel: UInt32
  package private(set) var entries: [Entry] = []

  package init(recording: RecordingID, reel: UInt32) {
    self.recording = recording
    self.reel = reel
  }

  /// Adds the next page. All of it counts, or nothing.
  package mutating func append(_ page: ReelPage) throws(ReelIndexError) {
    guard page.participant == reel else { throw .anotherReel }
    guard page.from == entries.count else { throw .notNext }
    guard page.segments.count <= Self.capacity - entries.count else { throw .tooLong }
    var added: [Entry] = []
    added.reserveCapacity(page.segments.count)
    for segment in page.segments {
      guard (Self.smallest...SegmentHeader.maximumSegmentBytes).contains(segment.byteCount),
        (0..<SegmentHeader.timeLimit).contains(segment.start), let hash = SegmentHash(segment.hash.bytes)
      else { throw .impossible }
      added.append(Entry(byteCount: segment.byteCount, hash: hash, start: segment.start))
    }
    entries += added
  }

  private static let smallest = SegmentHeader.byteCount + SegmentHeader.tagBytes

  /// Whether a segment that was fetched is the one that is listed, at its place in the chain.
  /// - Parameter hash: of the whole file, as computed by the reader.
  package func holds(_ header: SegmentHeader, byteCount: Int, hash: SegmentHash) -> Bool {
    let number = Int(header.number)
    guard header.recording == recording, header.reel == reel, number < entries.count else { return false }
    return entries[number] == Entry(byteCount: byteCount, hash: hash, start: header.start)
      && header.previous == (number == 0 ? .zeros : entries[number - 1].hash)
  }

  /// Compares the list with what is known of the reel.
  /// - Parameters:
  ///   - witnesses: those with a good signature of the reel's device.
  ///   - remembered: what this client saw earlier.
  package func finding(witnesses: [ReelHead], remembered: ReelHead? = nil) -> Finding {
    let known = witnesses + (remembered.map { [$0] } ?? [])
    if known.contains(where: contradicts) { return .changed }
    if known.contains(where: { $0.segments > entries.count }) { return .cutOff }
    return known.contains(where: \.isEnd) ? .complete : .unfinished
  }

  private func contradicts(_ head: ReelHead) -> Bool {
    let count = Int(head.segments)
    guard count <= entries.count else { return false }
    return head.hash != (count == 0 ? .zeros : entries[count - 1].hash) || (head.isEnd && count < entries.count)
  }
}

/// Why a page of segments is refused.
package enum ReelIndexError: Error, Hashable, Sendable {
  case anotherReel
  /// It does not continue the page before.
  case notNext
  case tooLong
  /// No segment has such a length, hash or time.
  case impossible
}
