@testable import PeopleMachine
@testable import CallMachine
import Contract
import MediaModel
import Simulation

import CallMessages
@testable import Calls

/// Invariants of the state after the end of calls, on the disk, across a restart, and when all is quiet.
struct RestInvariants {
  let verdict: Verdict

  /// The disk has everything that survives a restart, and nothing else (rule 11).
  func checkDisk(_ contents: Set<StoreChange>, _ node: Node) {
    let storable = node.storable
    verdict.require(
      .confirmedIsStored, contents == storable,
      "the disk lacks \(names(storable.subtracting(contents))), has \(names(contents.subtracting(storable)))")
  }

  private func names(_ changes: Set<StoreChange>) -> String {
    changes.map { String(describing: Mirror(reflecting: $0).children.first?.label ?? "?") }.sorted().joined(
      separator: ",")
  }

  /// No envelope remains that is acknowledged, superseded, or from a call that has ended.
  func checkQueues(_ node: Node, _ disk: Disk) {
    for device in node.people.directory.devices {
      for event in node.people.directory[device]?.mailbox.kept ?? [] {
        guard let id = event.call else { continue }
        let call = node.control.calls[id]
        if case .envelope(let envelope) = event.body {
          let isNewest = envelope.epoch == call?.epochs.newest.number
          verdict.require(.queueEmpties, isNewest, "an envelope is kept after its end")
        } else if event.body.isForParticipants {
          verdict.require(.queueEmpties, (try? call?.participant(of: device)) != nil, "\(event.body.name) is kept")
        } else if event.body.isRing {
          verdict.require(.queueEmpties, call?.member(device.user)?.isRinging == true, "a ring is kept after its end")
        }
      }
    }
    for (device, mailbox) in disk.stored.mailboxes {
      for held in mailbox.envelopes {
        let isNewest = node.control.calls[held.call]?.epochs.newest.number == held.envelope.epoch
        verdict.require(.queueEmpties, isNewest, "an envelope is on disk after its end")
      }
      for id in mailbox.rung {
        let isRinging = node.control.calls[id]?.member(device.user)?.isRinging == true
        verdict.require(.queueEmpties, isRinging, "a ring is on disk after its end")
      }
    }
    for call in node.control.calls.values {
      for device in call.epochs.ringEnvelopes.keys {
        let isRinging = call.member(device.user)?.isRinging == true && call.epochs.newest.number == 1
        verdict.require(.queueEmpties, isRinging, "a ring's envelope is kept after its end")
      }
    }
  }

  // MARK: restarts

  /// After a restart the state is the same, but nobody is connected.
  func checkRestored(_ node: Node, from old: Node) {
    verdict.require(
      .restartTells, Set(node.control.calls.keys) == Set(old.control.calls.keys), "a call is lost, or came back")
    for (id, call) in old.control.calls {
      guard let again = node.control.calls[id] else { continue }
      var before = CallView(call)
      // If the clock went back, a ring's time restarts now.
      for user in before.rings.keys { before.rings[user]?.bound(by: node.control.now + call.rules.ringTime) }
      let after = CallView(again)
      let cutOff = before.members.mapValues { member in
        var member = member
        for place in member.participants.indices { member.participants[place].connected = false }
        return member
      }
      verdict.require(.restartTells, after.members == cutOff, "a member is another after a restart")
      verdict.require(
        .restartTells,
        after.newest == before.newest && after.current == before.current
          && after.listHash == before.listHash && after.rings == before.rings, "an epoch is another after a restart")
    }
    let none = StoredMailbox(envelopes: [], rung: [])
    for device in old.people.directory.devices {
      let envelopes = old.people.directory[device]?.mailbox.stored ?? none
      let restored = node.people.directory[device]?.mailbox.stored ?? none
      verdict.require(.unacknowledgedComesAgain, restored == envelopes, "a mailbox is another after a restart")
    }
  }

  /// All numbers of a run are above those of earlier runs, so that a device sees the jump.
  func checkNumbers(_ effects: [CallMessages.Effect], boots: UInt32) {
    for case .client(.event(_, let delivery)) in effects where !delivery.redelivered {
      verdict.require(.restartTells, delivery.seq > UInt64(boots) << 32, "seq does not tell of the restart")
    }
  }

  // MARK: quiet

  /// All is quiet: each call is in its newest epoch, and its list has exactly the present devices.
  func checkSettled(_ node: Node) {
    for call in node.control.calls.values {
      verdict.require(.settles, call.epochs.pending == nil, "an epoch is still called for")
      verdict.require(.settles, call.epochs.current == call.epochs.newest.number, "the newest epoch is not in use")
      let keyedDevices = call.epochs.keyedDevices.keys.sorted()
      if call.epochs.newest.number > 1 {
        verdict.require(
          .listIsJoined, call.epochs.newest.list.map(\.address) == keyedDevices, "the list is not the joined devices")
      }
      verdict.require(.queueEmpties, call.epochs.unopened.isEmpty, "an envelope was not opened")
      verdict.require(.settles, call.members.allSatisfy { $0.arriving == nil }, "a transfer never ends")
    }
  }

  func checkEmpty(_ node: Node) {
    verdict.require(.settles, node.control.calls.isEmpty, "a call is left")
    verdict.require(.noTimerIsLeft, node.control.timers.count == 0 && node.nextDeadline == nil, "a timer is left")
    verdict.require(
      .nothingIsLeft, node.control.peers.isEmpty && node.control.starts.isEmpty && node.people.memberships.isEmpty,
      "a call's traces are left")
  }

  /// A device that reads and acknowledges has seen everything that it was owed.
  func checkSeen(_ models: [Device: DeviceModel], _ devices: [SimulatedWorld.SimulatedDevice]) {
    for device in devices where device.mode != .auto && device.session != nil {
      guard let model = models[device.device] else { continue }
      let left = model.owed.filter { !$0.mayBeGone }.map(\.message.body.name)
      verdict.require(.unacknowledgedComesAgain, left.isEmpty, "a device never acknowledged \(left)")
    }
  }
}
