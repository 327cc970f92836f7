@testable import PeopleMachine
@testable import CallMachine
import Contract
import MediaModel

import CallMessages
@testable import Calls

/// Lists form one chain without gaps and are stored before they are announced, also across restarts. Confirmations and
/// refreshed join keys are forwarded unchanged (protocol section 5).
struct ChainInvariants {
  let verdict: Verdict
  /// The `listHash` of each epoch announced so far.
  private var hashes: [CallID: [UInt32: Base64Bytes]] = [:]
  private var lists: [CallID: [UInt32: [ListEntry]]] = [:]
  /// The first tag of each participant, by epoch.
  private var tags: [CallID: [UInt32: [ParticipantNumber: [UInt8]]]] = [:]
  /// The confirmations shown by buckets, by epoch.
  private var shown: [CallID: [UInt32: [Int: UInt64]]] = [:]
  /// The newest join key of each stay that was refreshed.
  private var refreshed: [CallID: [Base64Bytes: JoinKey]] = [:]
  /// Calls whose confirmations were being gathered after the last step.
  private var gathering: Set<CallID> = []

  init(_ verdict: Verdict) { self.verdict = verdict }

  mutating func check(_ step: WorldStep, _ told: [EventInvariants.Told], _ stored: (CallID) -> Stored.CallRecord?) {
    checkOrder(step.effects)
    for id in step.changed {
      if let epochs = step.node.control.calls[id]?.epochs { checkChain(id, epochs) }
    }
    noteConfirmation(step)
    for event in told {
      guard let id = event.message.call else { continue }
      switch event.message.body {
      case .rotate(let rotate):
        checkRotation(rotate, id, stored(id), step)
        for entry in rotate.deliver ?? [] { checkRefresh(entry, id) }
      case .keyRequest(let request): checkRefresh(request.to, id)
      case .confirmed(let confirmed): checkConfirmed(confirmed, id)
      default: break
      }
    }
    noteUnheard(step)
  }

  // MARK: the chain

  private mutating func checkChain(_ id: CallID, _ epochs: Epochs) {
    guard epochs.newest.number > 0 else { return }
    let numbers = epochs.links.map(\.epoch)
    verdict.require(
      .listsAreChained, numbers == Array((numbers.first ?? 1)...max(numbers.first ?? 1, epochs.newest.number)),
      "the links have a gap")
    for link in epochs.links where hashes[id]?[link.epoch] == nil {
      let previous = link.epoch == 1 ? Base64Bytes([UInt8](repeating: 0, count: 32)) : hashes[id]?[link.epoch - 1]
      guard let previous else {
        return verdict.require(.listsAreChained, false, "epoch \(link.epoch) has no predecessor")
      }
      hashes[id, default: [:]][link.epoch] = Self.hash(id, link.epoch, previous, link.roster)
    }
    verdict.require(
      .oneListANumber, hashes[id]?[epochs.newest.number] == epochs.newest.listHash,
      "epoch \(epochs.newest.number) is not what it was announced as")
    verdict.require(
      .listsAreChained, Self.roster(epochs.newest.list) == epochs.links.last?.roster.bytes, "a link is of another list")
    lists[id, default: [:]][epochs.newest.number] = epochs.newest.list
  }

  private func checkRotation(_ rotate: Rotate, _ id: CallID, _ stored: Stored.CallRecord?, _ step: WorldStep) {
    guard let known = hashes[id]?[rotate.epoch] else { return }
    let before = rotate.epoch == 1 ? Base64Bytes([UInt8](repeating: 0, count: 32)) : hashes[id]?[rotate.epoch - 1]
    verdict.require(
      .listsAreChained, rotate.listHash == known && rotate.previous == before, "epoch \(rotate.epoch) is unchained")
    if step.after[id] != nil {
      verdict.require(
        .storedBeforeAnnounced,
        stored?.epoch.number ?? 0 >= rotate.epoch && stored?.epochLinks.last?.epoch == stored?.epoch.number,
        "epoch \(rotate.epoch) is announced and not stored")
    }
    guard let list = lists[id]?[rotate.epoch] else { return }
    if let whole = rotate.list { verdict.require(.listsAreChained, whole == list, "a list differs") }
    guard let added = rotate.added, let removed = rotate.removed, let old = lists[id]?[rotate.epoch - 1] else { return }
    let kept = old.filter { $0.participant > 0 && !removed.contains($0.participant) }
    let changed = (kept + added).sorted { $0.address < $1.address }
    verdict.require(.listsAreChained, changed == list, "what was added and removed makes another list")
  }

  /// Changes are stored before anybody is told about them.
  private func checkOrder(_ effects: [CallMessages.Effect]) {
    let isStore = effects.map { if case .store = $0 { true } else { false } }
    guard let last = isStore.lastIndex(of: true) else { return }
    verdict.require(
      .storedBeforeAnnounced, isStore.prefix(last).allSatisfy { $0 }, "something is told before it is stored")
  }

  // MARK: confirmations

  private mutating func noteConfirmation(_ step: WorldStep) {
    guard case .calls(.inCall(let id, .confirmKey(let body))) = step.request, step.isOK, let asker = step.asker,
      let participant = step.before[id]?.participants[asker]
    else { return }
    if tags[id]?[body.epoch]?[participant.participant] == nil {
      tags[id, default: [:]][body.epoch, default: [:]][participant.participant] = body.tag.bytes
    }
    if let joinKey = body.joinKey { refreshed[id, default: [:]][participant.joinId] = joinKey }
  }

  /// `keys.confirmed` is not kept: if no listed device reads its events, as after a restart, `keys/list` has the
  /// confirmations.
  private mutating func noteUnheard(_ step: WorldStep) {
    for id in step.changed {
      guard let epochs = step.node.control.calls[id]?.epochs else { continue }
      let wasGathering = gathering.remove(id) != nil
      if epochs.isTelling { gathering.insert(id) }
      let isConfirmed = if case .calls(.inCall(id, .confirmKey)) = step.request { true } else { false }
      guard step.isWhole, !epochs.isTelling, wasGathering || isConfirmed else { continue }
      let isHeard = epochs.newest.list.contains { entry in
        epochs.isJoined(entry.address, on: epochs.newest)
          && step.node.people.directory[entry.address]?.connection?.events != nil
      }
      if !isHeard { noteShown(epochs, id) }
    }
  }

  private mutating func noteShown(_ epochs: Epochs, _ id: CallID) {
    for bucket in epochs.confirmations.buckets {
      shown[id, default: [:]][epochs.newest.number, default: [:]][bucket.index] = Self.who(bucket)
    }
  }

  private static func who(_ bucket: ConfirmationBucket) -> UInt64 {
    bucket.who.bytes.reduce(0) { $0 << 8 | UInt64($1) }
  }

  private mutating func checkConfirmed(_ event: KeysConfirmed, _ id: CallID) {
    guard let list = lists[id]?[event.epoch] else { return }
    for bucket in event.buckets {
      var who: UInt64 = 0
      var sum = [UInt8](repeating: 0, count: 16)
      for (place, entry) in list.dropFirst(64 * bucket.index).prefix(64).enumerated() {
        guard let tag = tags[id]?[event.epoch]?[entry.participant] else { continue }
        who |= 1 << UInt64(63 - place)
        for byte in sum.indices { sum[byte] ^= tag[byte] }
      }
      let bytes = (0..<8).map { UInt8(truncatingIfNeeded: who >> UInt64(56 - 8 * $0)) }
      verdict.require(
        .confirmationsAdd, bucket.who.bytes == bytes && bucket.tag.bytes == sum, "a bucket differs from its tags")
      let former = shown[id]?[event.epoch]?[bucket.index] ?? 0
      verdict.require(.confirmationsAdd, who & former == former, "a bucket lost a bit")
      shown[id, default: [:]][event.epoch, default: [:]][bucket.index] = who
    }
  }

  /// When nothing is pending any longer, all confirmations have been announced.
  func checkTold(_ node: Node) {
    for (id, call) in node.control.calls {
      let epoch = call.epochs.newest.number
      for bucket in call.epochs.confirmations.buckets {
        verdict.require(
          .confirmationsAdd, shown[id]?[epoch]?[bucket.index] == Self.who(bucket), "a confirmation was not told")
      }
    }
  }

  private func checkRefresh(_ entry: ListEntry, _ id: CallID) {
    guard let joinId = entry.joinId else { return }
    verdict.require(.joinKeysAreNewest, entry.refresh == refreshed[id]?[joinId], "a leader gets an old join key")
  }

  // MARK: the document's words, once more

  private static func roster(_ list: [ListEntry]) -> [UInt8] {
    var bytes = Array("conclave-roster-v2".utf8) + number(UInt32(list.count))
    for entry in list {
      bytes += prefixed(entry.user.text) + prefixed(entry.device.text) + number(entry.participant)
      bytes += entry.fingerprint.bytes + (entry.joinId?.bytes ?? [UInt8](repeating: 0, count: 16))
      bytes += entry.joinKey.map { Stage.digest($0.publicKey.bytes) } ?? [UInt8](repeating: 0, count: 32)
    }
    return Stage.digest(bytes)
  }

  private static func hash(_ id: CallID, _ epoch: UInt32, _ previous: Base64Bytes, _ roster: Base64Bytes) -> Base64Bytes
  {
    Base64Bytes(
      Stage.digest(
        Array("conclave-list-v2".utf8) + prefixed(id.text) + number(epoch) + previous.bytes + roster.bytes))
  }

  private static func number(_ value: UInt32) -> [UInt8] {
    [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: value >> UInt32($0)) }
  }

  private static func prefixed(_ text: String) -> [UInt8] {
    [UInt8(text.utf8.count >> 8), UInt8(text.utf8.count & 255)] + Array(text.utf8)
  }
}
