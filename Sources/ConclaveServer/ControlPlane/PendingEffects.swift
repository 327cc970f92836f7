import CallMessages
import Contract
import NIOCore

/// The effects of commands in the commands' order, until everything that they may reveal is on the disk.
///
/// ## Overview
/// A command's effects wait for its own changes and for those of all commands before it, because a reply may reveal what another command changed. They
/// go out in the order of the commands: replies, events, media commands and webhooks alike.
///
/// Reports of the media plane (speakers, slots) are not stored and must not wait for a disk: `releasable` lets them pass, except to a session for which
/// something already waits. So each session sees one order.
struct PendingEffects {
  private struct Entry {
    var effects: [CallMessages.Effect]
    /// The number of the last command whose changes must be on the disk first.
    var behind: UInt64
    /// Approximate memory.
    var bytes: Int
  }

  /// The most effects that may wait. Effects that are replies with the state of a large call are few but large, and one event for many devices is many
  /// effects in little memory, so both count and memory are bounded. One command may exceed the bound.
  static let maximumCount = 100_000
  static let maximumBytes = 64 << 20

  private var entries = CircularBuffer<Entry>()
  /// How many effects wait for each session; media commands, webhooks and questions belong to none.
  private var sessions: [SessionID: Int] = [:]
  /// Effects that wait.
  private(set) var count = 0
  /// Their approximate memory.
  private(set) var bytes = 0

  /// The bound is reached: clients' commands have to wait, too.
  var isFull: Bool { count >= Self.maximumCount || bytes >= Self.maximumBytes }

  var isEmpty: Bool { entries.isEmpty }

  /// Appends effects after all others.
  /// - Parameter number: all changes up to this one must be on the disk before they go out; never less than in the previous call.
  mutating func append(_ effects: [CallMessages.Effect], behind number: UInt64) {
    guard !effects.isEmpty else { return }
    for effect in effects { if let session = effect.session { sessions[session, default: 0] += 1 } }
    let entry = Entry(effects: effects, behind: number, bytes: Self.bytes(of: effects))
    count += effects.count
    bytes += entry.bytes
    entries.append(entry)
  }

  /// The effects of something that is stored nowhere: returns those that overtake nothing, and appends the others after all that
  /// wait.
  mutating func releasable(_ effects: [CallMessages.Effect], behind number: UInt64) -> [CallMessages.Effect] {
    guard !entries.isEmpty else { return effects }
    var passing: [CallMessages.Effect] = []
    var waiting: [CallMessages.Effect] = []
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
  ///   - number: all changes up to this one are on the disk, or are no longer awaited.
  ///   - limit: ends with the command that reaches this many effects.
  mutating func release(through number: UInt64, limit: Int) -> [CallMessages.Effect] {
    var released: [CallMessages.Effect] = []
    while released.count < limit, let entry = entries.first, entry.behind <= number {
      entries.removeFirst()
      count -= entry.effects.count
      bytes -= entry.bytes
      for effect in entry.effects { if let session = effect.session { forget(session) } }
      if released.isEmpty { released = entry.effects } else { released += entry.effects }
    }
    return released
  }

  /// Deliveries of one message share its body, and are adjacent.
  private static func bytes(of effects: [CallMessages.Effect]) -> Int {
    var bytes = effects.count * MemoryLayout<CallMessages.Effect>.stride
    var last: UInt64 = 0
    for effect in effects {
      switch effect {
      case .client(.event(_, let event)):
        if event.messageID == 0 || event.messageID != last { bytes += event.message.body.cost }
        last = event.messageID
      case .client(.publish(_, _, let messageID, let message)):
        if messageID == 0 || messageID != last { bytes += message.body.cost }
        last = messageID
      case .webhook(_, let message): bytes += message.body.cost
      case .client(.reply(_, _, .ok(let reply))): bytes += reply.bytes
      case .negotiate: bytes += 4_096
      case .push(_, let subscription, _, _): bytes += 512 + subscription.endpoint.utf8.count
      case .read(_, _, _, let request): bytes += request.sdp.utf8.count
      case .client(.reply), .client(.close), .client(.admission), .media, .ask, .history, .recordings, .store,
        .measured, .keyless, .recorded:
        break
      }
    }
    return bytes
  }

  private mutating func forget(_ session: SessionID) {
    guard let count = sessions[session] else { return }
    sessions[session] = count == 1 ? nil : count - 1
  }
}

extension CallMessages.Effect {
  /// The session whose client gets the effect; nil for effects that are not for a client, or are not sent immediately.
  fileprivate var session: SessionID? { if case .client(let delivery) = self { delivery.session } else { nil } }
}

extension ReplyBody {
  /// Its approximate memory. Some replies grow with a call or with the request.
  fileprivate var bytes: Int {
    switch self {
    case .joined(let joined): 512 + joined.call.bytes
    case .started(let started): 512 + started.call.bytes
    case .state(let state): state.bytes
    case .calls(let list): list.calls.reduce(512) { $0 + $1.bytes }
    case .devices(let list): list.devices.reduce(512 + 512 * list.revokes.count) { $0 + 1_024 + 512 * $1.vouches.count }
    case .keyList(let list): 512 + 1_024 * list.list.count + 64 * list.links.count + 128 * list.confirmed.count
    case .lastingLinks(let list): 256 + 384 * list.links.count
    case .rejoined, .results, .registered, .link, .media, .keys, .confirmations, .presence, .history, .totals,
      .knocking, .lastingLink, .openedLink, .startedRecording, .recordings, .recording, .consented, .nothing:
      256
    }
  }
}

extension CallState {
  fileprivate var bytes: Int {
    512 + 512 * members.count + (metadata?.bytes.count ?? 0)
      + (recording.map { 2_048 + 64 * ($0.statement.readers.count + $0.consents.count) } ?? 0)
  }
}
