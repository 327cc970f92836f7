import Contract
import Crypto
import MediaModel
import Octets

/// The members of an epoch's list known to hold its secret and the same history of lists (protocol section 5, "Confirmation").
///
/// The server sums up the members' tags by XOR. It cannot compute the sum of a set with a tag that it never got, and every member can recompute
/// the sum.
struct Confirmation: Sendable {
  static let bucketSize = 64
  static let tagByteCount = 16

  private let tagging: Tagging
  private let list: EpochList
  /// Which entries of each bucket are in its sum, as last reported correctly by the server.
  private var confirmed: [UInt64]
  /// Entries whose individual tag was wrong.
  private(set) var refuted: Set<ParticipantNumber> = []
  /// Buckets whose individual tags were requested: once each.
  private var examined: Set<Int> = []
  /// The server was wrong about a bucket, and no individual tag explains why.
  private(set) var isContradicted = false
  private var tags: [Int: [UInt8]] = [:]
  /// Rises with every finding.
  private(set) var revision = 0

  init(key: SymmetricKey, list: EpochList, own: ParticipantNumber) {
    tagging = Tagging(key: key)
    self.list = list
    confirmed = [UInt64](repeating: 0, count: (list.entries.count + Self.bucketSize - 1) / Self.bucketSize)
    if let index = index(of: own) { mark(index) }
  }

  /// Makes the tags under one key, which is prepared once for all.
  private struct Tagging: Sendable {
    private let begun: HMAC<SHA256>

    init(key: SymmetricKey) { begun = HMAC(key: key) }

    func tag(_ participant: ParticipantNumber, _ identity: SenderIdentity) -> [UInt8] {
      var content = Transcript()
      content.append(participant)
      content.append(identity.fingerprint)
      content.append(identity.joinId)
      var code = begun
      code.update(data: content.bytes)
      return Array(code.finalize().prefix(tagByteCount))
    }
  }

  static func tag(_ key: SymmetricKey, _ participant: ParticipantNumber, _ identity: SenderIdentity) -> [UInt8] {
    Tagging(key: key).tag(participant, identity)
  }

  /// The verdict on a bucket from the server.
  enum Finding: Sendable, Equatable {
    /// Its entries are confirmed.
    case right
    /// Its individual tags must be requested.
    case examine(bucket: Int)
    /// It is wrong, and its tags were requested before or it is not a bucket of this list.
    case refused
  }

  mutating func check(_ bucket: ConfirmationBucket) -> Finding {
    revision += 1
    guard confirmed.indices.contains(bucket.index) else { return .refused }
    guard let who = Self.number(bucket.who.bytes), bucket.tag.bytes.count == Self.tagByteCount,
      who & ~present(bucket.index) == 0, ~who & toldBefore(bucket.index) == 0,
      sum(bucket.index, who) == bucket.tag.bytes
    else { return examined.insert(bucket.index).inserted ? .examine(bucket: bucket.index) : .refused }
    told[bucket.index] = who
    confirmed[bucket.index] |= who
    for bit in 0..<Self.bucketSize where who & Self.mask(bit) != 0 {
      refuted.remove(list.entries[bucket.index * Self.bucketSize + bit].participant)
    }
    return .right
  }

  /// Checks the senders' individual tags of a bucket that was wrong.
  mutating func check(_ single: [ConfirmationTags.Tag], of bucket: Int) {
    revision += 1
    guard confirmed.indices.contains(bucket) else { return }
    var isExplained = false
    for tag in single {
      guard let index = index(of: tag.participant), index / Self.bucketSize == bucket else { continue }
      if expected(index) == tag.tag.bytes {
        mark(index)
      } else if confirmed[bucket] & Self.mask(index % Self.bucketSize) == 0 {
        refuted.insert(tag.participant)
        isExplained = true
      }
    }
    if !isExplained { isContradicted = true }
  }

  /// Every entry has confirmed, and no tag was wrong.
  var isConfirmed: Bool { isComplete && refuted.isEmpty }

  var isComplete: Bool { confirmed.indices.allSatisfy { confirmed[$0] == present($0) } }

  /// Whether the device has proven that it has the key.
  func isConfirmed(_ entry: ListEntry) -> Bool {
    guard let index = list.position(of: entry.address), list.entries[index] == entry else { return false }
    return confirmed[index / Self.bucketSize] & Self.mask(index % Self.bucketSize) != 0
  }

  /// The entries that have not confirmed.
  var missing: [ListEntry] {
    list.entries.enumerated().filter {
      confirmed[$0.offset / Self.bucketSize] & Self.mask($0.offset % Self.bucketSize) == 0
    }.map(\.element)
  }

  // MARK: buckets

  /// The bits of each bucket's last right sum: none may be cleared.
  private var told: [Int: UInt64] = [:]

  private func toldBefore(_ bucket: Int) -> UInt64 { told[bucket] ?? 0 }

  private mutating func mark(_ index: Int) {
    confirmed[index / Self.bucketSize] |= Self.mask(index % Self.bucketSize)
  }

  private func index(of participant: ParticipantNumber) -> Int? {
    list[participant].flatMap { entry in list.position(of: entry.address) }
  }

  /// The bits that belong to entries of the list.
  private func present(_ bucket: Int) -> UInt64 {
    let count = min(Self.bucketSize, list.entries.count - bucket * Self.bucketSize)
    return count == Self.bucketSize ? .max : ~(UInt64.max >> UInt64(count))
  }

  private static func mask(_ bit: Int) -> UInt64 { 1 << UInt64(bucketSize - 1 - bit) }

  private mutating func sum(_ bucket: Int, _ who: UInt64) -> [UInt8] {
    var sum = [UInt8](repeating: 0, count: Self.tagByteCount)
    for bit in 0..<Self.bucketSize where who & Self.mask(bit) != 0 {
      let tag = expected(bucket * Self.bucketSize + bit)
      for i in sum.indices { sum[i] ^= tag[i] }
    }
    return sum
  }

  private mutating func expected(_ index: Int) -> [UInt8] {
    if let tag = tags[index] { return tag }
    let entry = list.entries[index]
    let tag = tagging.tag(
      entry.participant,
      SenderIdentity(fingerprint: entry.fingerprint.bytes, joinId: entry.joinId?.bytes ?? []))
    tags[index] = tag
    return tag
  }

  private static func number(_ bytes: [UInt8]) -> UInt64? {
    bytes.count == 8 ? UInt64(networkOrder: bytes) : nil
  }
}
