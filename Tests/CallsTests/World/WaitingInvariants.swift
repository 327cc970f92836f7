@testable import PeopleMachine
@testable import Calls
import Contract
import MediaModel

import CallMessages

/// Every listener is told each change of a member once and in order: at once, or in a large call within its time limit
/// and before any event that depends on it (protocol section 3).
struct WaitingInvariants {
  let verdict: Verdict
  /// The number of participants from which on changes may wait.
  let crowd: Int
  private var queues: [CallID: [UserID: ChangeQueue]] = [:]
  private var number = 0

  init(_ verdict: Verdict, crowd: Int) {
    self.verdict = verdict
    self.crowd = crowd
  }

  /// Each device gets a state that includes all waiting changes.
  mutating func restart() { queues = [:] }

  /// Whether the user will still be told of changes of the call's members.
  func isWaiting(_ user: UserID, _ id: CallID) -> Bool { queues[id]?[user]?.isOwed == true }

  /// - Parameter told: what each device was told in this step, in order.
  mutating func check(_ step: WorldStep, _ told: [Device: [EventMessage]]) {
    number += 1
    let heard = heard(told)
    for id in Set(step.changed).union(step.gone).union(heard.keys) { check(id, heard[id] ?? [:], step) }
    for (id, users) in queues {
      for (user, queue) in users {
        verdict.require(
          .waitingIsTold, !queue.isLate(now: step.now), "a change waits too long for \(user.text) in \(id.text)")
      }
    }
  }

  private mutating func check(_ id: CallID, _ heard: [UserID: [EventBody]], _ step: WorldStep) {
    let before = step.before[id]?.listeners ?? []
    let after = step.after[id]?.listeners ?? []
    var queues = queues.removeValue(forKey: id) ?? [:]
    for entry in step.memberChanges(of: id) {
      // A new listener may have the change in the state that it got.
      let isNew = step.before[id] == nil
      for user in isNew ? after : after.intersection(before).union([entry.user]) {
        queues[user, default: ChangeQueue()].add([entry], step: number, at: step.now)
      }
      guard !isNew else { continue }
      let passing = ChangeQueue.Entry(user: entry.user, state: nil)
      for user in after.symmetricDifference(before) where user != entry.user {
        queues[user, default: ChangeQueue()].add([passing], step: number, at: step.now)
      }
    }
    for (user, bodies) in heard { hear(bodies, user, &queues[user, default: ChangeQueue()], step.after[id] == nil) }
    // The changes that end a call are part of its end.
    guard step.after[id] != nil else { return checkEnd(queues, step) }
    for (user, queue) in queues {
      guard !step.node.people.directory.devices(of: user).isEmpty, after.contains(user) else {
        if !step.isForgetting { checkLeft(user, queue, step) }
        queues[user] = nil
        continue
      }
      if !step.mayWait(id, crowd: crowd) {
        verdict.require(.everyEntitledDevice, !queue.isOwed, "a change was not told to all: \(user.text) lacks it")
      }
      if step.seenCall == id, step.asker?.user == user {
        verdict.require(.waitingIsTold, !queue.isOwed(before: number), "a state overtakes a change")
      }
    }
    self.queues[id] = queues
  }

  private func hear(_ bodies: [EventBody], _ user: UserID, _ queue: inout ChangeQueue, _ isEnd: Bool) {
    for body in bodies {
      for change in body.memberChanges {
        verdict.require(
          .inOrder, queue.hear(change.member) || isEnd,
          "\(user.text) is told of \(change.member.user.text) \(change.cause) in the wrong place, or again")
      }
      if case .members(let changes) = body {
        verdict.require(.inOrder, (2...64).contains(changes.members.count), "\(changes.members.count) changes in one")
      }
      guard body.followsChanges else { continue }
      verdict.require(.waitingIsTold, !queue.isOwed(before: number), "\(body.name) overtakes a change for \(user.text)")
    }
  }

  /// A user whose own change ends its listening is told that change, and the changes that waited before it.
  private func checkLeft(_ user: UserID, _ queue: ChangeQueue, _ step: WorldStep) {
    guard !step.node.people.directory.devices(of: user).isEmpty else { return }
    verdict.require(.waitingIsTold, !queue.isOwed, "\(user.text) has not heard all when it goes")
  }

  private func checkEnd(_ queues: [UserID: ChangeQueue], _ step: WorldStep) {
    for (user, queue) in queues where !step.node.people.directory.devices(of: user).isEmpty {
      verdict.require(.waitingIsTold, !queue.isOwed(before: number), "\(user.text) has not heard all at the end")
    }
  }

  /// Everything that the devices of a user were told about each call, in the order of the device that was told the
  /// most.
  private func heard(_ told: [Device: [EventMessage]]) -> [CallID: [UserID: [EventBody]]] {
    var heard: [CallID: [UserID: [EventMessage]]] = [:]
    for (device, messages) in told.sorted(by: { ($1.value.count, $0.key) < ($0.value.count, $1.key) }) {
      for (id, messages) in Dictionary(grouping: messages.filter { $0.call != nil }, by: { $0.call! }) {
        let known = heard[id]?[device.user] ?? []
        heard[id, default: [:]][device.user, default: []] +=
          known.isEmpty ? messages : messages.filter { !known.contains($0) }
      }
    }
    return heard.mapValues { $0.mapValues { $0.map(\.body) } }
  }
}
