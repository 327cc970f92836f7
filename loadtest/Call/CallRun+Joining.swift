import ConclaveClient
import LinuxIO
import MediaModel

/// Joining the calls.
extension CallRun {
  /// Callees that ring at a time; the server rings at most 100 per call.
  private static let ringLimit = 80
  /// Participants that join by the link at a time.
  private static let joinWindow = 64

  /// Lets all participants join, and waits until everybody hears everybody.
  func joinAll() async {
    await start(with: plan.participants)
    await settle()
  }

  /// Starts all calls at once. The first participant of each rings as many as may ring at a time; they accept at once,
  /// and the others join by a link. With a join rate all but the first join by a link, one after the other.
  /// - Parameter count: the number of participants of each call that join now.
  func start(with count: Int) async {
    guard !Interrupt.hasCome else { return }
    monitor.enter("joining")
    let pace = plan.joinRate.map { JoinPace(perSecond: $0) }
    await Interrupt.orEnd {
      await withTaskGroup(of: Void.self) { group in
        for number in 0..<plan.calls { group.addTask { await start(number, with: count, pace) } }
      }
    }
    let coming = (0..<plan.calls).flatMap { members(of: $0).prefix(count) }
    await wait { coming.allSatisfy { $0.joinTime != nil || $0.failure != nil } }
  }

  private func start(_ number: Int, with count: Int, _ pace: JoinPace?) async {
    let members = members(of: number).prefix(count)
    if let rooms = calls.rooms { return await rooms.join(Array(members), on: loops, pace) }
    guard let first = members.first else { return }
    let others = members.dropFirst()
    let rung = pace == nil ? others.prefix(max(0, Self.ringLimit - plan.guests.count)) : []
    for participant in rung {
      Task { await attempt(participant) { try await $0.joinWhenRung(on: $1, certificate: certificate) } }
    }
    do {
      await pace?.wait()
      let call = try await first.start(
        ringing: plan.guests + rung.compactMap(\.account?.user), on: loop(of: first), certificate: certificate)
      calls.add(call, number)
      let unrung = Array(others.dropFirst(rung.count))
      if !unrung.isEmpty || count < plan.participants {
        calls.add(link: try await call.makeLink(), number)
        await join(unrung, number, pace)
      }
    } catch {
      first.fail("could not start the call: \(error)")
    }
  }

  /// People with a link join independently, so the server sees several of them at a time.
  private func join(_ participants: [SimulatedParticipant], _ number: Int, _ pace: JoinPace?) async {
    guard let call = calls.call(number), let link = calls.link(number) else { return }
    await withTaskGroup(of: Void.self) { group in
      for (place, participant) in participants.enumerated() where !Interrupt.hasCome {
        if place >= Self.joinWindow { await group.next() }
        await pace?.wait()
        group.addTask {
          await attempt(participant) { try await $0.join(call.id, link: link, on: $1, certificate: certificate) }
        }
      }
    }
  }

  /// Lets more participants of the first call join by its link.
  func joinMore(_ range: Range<Int>) async {
    guard !Interrupt.hasCome else { return }
    let coming = Array(members(of: 0).prefix(range.upperBound).dropFirst(range.lowerBound))
    let pace = plan.joinRate.map { JoinPace(perSecond: $0) }
    await Interrupt.orEnd {
      if let rooms = calls.rooms { return await rooms.join(coming, on: loops, pace) }
      await join(coming, 0, pace)
    }
    await wait { coming.allSatisfy { $0.joinTime != nil || $0.failure != nil } }
  }

  func attempt(_ participant: SimulatedParticipant, _ join: (SimulatedParticipant, MediaLoop) async throws -> Void)
    async
  {
    do {
      try await join(participant, loop(of: participant))
    } catch {
      participant.fail("could not join: \(error)")
    }
  }

  /// Waits until everyone has opened a frame of every track that it should receive.
  func settle() async {
    guard !Interrupt.hasCome else { return }
    monitor.enter("first frames")
    await wait {
      (0..<plan.calls).allSatisfy { number in
        let members = members(of: number)
        let tracks = members.reduce(into: Set<TrackKey>()) { $0.formUnion($1.tracks) }
        return members.allSatisfy {
          $0.joinTime == nil || tracks.subtracting($0.tracks).isSubset(of: $0.progress.state.heard)
        }
      }
    }
  }

  func wait(until isDone: () -> Bool) async {
    let turns = plan.joinRate.map { Double(plan.total) / $0 } ?? 0
    let deadline = MonotonicClock.now().advanced(by: plan.joinTimeout + .seconds(turns))
    while !isDone(), MonotonicClock.now() < deadline, !Interrupt.hasCome { try? await Task.sleep(for: pollInterval) }
  }
}

/// Admits a fixed number per second, at equal intervals.
actor JoinPace {
  private let interval: Duration
  private var next = MonotonicClock.now()

  init(perSecond: Double) { interval = .nanoseconds(Int64(1e9 / perSecond)) }

  func wait() async {
    let due = max(next, MonotonicClock.now())
    next = due.advanced(by: interval)
    try? await Task.sleep(for: MonotonicClock.now().duration(to: due))
  }
}
