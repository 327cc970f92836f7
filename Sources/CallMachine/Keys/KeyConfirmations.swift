import CallMessages
import Contract
import MediaModel
import Octets

/// The tags with which the devices of one list confirmed its epoch, and their XOR for each 64 entries (protocol section 5, "Confirmation").
///
/// The server cannot check a tag, and cannot compute the XOR of a set with a tag that it never got.
struct KeyConfirmations {
  static let bucketSize = 64
  static let tagSize = 16

  /// 16 bytes.
  private struct Tag {
    var high: UInt64 = 0
    var low: UInt64 = 0

    init() {}

    init(_ bytes: [UInt8]) {
      high = UInt64(networkOrder: bytes.prefix(8))
      low = UInt64(networkOrder: bytes.dropFirst(8).prefix(8))
    }

    mutating func add(_ other: Tag) {
      high ^= other.high
      low ^= other.low
    }

    var bytes: Base64Bytes { Base64Bytes(high.networkOrderBytes + low.networkOrderBytes) }
  }

  private struct Bucket {
    /// Entry i of the bucket is bit 63 − i.
    var who: UInt64 = 0
    var sum = Tag()
    var hasChanged = false
  }

  /// Indexed by the entry's index on the list.
  private var tags: [Tag?]
  private var sums: [Bucket]
  private var count = 0
  /// Indices whose tags are not on disk yet.
  private var unstored: [Int] = []

  /// - Parameter count: the number of entries on the list.
  init(count: Int) {
    tags = Array(repeating: nil, count: count)
    sums = Array(repeating: Bucket(), count: (count + Self.bucketSize - 1) / Self.bucketSize)
  }

  init(restoring stored: [ParticipantNumber: Base64Bytes], _ list: [ListEntry]) {
    self.init(count: list.count)
    for (place, entry) in list.enumerated() {
      if let tag = stored[entry.participant] { _ = add(tag, at: place) }
    }
    unstored = []
  }

  /// Everybody on the list has confirmed.
  var isComplete: Bool { count == tags.count }

  /// The first tag of an entry stays. Returns whether the tag was added or is the same.
  mutating func add(_ tag: Base64Bytes, at place: Int) -> Bool {
    guard tags[place] == nil else { return false }
    let tag = Tag(tag.bytes)
    tags[place] = tag
    count += 1
    unstored.append(place)
    let bucket = place / Self.bucketSize
    sums[bucket].who |= 1 << UInt64(Self.bucketSize - 1 - place % Self.bucketSize)
    sums[bucket].sum.add(tag)
    sums[bucket].hasChanged = true
    return true
  }

  /// All buckets with a tag.
  var buckets: [ConfirmationBucket] { sums.indices.filter { sums[$0].who != 0 }.map(bucket) }

  /// The buckets that changed since the last call.
  mutating func takeChanged() -> [ConfirmationBucket] {
    let changed = sums.indices.filter { sums[$0].hasChanged }
    for place in changed { sums[place].hasChanged = false }
    return changed.map(bucket)
  }

  /// The individual tags of a bucket; nil if the list has no such bucket.
  func tags(in bucket: Int, of list: [ListEntry]) -> [ConfirmationTags.Tag]? {
    guard sums.indices.contains(bucket) else { return nil }
    let first = bucket * Self.bucketSize
    return (first..<min(first + Self.bucketSize, tags.count)).compactMap { place in
      tags[place].map { ConfirmationTags.Tag(participant: list[place].participant, tag: $0.bytes) }
    }
  }

  // MARK: what survives a restart

  mutating func takeUnstored(_ list: [ListEntry]) -> [(ParticipantNumber, Base64Bytes)] {
    guard !unstored.isEmpty else { return [] }
    defer { unstored = [] }
    return unstored.compactMap { place in tags[place].map { (list[place].participant, $0.bytes) } }
  }

  mutating func countAsUnstored() { unstored = tags.indices.filter { tags[$0] != nil } }

  private func bucket(_ place: Int) -> ConfirmationBucket {
    ConfirmationBucket(
      index: place, who: Base64Bytes(sums[place].who.networkOrderBytes), tag: sums[place].sum.bytes)
  }
}
