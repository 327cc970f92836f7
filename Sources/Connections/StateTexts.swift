import Contract
import JSON
import MediaModel
import Synchronization

/// JSON that contains all members or devices of a call. Each device of a large call gets it when it joins, and again after a restart; a member or an entry
/// that has not changed since it was last written is not encoded again.
final class StateTexts: Sendable {
  /// Shorter lists are encoded directly.
  static let fewest = 16
  /// Calls whose members are remembered; the least recently written one is evicted. The text of 1,000 members takes 200
  /// kB.
  static let maximumCalls = 64
  /// Entries of key lists, and of lists of devices, that are remembered over all calls: 5 and 10 MB.
  static let maximumEntries = 8_192

  private typealias Members = Fragments<MemberState, UserID>

  private struct Known {
    var members: [CallID: Members] = [:]
    /// The most recently written last.
    var order: [CallID] = []
    let entries = Fragments(maximumCount: maximumEntries) { (entry: ListEntry) in entry.fingerprint }
    let devices = Fragments(maximumCount: maximumEntries) { (entry: DeviceEntry) in entry.fingerprint }
    /// The members and the list of the ringing call: only the last ones, because the rings of one call are adjacent.
    let ringMembers = Fragments(maximumCount: 1) { (_: [MemberState]) in 0 }
    let ringList = Fragments(maximumCount: 1) { (_: [ListEntry]) in 0 }

    mutating func members(of call: CallID) -> Members {
      order.removeAll { $0 == call }
      order.append(call)
      if let known = members[call] { return known }
      if order.count > StateTexts.maximumCalls { members[order.removeFirst()] = nil }
      let new = Members { $0.user }
      members[call] = new
      return new
    }
  }

  private let known = Mutex(Known())

  /// Members and entries that were encoded and are, or were, remembered.
  var encodings: Int {
    known.withLock { known in
      let others =
        known.entries.encodings + known.devices.encodings + known.ringMembers.encodings + known.ringList.encodings
      return known.members.values.reduce(others) { $0 + $1.encodings }
    }
  }

  /// - Parameter members: how many of the call's members occur in `value`: all of them.
  func encode(_ value: some Encodable & Sendable, of call: CallID, members: Int) throws(JSONError) -> [UInt8] {
    guard members >= Self.fewest else { return try JSONCoding.encode(value) }
    return try known.withLock { known throws(JSONError) in
      try JSONCoding.encode(value, reusing: known.members(of: call), capacity: 1_024 + 256 * members)
    }
  }

  /// A ring. Each device with an envelope gets a separate text, but the members and the list in it are those of the call and become JSON once.
  func encode(ring message: EventMessage) throws(JSONError) -> [UInt8] {
    try known.withLock { known throws(JSONError) in
      try JSONCoding.encode(
        message, reusing: known.ringMembers, known.ringList,
        capacity: 8_192 + known.ringMembers.size + known.ringList.size)
    }
  }

  /// - Parameter entries: how many of a key list occur in `value`.
  func encode(_ value: some Encodable & Sendable, entries: Int) throws(JSONError) -> [UInt8] {
    guard entries >= Self.fewest else { return try JSONCoding.encode(value) }
    return try known.withLock { known throws(JSONError) in
      try JSONCoding.encode(value, reusing: known.entries, capacity: 1_024 + 640 * entries)
    }
  }

  func encode(_ devices: Devices) throws(JSONError) -> [UInt8] {
    guard devices.devices.count >= Self.fewest else { return try JSONCoding.encode(devices) }
    return try known.withLock { known throws(JSONError) in
      try JSONCoding.encode(devices, reusing: known.devices, capacity: 1_024 + 768 * devices.devices.count)
    }
  }
}
