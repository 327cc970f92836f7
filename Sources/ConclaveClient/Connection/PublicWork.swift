import Contract
import MediaModel
import NIOCore
import Synchronization

/// Results of work on public bytes that the participants of one process share: decoded bodies, and the list that follows from an announcement. They depend
/// only on those bytes and contain no secrets. Each participant still makes all its checks.
///
/// A phone has one participant in a call and shares with nobody: `PublicWork(capacity: 0)` keeps nothing.
package final class PublicWork: Sendable {
  /// Lists kept in each generation.
  private static let listLimit = 16
  private static let originLimit = 8

  private let capacity: Int
  private let values = Mutex(Generations<BodyKey, any Sendable>())
  private let words = Mutex(Generations<WordKey, Bool>())
  private let lists = Mutex(Generations<[UInt8], KnownList>())

  /// - Parameter capacity: the bytes of bodies that are kept. Each body may be kept twice.
  package init(capacity: Int) { self.capacity = capacity }

  var isShared: Bool { capacity > 0 }

  private struct BodyKey: Hashable {
    var type: ObjectIdentifier
    var name: EventName?
    var bytes: ByteBuffer
  }

  private struct WordKey: Hashable {
    var call: CallID
    var word: Admission
  }

  /// An epoch's list, and the announcements from which it was made: newcomers get the whole list, the others its
  /// changes.
  private struct KnownList {
    var epoch: UInt32
    var list: EpochList
    var origins: [Origin] = []
  }

  private struct Origin {
    /// nil for a list that arrived whole.
    var before: EpochList?
    var added: [ListEntry]
    var removed: [ParticipantNumber] = []

    func equals(_ other: Origin) -> Bool {
      before === other.before && added == other.added && removed == other.removed
    }
  }

  /// Recently used values: when the young generation is full, the old one is dropped.
  private struct Generations<Key: Hashable & Sendable, Value: Sendable>: Sendable {
    private var young: [Key: Value] = [:]
    private var old: [Key: Value] = [:]
    private var size = 0

    mutating func value(_ key: Key) -> Value? { young[key] ?? old[key] }

    mutating func keep(_ value: Value, for key: Key, size: Int, limit: Int) {
      if self.size + size > limit / 2 {
        old = young
        young = [:]
        self.size = 0
      }
      self.size += size
      young[key] = value
    }
  }

  /// The value that `make` reads from `bytes`, possibly made by another participant.
  func value<Value: Sendable>(
    in bytes: ByteBuffer, name: EventName? = nil, _ make: (ByteBuffer) throws -> Value
  ) rethrows -> Value {
    guard isShared else { return try make(bytes) }
    let key = BodyKey(type: ObjectIdentifier(Value.self), name: name, bytes: bytes)
    if let known = values.withLock({ $0.value(key) }) as? Value { return known }
    let value = try make(bytes)
    // A slice would keep the whole body from which it is cut.
    let own = BodyKey(type: key.type, name: name, bytes: ByteBuffer(bytes: bytes.readableBytesView))
    values.withLock { $0.keep(value, for: own, size: bytes.readableBytes, limit: capacity) }
    return value
  }

  /// Whether a word's signature is good. `keys` are the keys of which its fingerprint is the hash; nil for a word under a link's
  /// key.
  func isGood(_ word: Admission, in call: CallID, by keys: DeviceKeys?) -> Bool {
    guard isShared else { return word.isGood(in: call, by: keys) }
    let key = WordKey(call: call, word: word)
    if let known = words.withLock({ $0.value(key) }) { return known }
    let isGood = word.isGood(in: call, by: keys)
    // Without the keys it may still turn out to be good.
    if isGood { words.withLock { $0.keep(true, for: key, size: 1, limit: 4 * LettingIn.limit) } }
    return isGood
  }

  /// An epoch's list, built from all of its entries. `listHash` is the server's claim, used only as the key under which it is stored.
  func list(_ entries: [ListEntry], epoch: UInt32, listHash: [UInt8]) throws(KeyRefusal) -> EpochList {
    let origin = Origin(before: nil, added: entries)
    return try list(from: origin, epoch, listHash) { () throws(KeyRefusal) in try EpochList(entries, epoch: epoch) }
  }

  /// The list of the epoch after `before`'s.
  func list(
    after before: EpochList, adding added: [ListEntry], removing removed: [ParticipantNumber], epoch: UInt32,
    listHash: [UInt8]
  ) throws(KeyRefusal) -> EpochList {
    let origin = Origin(before: before, added: added, removed: removed)
    return try list(from: origin, epoch, listHash) { () throws(KeyRefusal) in
      try before.changed(adding: added, removing: removed, epoch: epoch)
    }
  }

  private func list(
    from origin: Origin, _ epoch: UInt32, _ listHash: [UInt8], _ make: () throws(KeyRefusal) -> EpochList
  ) throws(KeyRefusal) -> EpochList {
    guard isShared else { return try make() }
    let known = lists.withLock { $0.value(listHash) }.flatMap { $0.epoch == epoch ? $0 : nil }
    if let known, known.origins.contains(where: origin.equals) { return known.list }
    var list = try make()
    var origins = [origin]
    if let known, known.list.entries == list.entries {
      // One object for all, so that the next announcement has one list before it.
      list = known.list
      origins = known.origins.suffix(Self.originLimit - 1) + origins
    }
    let new = KnownList(epoch: epoch, list: list, origins: origins)
    lists.withLock { $0.keep(new, for: listHash, size: 1, limit: 2 * Self.listLimit) }
    return list
  }
}
