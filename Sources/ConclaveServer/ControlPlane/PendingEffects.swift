import Calls
import NIOCore
import Signaling

/// The effects of commands in the commands' order, until everything that they may tell of is on the disk.
///
/// ## Overview
/// A command's effects wait for its own changes and for those of all commands before it, since a reply may tell of what another command changed. They go
/// out in the order of the commands: replies, events, media commands and webhooks alike.
///
/// Reports of the media plane (speakers, slots) are not stored and must not wait for a disk: `releasable` lets them pass, except to a session for which
/// something waits already. Each session so sees one order.
struct PendingEffects {
  private struct Entry {
    var effects: [Calls.Effect]
    /// The number of the last command whose changes have to be on the disk before.
    var behind: UInt64
  }

  private var entries = CircularBuffer<Entry>()
  /// How many effects wait for each session; media commands, webhooks and questions are for none.
  private var sessions: [SessionID: Int] = [:]
  /// Effects that wait.
  private(set) var count = 0

  var isEmpty: Bool { entries.isEmpty }

  /// Puts effects behind all others.
  /// - Parameter number: all changes up to this one have to be on the disk before they go out; never less than in the call before.
  mutating func append(_ effects: [Calls.Effect], behind number: UInt64) {
    guard !effects.isEmpty else { return }
    for effect in effects { if let session = effect.session { sessions[session, default: 0] += 1 } }
    count += effects.count
    entries.append(Entry(effects: effects, behind: number))
  }

  /// The effects of something that is stored nowhere: returns those that overtake nothing, and puts the others behind all that wait.
  mutating func releasable(_ effects: [Calls.Effect], behind number: UInt64) -> [Calls.Effect] {
    guard !entries.isEmpty else { return effects }
    var passing: [Calls.Effect] = []
    var waiting: [Calls.Effect] = []
    for effect in effects {
      if let session = effect.session, sessions[session] == nil {
        passing.append(effect)
      } else {
        waiting.append(effect)
      }
    }
    append(waiting, behind: number)
    return passing
  }

  /// Takes out effects whose turn has come.
  /// - Parameters:
  ///   - number: all changes up to this one are on the disk, or will not be waited for.
  ///   - limit: ends with the command that reaches so many effects.
  mutating func release(through number: UInt64, limit: Int) -> [Calls.Effect] {
    var released: [Calls.Effect] = []
    while released.count < limit, let entry = entries.first, entry.behind <= number {
      entries.removeFirst()
      count -= entry.effects.count
      for effect in entry.effects { if let session = effect.session { forget(session) } }
      if released.isEmpty { released = entry.effects } else { released += entry.effects }
    }
    return released
  }

  private mutating func forget(_ session: SessionID) {
    guard let count = sessions[session] else { return }
    sessions[session] = count == 1 ? nil : count - 1
  }
}
