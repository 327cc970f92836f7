import CallMessages
import Contract
import MediaModel

/// The server's part of the rules of keys (protocol section 5, "Epochs").
struct KeyInvariants {
  private struct EpochView {
    var listHash: Base64Bytes
    var list: [ListEntry]
    /// Devices that were asked to lead, in order.
    var asked: [Device] = []
    /// Devices that must not be asked again while they stay connected.
    var tried: Set<Device> = []
    /// The device that answered first.
    var answeredBy: Device?
    /// The recipients that each device was asked to send a key to.
    var demands: [Device: Set<Device>] = [:]
    /// Envelopes that were handed out, but not yet seen in flight.
    var handedOut: [Device: [Device]] = [:]
    /// The recipients of the envelopes that were handed out.
    var given: Set<Device> = []
  }

  let verdict: Verdict
  private var epochs: [CallID: [UInt32: EpochView]] = [:]
  private var spreadSince: [CallID: (epoch: UInt32, since: Timestamp)] = [:]
  /// Participants whose device had keys when it joined.
  private var withKeys: [CallID: Set<ParticipantNumber>] = [:]

  init(_ verdict: Verdict) { self.verdict = verdict }

  mutating func check(_ step: WorldStep, _ told: [EventInvariants.Told]) {
    for id in step.changed {
      guard let view = step.after[id] else { continue }
      noteKeys(id, view, step)
      checkEpoch(id, view, step, told)
      checkSpread(id, view, step)
    }
    for id in step.gone { spreadSince[id] = nil }
    switch step.command {
    case .disconnect, .connect: if let asker = step.asker { untry(asker, step) }
    default: break
    }
    checkAnswer(step)
    for event in told { checkKeyEvent(event, step) }
  }

  private mutating func untry(_ device: Device, _ step: WorldStep) {
    for id in step.isWhole ? Array(epochs.keys) : step.changed {
      guard let newest = epochs[id]?.keys.max() else { continue }
      epochs[id]?[newest]?.tried.remove(device)
    }
  }

  /// After a restart nobody is asked any longer: the pending epoch is abandoned.
  mutating func restart() { spreadSince = [:] }

  // MARK: epochs

  private mutating func noteKeys(_ id: CallID, _ view: CallView, _ step: WorldStep) {
    guard let asker = step.asker, step.entry != nil, let mine = view.participants[asker],
      step.before[id]?.participants[asker]?.participant != mine.participant,
      step.hasKeys, step.joinKey != nil
    else { return }
    withKeys[id, default: []].insert(mine.participant)
  }

  private mutating func checkEpoch(
    _ id: CallID, _ view: CallView, _ step: WorldStep, _ told: [EventInvariants.Told]
  ) {
    verdict.require(.epochNeverGoesBack, view.current <= view.newest, "an epoch is in use before it was announced")
    if let known = epochs[id]?[view.newest] {
      verdict.require(.oneListANumber, known.listHash == view.listHash, "epoch \(view.newest) has two lists")
    }
    guard let old = step.before[id] else {
      epochs[id, default: [:]][view.newest] = EpochView(listHash: view.listHash, list: view.list)
      epochs[id]?[view.newest]?.answeredBy = view.newest == 1 ? step.asker : nil
      return
    }
    verdict.require(.epochNeverGoesBack, old.newest <= view.newest && old.current <= view.current, "an epoch went back")
    guard old.newest < view.newest else { return }
    verdict.require(.oneEpochWaits, view.newest == old.newest + 1 || step.isTimeout, "an epoch was left out")
    let switched = told.contains {
      if case .switchKeys(let keys) = $0.message.body {
        $0.message.call == id && keys.epoch == old.newest
      } else {
        false
      }
    }
    verdict.require(
      .oneEpochWaits, !old.isSpreading || switched || view.current >= old.newest,
      "an epoch begins while another waits for its switch")
    epochs[id, default: [:]][view.newest] = EpochView(listHash: view.listHash, list: view.list)
    checkList(id, old, view)
  }

  /// The list of every epoch after the first has exactly the joined devices.
  private func checkList(_ id: CallID, _ old: CallView, _ view: CallView) {
    for entry in view.list {
      let isJoined = [old, view].contains { $0.participants[entry.address]?.joinId == entry.joinId }
      verdict.require(.listIsJoined, isJoined, "a list holds a device that has not joined")
    }
    for (device, participant) in view.participants
    where old.participants[device]?.participant == participant.participant
      && withKeys[id]?.contains(participant.participant) == true
    {
      verdict.require(
        .listIsJoined, view.list.contains { $0.address == device }, "a device that has joined is not on the list")
    }
  }

  /// A device that does not acknowledge blocks the others for at most 2 s (Epochs 5).
  private mutating func checkSpread(_ id: CallID, _ view: CallView, _ step: WorldStep) {
    guard view.isSpreading else {
      spreadSince[id] = nil
      return
    }
    if spreadSince[id]?.epoch != view.newest { spreadSince[id] = (view.newest, step.now) }
    guard let since = spreadSince[id]?.since else { return }
    verdict.require(.nobodyBlocks, step.now - since <= .seconds(2), "a switch waits for more than 2 s")
  }

  // MARK: who hands out

  /// `/keys`: the first answer of a device that was asked counts; a later one only for recipients of a key request.
  private mutating func checkAnswer(_ step: WorldStep) {
    guard case .calls(.inCall(let id, .keys(let keys))) = step.request, step.isOK, let asker = step.asker,
      let known = epochs[id]?[keys.epoch]
    else { return }
    verdict.require(
      .firstAnswerWins, keys.epoch >= step.before[id]?.newest ?? 0, "keys of an epoch that is over were taken")
    if known.answeredBy == nil, known.asked.contains(asker) {
      epochs[id]?[keys.epoch]?.answeredBy = asker
    } else {
      let wanted = known.demands[asker] ?? []
      verdict.require(
        .firstAnswerWins,
        keys.envelopes.allSatisfy {
          // The leader may later give the key to a device that it skipped.
          wanted.contains($0.to) || (known.answeredBy == asker && !known.given.contains($0.to))
        }, "a second answer for an epoch was taken")
    }
    for envelope in keys.envelopes {
      epochs[id]?[keys.epoch]?.handedOut[envelope.to, default: []].append(asker)
      epochs[id]?[keys.epoch]?.given.insert(envelope.to)
    }
  }

  private mutating func checkKeyEvent(_ event: EventInvariants.Told, _ step: WorldStep) {
    guard let id = event.message.call else { return }
    switch event.message.body {
    case .rotate(let rotate): if rotate.deliver != nil { checkLeader(rotate, id, event, step) }
    case .keyRequest(let request):
      for device in event.devices {
        epochs[id]?[request.epoch]?.demands[device, default: []].insert(request.to.address)
      }
    case .envelope(let envelope): checkEnvelope(envelope, id, step)
    default: break
    }
  }

  private mutating func checkEnvelope(_ envelope: Envelope, _ id: CallID, _ step: WorldStep) {
    let newest = step.after[id]?.newest ?? step.before[id]?.newest
    verdict.require(
      .supersededIsOver, envelope.epoch == newest || envelope.epoch == step.before[id]?.newest,
      "an envelope of an old epoch")
    let view = epochs[id]?[envelope.epoch]
    verdict.require(
      .envelopeIsForListed, view?.list.contains { $0.address == envelope.to } == true,
      "an envelope for a device that is not on its epoch's list")
    guard let givers = view?.handedOut[envelope.to], !givers.isEmpty else {
      return verdict.require(.acknowledgedIsOver, false, "an envelope that nobody handed out")
    }
    verdict.require(.fromIsServers, envelope.from == givers[0], "an envelope's sender is another")
    epochs[id]?[envelope.epoch]?.handedOut[envelope.to]?.removeFirst()
  }

  /// The lowest connected number with the same joinId on the previous list, or else the lowest connected one (Epochs
  /// 4).
  private mutating func checkLeader(
    _ rotate: Rotate, _ id: CallID, _ event: EventInvariants.Told, _ step: WorldStep
  ) {
    guard let view = step.after[id], view.newest == rotate.epoch, let known = epochs[id]?[rotate.epoch],
      let device = event.devices.first
    else { return }
    verdict.require(.leaderIsLowest, event.devices.count == 1, "two devices are told to lead at once")
    // It may have left by the end of the step in which it was asked.
    let numbers = [view, step.before[id]].compactMap { $0?.participants[device]?.participant }
    verdict.require(.leaderIsLowest, numbers.contains(rotate.leader), "the leader is told that another leads")
    let before = epochs[id]?[rotate.epoch - 1]?.list ?? []
    // In one step several may have been asked, or have left.
    let stayed = step.before[id]?.participants.mapValues(\.participant) == view.participants.mapValues(\.participant)
    let isQuiet = !step.isTimeout || (step.before[id]?.newest == rotate.epoch && stayed)
    let candidates = view.list.filter {
      step.isConnected($0.address, in: id) && !known.tried.contains($0.address)
        && view.participants[$0.address]?.joinId == $0.joinId
    }
    let old = candidates.filter { entry in
      before.contains { $0.address == entry.address && $0.joinId == entry.joinId }
    }
    let best = old.isEmpty ? candidates : old
    let lowest = best.map(\.participant).min()
    // A connection that is being replaced is gone for a moment.
    var others = candidates
    if case .connect = step.command { others.removeAll { $0.address == step.asker } }
    let oldOthers = others.filter { old.contains($0) }
    let lowestOther = (oldOthers.isEmpty ? others : oldOthers).map(\.participant).min()
    // A transfer may replace the device that was asked in the same step: it was the lowest until then.
    let isThere = view.participants[device]?.participant == rotate.leader
    if isQuiet, isThere {
      verdict.require(
        .leaderIsLowest, rotate.leader == lowest || rotate.leader == lowestOther,
        "participant \(rotate.leader) leads, not \(lowest ?? 0)")
    }
    epochs[id]?[rotate.epoch]?.asked.append(device)
    epochs[id]?[rotate.epoch]?.tried.insert(device)
  }
}
