import CallMessages
import Contract
import MediaModel

/// The first reply of each join of a call, for repetitions of it (rule 14). Above `maximumCost`, the oldest lose the call's state, which is then created
/// again.
struct JoinMemory {
  enum Kind: String { case start, accept, join, rejoin, transfer }

  private struct Kept {
    var kind: Kind
    var reply: Joined
    var hasState = true
  }

  /// Members in all kept states, which bounds their memory.
  private static let maximumCost = 20_000
  /// The least number of joins that are remembered; a retry comes within seconds.
  private static let maximumCount = 4_096

  private var kept: [JoinToken: Kept] = [:]
  private var order: [JoinToken] = []
  private var firstWithState = 0
  private var cost = 0

  /// - Parameter hasState: false for a reply without the call's members.
  mutating func keep(_ reply: Joined, _ kind: Kind, for token: JoinToken, hasState: Bool = true) {
    if order.count == 2 * Self.maximumCount { forgetOldest() }
    kept[token] = Kept(kind: kind, reply: reply, hasState: hasState)
    order.append(token)
    cost += reply.call.members.count
    while cost > Self.maximumCost, firstWithState < order.count - 1 {
      let old = order[firstWithState]
      cost -= kept[old]?.reply.call.members.count ?? 0
      kept[old]?.reply.call.members = []
      kept[old]?.hasState = false
      firstWithState += 1
    }
  }

  /// A join from before the restart, whose reply's state is created again.
  mutating func restore(_ reply: Joined, _ kind: Kind, for token: JoinToken) {
    kept[token] = Kept(kind: kind, reply: reply, hasState: false)
    order.append(token)
    firstWithState = order.count
  }

  func kind(of token: JoinToken) -> Kind? { kept[token]?.kind }

  private mutating func forgetOldest() {
    for (place, old) in order.prefix(Self.maximumCount).enumerated() {
      if place >= firstWithState { cost -= kept[old]?.reply.call.members.count ?? 0 }
      kept[old] = nil
    }
    order.removeFirst(Self.maximumCount)
    firstWithState = max(0, firstWithState - Self.maximumCount)
  }

  /// The first reply, if `token` has joined by the same request before; nil for a new join.
  /// - Throws: `request.invalid` if a joinId is used for another kind of join: it identifies one stay.
  func reply(to token: JoinToken, _ kind: Kind, state: () -> CallState) throws(RequestError) -> Joined? {
    guard let kept = kept[token] else { return nil }
    guard kept.kind == kind else {
      throw RequestError(.requestInvalid, "a new joinId is needed for each stay in a call", field: "joinId")
    }
    guard !kept.hasState else { return kept.reply }
    var reply = kept.reply
    reply.call = state()
    return reply
  }
}
