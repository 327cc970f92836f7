@testable import PeopleMachine
@testable import Calls
@testable import CallMachine
import Contract
import MediaModel

import CallMessages

/// The devices that must get an event, and those that may.
extension EventInvariants {
  /// `least` were entitled during the whole step, `most` at some time during it.
  private struct Audience {
    var least: Set<Device> = []
    var most: Set<Device> = []
  }

  func checkAudience(_ event: Told, _ step: WorldStep) {
    // `WatcherInvariants` checks presence.
    guard let id = event.message.call else { return }
    let audience = audience(of: event.message, id, event.devices, step)
    let name = event.message.body.name
    for device in event.devices {
      verdict.require(
        .nobodyElse, audience.most.contains(device),
        "\(event.message.body) for \(device.user.text)/\(device.device.text)")
    }
    let missing = audience.least.subtracting(event.devices)
    verdict.require(
      .everyEntitledDevice, missing.isEmpty,
      "\(name) not for \(missing.map { "\($0.user.text)/\($0.device.text)" }.sorted())")
  }

  /// The devices of users who are known throughout.
  private func devices(of users: Set<UserID>, _ step: WorldStep) -> Set<Device> {
    Set(users.flatMap(step.node.people.directory.devices))
  }

  /// - Parameter heard: the devices that got the event.
  private func audience(
    of message: EventMessage, _ id: CallID, _ heard: Set<Device>, _ step: WorldStep
  ) -> Audience {
    let before = step.before[id]
    let after = step.after[id]
    // A call that can ring nobody ends in the step in which it starts.
    if before == nil, after == nil {
      return Audience(most: devices(of: Set([step.asker?.user].compactMap { $0 }), step))
    }
    switch message.body {
    case .member, .members:
      let stable = (before?.listeners ?? []).intersection(after?.listeners ?? [])
      let any = (before?.listeners ?? []).union(after?.listeners ?? [])
      let subjects = Set(message.body.memberChanges.map(\.member.user))
      // Each listener gets its own part of the waiting changes: `WaitingInvariants` checks it.
      let least = step.mayWait(id, crowd: waiting.crowd) ? Set(heard.map(\.user)) : stable.union(subjects)
      return Audience(
        least: after == nil ? [] : devices(of: least, step),
        most: devices(of: any.union(subjects), step).union(goneDevices(step)))
    case .ended:
      let members = devices(of: Set(before.map { Array($0.members.keys) } ?? []), step)
      return Audience(least: members, most: members.union(goneDevices(step)))
    case .ring:
      let ringing = Set((after ?? before)?.rings.map(\.key) ?? []).union(before?.rings.map(\.key) ?? [])
      return Audience(most: devices(of: ringing, step))
    case .answeredElsewhere(let by), .declinedElsewhere(let by):
      return rungDevices(id, of: by.by, but: step.asker, before, step)
    case .cancelled, .missed: return Audience(most: Set(models.filter { $0.value.rung.contains(id) }.map(\.key)))
    case .devicesChanged:
      let stable = (before?.joined ?? []).intersection(after?.joined ?? [])
      let any = (before?.joined ?? []).union(after?.joined ?? [])
      return Audience(least: devices(of: stable, step), most: devices(of: any, step).union(goneDevices(step)))
    case .trackAdded, .trackRemoved, .trackUpdated, .recordingStarted, .recordingConsent, .recordingStopped:
      return participants(before, after)
    case .recordingRuns(let word):
      let recording = step.node.control.calls[id]?.recording
      var audience = participants(before, after)
      audience.least = audience.least.filter { device in
        guard let number = after?.participants[device]?.participant, number != word.participant else { return false }
        return recording?.agreed.contains(number) == true
      }
      return audience
    case .speakers:
      var audience = participants(before, after)
      // They are not kept.
      audience.least = audience.least.filter { step.node.people.directory[$0]?.connection?.events != nil }
      return audience
    case .message(let content):
      var audience = participants(before, after)
      audience.least = audience.least.filter { after?.participants[$0]?.participant != content.from }
      audience.most = audience.most.filter { after?.participants[$0]?.participant != content.from }
      if case .calls(.inCall(_, .message(let body))) = step.request, body.to != nil { audience.least = [] }
      return audience
    case .rotate(let rotate):
      // A device that joins may thereby end the call, since nobody else is there.
      return Audience(
        most: participants(before, after).most.union(entering(step)).filter { device in
          after?.list.contains { $0.address == device } != false || rotate.epoch < after?.newest ?? 0
        })
    case .switchKeys, .keyRequest, .keyWaiting, .confirmed, .slots, .need, .wanted, .state, .quality:
      return Audience(most: participants(before, after).most.union(entering(step)))
    case .envelope(let envelope): return Audience(least: [envelope.to], most: [envelope.to])
    // This world has no guests, no lasting links, and devices record nothing.
    case .presence, .pairing, .recordingShared, .recordingChanged, .recordingSeen, .recordingReached,
      .recordingRemoved, .pushRing, .pushCancel, .pushMessage, .pushAlert, .report, .knock, .knockOver, .linkChanged,
      .linkWaiting:
      return Audience()
    }
  }

  /// The devices that were removed in this step, and were told so.
  private func goneDevices(_ step: WorldStep) -> Set<Device> {
    guard let asker = step.asker, case .people(.removeDevice(let body)) = step.request else {
      return step.isForgetting ? Set(models.keys) : []
    }
    return [Device(user: asker.user, device: body.device)]
  }

  private func entering(_ step: WorldStep) -> Set<Device> {
    step.entry == nil ? [] : Set([step.asker].compactMap { $0 })
  }

  private func participants(_ before: CallView?, _ after: CallView?) -> Audience {
    let old = before?.participants ?? [:]
    let new = after?.participants ?? [:]
    let stable = new.filter { old[$0.key]?.participant == $0.value.participant }
    return Audience(least: Set(stable.keys), most: Set(old.keys).union(new.keys))
  }

  /// The devices of the user that were rung, except the one that acted.
  private func rungDevices(
    _ id: CallID, of user: UserID?, but actor: Device?, _ before: CallView?, _ step: WorldStep
  ) -> Audience {
    let rung = models.filter { $0.key.user == user && $0.value.rung.contains(id) && $0.key != actor }.map(\.key)
    return Audience(least: Set(rung), most: Set(rung))
  }

  // MARK: what has to be told

  /// Each change in a call was told, and to everybody.
  func checkChanges(_ told: [Told], _ step: WorldStep) {
    for id in step.gone {
      let ends = told.filter { $0.message.call == id && $0.message.body.name == .callEnded }
      let members = devices(of: Set(step.before[id].map { Array($0.members.keys) } ?? []), step)
      verdict.require(
        .everyEntitledDevice, ends.count == 1 || members.isEmpty, "the end of a call was told \(ends.count) times")
    }
    if step.isWhole { for id in step.changed + step.gone { checkRings(id, told, step) } }
    for id in step.changed {
      guard let before = step.before[id], let after = step.after[id] else { continue }
      let events = told.filter { $0.message.call == id }
      checkTracks(before, after, events)
      checkEpochs(before, after, events)
      checkRecording(before, after, events)
    }
  }

  private func checkTracks(_ before: CallView, _ after: CallView, _ events: [Told]) {
    let old = tracks(before)
    let new = tracks(after)
    guard old != new else { return }
    let audience = participants(before, after).least
    for id in Set(old.keys).union(new.keys) where old[id] != new[id] {
      let heard = events.filter { event in
        switch event.message.body {
        case .trackAdded(let track): old[id] == nil && track.track == id
        case .trackUpdated(let track): old[id] != nil && new[id] != nil && track.track == id
        case .trackRemoved(let track): new[id] == nil && track.track == id
        default: false
        }
      }.reduce(into: Set<Device>()) { $0.formUnion($1.devices) }
      verdict.require(.everyEntitledDevice, heard.isSuperset(of: audience), "a track's change was not told to all")
    }
  }

  private func checkRecording(_ before: CallView, _ after: CallView, _ events: [Told]) {
    guard before.recording != after.recording else { return }
    let audience = participants(before, after).least
    func heard(_ name: EventName) -> Set<Device> {
      events.filter { $0.message.body.name == name }.reduce(into: Set<Device>()) { $0.formUnion($1.devices) }
    }
    let isTold =
      (before.recording == nil || heard(.recordingStopped).isSuperset(of: audience))
      && (after.recording == nil || heard(.recordingStarted).isSuperset(of: audience))
    verdict.require(.everyEntitledDevice, isTold, "a recording's beginning or end was not told to all")
  }

  private func tracks(_ view: CallView) -> [TrackID: Bool] {
    var tracks: [TrackID: Bool] = [:]
    for participant in view.participants.values {
      for track in participant.tracks { tracks[track.track] = track.muted }
    }
    return tracks
  }

  private func checkEpochs(_ before: CallView, _ after: CallView, _ events: [Told]) {
    let present = after.participants
    /// The devices on the list with their current stay.
    func audience(_ list: [ListEntry]) -> Set<Device> {
      participants(before, after).least.filter { device in
        list.contains { $0.address == device && ($0.joinId == nil || $0.joinId == present[device]?.joinId) }
      }
    }
    func heard(_ matches: (EventBody) -> Bool) -> Set<Device> {
      events.filter { matches($0.message.body) }.reduce(into: Set<Device>()) { $0.formUnion($1.devices) }
    }
    if before.newest != after.newest, after.isAsking || after.isSpreading {
      let told = heard { if case .rotate(let rotate) = $0 { rotate.epoch == after.newest } else { false } }
      verdict.require(
        .everyEntitledDevice, told.isSuperset(of: audience(after.list)), "keys.rotate was not told to all")
    }
    // The next one may have begun with it.
    let list = after.current == after.newest ? after.list : after.current == before.newest ? before.list : []
    if before.current != after.current {
      let told = heard { if case .switchKeys(let keys) = $0 { keys.epoch == after.current } else { false } }
      verdict.require(.everyEntitledDevice, told.isSuperset(of: audience(list)), "keys.switch was not told to all")
    }
  }

  /// A ring begins on every device of the callee. The devices that were rung are told once how it ended, except the one that
  /// acted.
  private func checkRings(_ id: CallID, _ told: [Told], _ step: WorldStep) {
    let before = step.before[id]?.rings ?? [:]
    let after = step.after[id]?.rings ?? [:]
    for user in after.keys where before[user] == nil {
      let rung = told.filter { $0.message.call == id && $0.message.body.isRing }
        .reduce(into: Set<Device>()) { $0.formUnion($1.devices) }
      verdict.require(
        .everyEntitledDevice, rung.isSuperset(of: step.node.people.directory.devices(of: user)),
        "not every device rings")
    }
    for user in before.keys where after[user] == nil {
      let outcomes: Set<EventName> = [.callAnsweredElsewhere, .callDeclinedElsewhere, .callCancelled, .callMissed]
      for (device, model) in models where device.user == user {
        let count = told.count {
          $0.message.call == id && outcomes.contains($0.message.body.name) && $0.devices.contains(device)
        }
        let acted = step.asker == device && [.joined, .declined].contains(step.after[id]?.members[user]?.state)
        let acts = acted || (step.asker == device && step.after[id] == nil)
        guard step.node.people.directory[device] != nil, !step.isForgetting else { continue }
        let expected = model.rung.contains(id) && !acted ? 1 : 0
        verdict.require(
          .ringEndsOnce, count == expected || (acts && count == 0),
          "a device that was \(expected == 1 ? "" : "not ")rung heard \(count) times of the end of its ring")
      }
    }
  }
}
