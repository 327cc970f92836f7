import Contract
import JSON
import MediaModel
import Synchronization

/// JSON in which all members of a call occur. Each device of a large call gets it, most of all after a restart; a member who has not changed since it was
/// last written is not encoded again.
final class StateTexts: Sendable {
  /// Calls with fewer members are encoded as they are.
  static let fewestMembers = 16
  /// Calls that are remembered; the least recently written makes room. The text of 1,000 members takes 200 kB.
  static let maximumCalls = 64

  private struct Known {
    var members: [CallID: Fragments<MemberState>] = [:]
    /// The most recently written last.
    var order: [CallID] = []

    mutating func fragments(of call: CallID) -> Fragments<MemberState> {
      order.removeAll { $0 == call }
      order.append(call)
      if let known = members[call] { return known }
      if order.count > StateTexts.maximumCalls { members[order.removeFirst()] = nil }
      let new = Fragments<MemberState>()
      members[call] = new
      return new
    }
  }

  private let known = Mutex(Known())

  /// Members that were encoded for the calls that are remembered.
  var encodings: Int { known.withLock { $0.members.values.reduce(0) { $0 + $1.encodings } } }

  /// - Parameter members: how many occur in `value`: all of the call, in their order.
  func encode(_ value: some Encodable & Sendable, of call: CallID, members: Int) throws(JSONError) -> [UInt8] {
    guard members >= Self.fewestMembers else { return try JSON.encode(value) }
    return try known.withLock { known throws(JSONError) in
      try JSON.encode(value, reusing: known.fragments(of: call))
    }
  }
}
