import ConclaveClient
import LinuxIO
import MediaModel
import Synchronization

/// The events of calls during a test.
extension CallRun {
  // MARK: - Churn

  /// Participants of the last half leave and join again, one after the other, until `end`; returns when the last one is back.
  func churn(perSecond rate: Double, until end: Instant) async {
    let pace = JoinPace(perSecond: rate)
    let candidates = participants.filter { plan.churns($0.index) }
    await withTaskGroup(of: Void.self) { group in
      var turn = 0
      while MonotonicClock.now() < end, !Interrupt.hasCome {
        await pace.wait()
        guard MonotonicClock.now() < end else { break }
        // A participant that is still rejoining is skipped.
        for _ in candidates {
          turn += 1
          let participant = candidates[turn % candidates.count]
          guard participant.beginChange() else { continue }
          group.addTask { await replace(participant) }
          break
        }
      }
    }
  }

  private func replace(_ participant: SimulatedParticipant) async {
    defer { participant.endChange() }
    guard let call = calls.call(participant.call) else { return }
    await attempt(participant) { try await $0.leaveAndJoin(call.id, on: $1, certificate: certificate) }
    let staying = members(of: participant.call).filter { !plan.churns($0.index) }
    let tracks = staying.reduce(into: Set<TrackKey>()) { $0.formUnion($1.tracks) }
    await wait {
      participant.failure != nil
        || (participant.joinTime != nil && tracks.isSubset(of: participant.progress.state.heard))
    }
    guard participant.failure == nil, !Interrupt.hasCome else { return }
    guard tracks.isSubset(of: participant.progress.state.heard) else {
      return participant.fail("did not hear the others again within \(plan.joinTimeout) of leaving")
    }
    participant.progress.arrived(at: MonotonicClock.now())
  }

  // MARK: - Storm

  /// All lose their connections at the same time; returns when all are back.
  func storm() async {
    monitor.enter("rejoin storm")
    let returns = Task { await watchReturns() }
    await Interrupt.orEnd {
      await withTaskGroup(of: Void.self) { group in
        for participant in participants where participant.joinTime != nil {
          guard let call = calls.call(participant.call) else { continue }
          group.addTask {
            do {
              try await participant.loseAndRejoin(call.id, on: loop(of: participant), certificate: certificate)
            } catch {
              participant.fail("could not rejoin: \(error)")
            }
          }
        }
      }
    }
    await wait { participants.allSatisfy { $0.failure != nil || $0.moments.withLock { $0.absences.isBack } } }
    returns.cancel()
  }

  /// Records which participants hear all others of their call, until it is cancelled.
  func watchReturns() async {
    while !Task.isCancelled {
      for number in 0..<plan.calls {
        let members = members(of: number)
        guard !members.contains(where: { $0.isAway && $0.failure == nil }) else { continue }
        let tracks = members.reduce(into: Set<TrackKey>()) { $0.formUnion($1.tracks) }
        for member in members { member.noteReturn(hearing: tracks) }
      }
      try? await Task.sleep(for: pollInterval)
    }
  }

  // MARK: - Ramp

  /// Adds participants step by step, and measures each step, until a condition holds or all are in.
  func ramp(step: Int, until conditions: [Condition], _ outcome: inout CallOutcome, _ server: inout ServerUsage) async {
    var present = min(max(2, step), plan.participants)
    var before = 0
    await start(with: present)
    while true {
      await settle()
      guard !Interrupt.hasCome else { return }
      // Earlier frames belong to epochs that the newcomers may not know.
      let now = MonotonicClock.now()
      for newcomer in members(of: 0).prefix(present).dropFirst(before) { newcomer.progress.arrived(at: now) }
      before = present
      monitor.enter("step of \(present)")
      let measured = await measurement(&server)
      // An interrupted step proves nothing.
      guard !Interrupt.hasCome else { return }
      let joined = members(of: 0).prefix(present).count { $0.joinTime != nil && $0.failure == nil }
      let result = RampStep(present, joined: joined, measured, until: conditions)
      outcome.steps.append(result)
      guard result.limit == nil, present < plan.participants else { return }
      let next = min(present + step, plan.participants)
      monitor.enter("joining")
      await joinMore(present..<next)
      present = next
    }
  }
}
