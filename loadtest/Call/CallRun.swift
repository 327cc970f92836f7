import ConclaveClient
import Foundation
import LinuxIO
import MediaModel
import NIOCore
import NIOPosix
import Transport

/// One load test with calls, from sign-in to report.
struct CallRun {
  private let plan: CallPlan
  private let participants: [SimulatedParticipant]
  private let loops: [MediaLoop]
  private let group: MultiThreadedEventLoopGroup
  private let certificate = DTLSCertificate()

  /// Callees that ring at a time; the server rings at most 100 a call.
  private static let ringLimit = 80
  /// Participants that join by the link at a time.
  private static let joinWindow = 64
  /// Frames that are still on their way when measuring ends get this long.
  private static let drainTime = Duration.milliseconds(1_500)
  /// Asking a thousand participants how they are costs a millisecond.
  private var pollInterval: Duration { .milliseconds(max(20, plan.total / 10)) }
  /// Bytes of the bodies whose meaning the participants share.
  private static let sharedBytes = 64 << 20

  init(_ plan: CallPlan, tokens: TokenSource) throws {
    self.plan = plan
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    self.group = group
    let work = PublicWork(capacity: Self.sharedBytes)
    participants = try tokens.accounts.prefix(plan.total).enumerated().map {
      try SimulatedParticipant($0.element, index: $0.offset, plan: plan, group: group, work: work)
    }
    loops = try (0..<plan.threads).map { try MediaLoop(number: $0) }
  }

  func perform() async throws -> CallReport {
    let progress = ProgressLine()
    var server = ServerUsage(process: plan.serverProcess)
    try await connect(progress)
    server.noteBeforeJoining()
    var calls: [JoinedCall] = []
    let returns = plan.outages ? Task { await watchReturns() } : nil
    await join(progress, &calls)
    await settle(progress)
    var costs: [ChangeCost] = []
    if let window = plan.costWindow, let call = calls.first {
      let measurement = CostMeasurement(
        plan: plan, window: window, call: call, members: members(of: 0), certificate: certificate, progress: progress)
      costs = await measurement.perform(rejoiningOn: loop(of: members(of: 0).last!))
      await settle(progress)
    }
    try? await Task.sleep(for: plan.settleTime)
    for loop in loops { loop.submit(.measure(true)) }
    let before = tally
    server.start()
    await measure(progress, from: before)
    server.stop(packets: tally.packetsReceived - before.packetsReceived, seconds: plan.duration.seconds)
    for loop in loops { loop.submit(.measure(false)) }
    try? await Task.sleep(for: Self.drainTime)
    returns?.cancel()
    let traffic = await traffic()
    let report = CallReport(
      plan: plan, participants: participants, traffic: traffic, tally: tally, server: server.result,
      costs: costs)
    progress.finish()
    await leave(calls)
    return report
  }

  private var tally: Tally {
    var sum = Tally()
    for loop in loops { sum.merge(loop.tally) }
    return sum
  }

  private func traffic() async -> [PeerTraffic] {
    var all: [PeerTraffic] = []
    for loop in loops { all += await loop.traffic() }
    return all
  }

  private func loop(of participant: SimulatedParticipant) -> MediaLoop { loops[participant.index % loops.count] }

  private func members(of call: Int) -> ArraySlice<SimulatedParticipant> {
    participants[call * plan.participants..<(call + 1) * plan.participants]
  }

  private func connect(_ progress: ProgressLine) async throws {
    progress.show("signing in \(plan.total) participants")
    await withTaskGroup(of: Void.self) { group in
      for participant in participants {
        group.addTask {
          do {
            try await within(plan.joinTimeout) { try await participant.connect() }
          } catch is CancellationError {
            participant.fail("could not sign in: no answer in time")
          } catch {
            participant.fail("could not sign in: \(error)")
          }
        }
      }
    }
    guard participants.contains(where: { $0.failure == nil }) else {
      throw TokenSource.Failure(description: participants[0].failure ?? "nobody could sign in")
    }
  }

  /// All calls at once: the first of each rings as many as may ring at a time, who accept at once, and the others come by a link.
  private func join(_ progress: ProgressLine, _ calls: inout [JoinedCall]) async {
    await withTaskGroup(of: JoinedCall?.self) { group in
      for number in 0..<plan.calls { group.addTask { await start(number) } }
      for await call in group { if let call { calls.append(call) } }
    }
    await wait(progress, "joining") { participants.allSatisfy { $0.joinTime != nil || $0.failure != nil } }
  }

  private func start(_ number: Int) async -> JoinedCall? {
    let members = members(of: number)
    guard let first = members.first else { return nil }
    let others = members.dropFirst()
    let rung = others.prefix(max(0, Self.ringLimit - plan.guests.count))
    for participant in rung {
      Task { await attempt(participant) { try await $0.joinWhenRung(on: $1, certificate: certificate) } }
    }
    do {
      let call = try await first.start(
        ringing: plan.guests + rung.map(\.account.user), on: loop(of: first), certificate: certificate)
      let unrung = Array(others.dropFirst(rung.count))
      if !unrung.isEmpty { await join(unrung, call.id, link: try await call.makeLink().link) }
      return call
    } catch {
      first.fail("could not start the call: \(error)")
      return nil
    }
  }

  /// People who got a link come when they like: the server sees some of them at a time.
  private func join(_ participants: [SimulatedParticipant], _ call: String, link: String) async {
    await withTaskGroup(of: Void.self) { group in
      for (place, participant) in participants.enumerated() {
        if place >= Self.joinWindow { await group.next() }
        group.addTask {
          await attempt(participant) { try await $0.join(call, link: link, on: $1, certificate: certificate) }
        }
      }
    }
  }

  private func attempt(
    _ participant: SimulatedParticipant, _ join: (SimulatedParticipant, MediaLoop) async throws -> Void
  ) async {
    do {
      try await join(participant, loop(of: participant))
    } catch {
      participant.fail("could not join: \(error)")
    }
  }

  /// Until everyone has opened a frame of every track that it is to receive.
  private func settle(_ progress: ProgressLine) async {
    await wait(progress, "first frames") {
      (0..<plan.calls).allSatisfy { number in
        let members = members(of: number)
        let tracks = members.reduce(into: Set<TrackKey>()) { $0.formUnion($1.tracks) }
        return members.allSatisfy {
          $0.joinTime == nil || tracks.subtracting($0.tracks).isSubset(of: $0.progress.state.heard)
        }
      }
    }
  }

  /// Notes who hears all the others of its call, until it is cancelled.
  private func watchReturns() async {
    while !Task.isCancelled {
      for number in 0..<plan.calls {
        let members = members(of: number)
        guard !members.contains(where: { $0.isAway }) else { continue }
        let tracks = members.reduce(into: Set<TrackKey>()) { $0.formUnion($1.tracks) }
        for member in members { member.noteReturn(hearing: tracks) }
      }
      try? await Task.sleep(for: pollInterval)
    }
  }

  private func wait(_ progress: ProgressLine, _ what: String, until isDone: () -> Bool) async {
    let deadline = MonotonicClock.now().advanced(by: plan.joinTimeout)
    while !isDone(), MonotonicClock.now() < deadline {
      let joined = participants.count { $0.joinTime != nil }
      progress.show("\(what): \(joined) of \(plan.total) joined")
      try? await Task.sleep(for: pollInterval)
    }
  }

  private func measure(_ progress: ProgressLine, from before: Tally) async {
    let start = MonotonicClock.now()
    let end = start.advanced(by: plan.duration)
    var last = (tally: before, at: start)
    if plan.outages { Interrupt.watch() }
    while MonotonicClock.now() < end, !Interrupt.hasCome {
      let left = MonotonicClock.now().duration(to: end)
      try? await Task.sleep(for: min(left, .milliseconds(500)))
      let now = MonotonicClock.now()
      let current = tally
      let rate = Double(current.packetsReceived - last.tally.packetsReceived) / last.at.duration(to: now).seconds
      progress.show(current, rate: rate, elapsed: start.duration(to: now), of: plan.duration)
      last = (current, now)
    }
  }

  private func leave(_ calls: [JoinedCall]) async {
    for call in calls { try? await within(.seconds(5)) { try await call.end() } }
    for participant in participants { await participant.client.close() }
    for loop in loops { loop.stop() }
    try? await group.shutdownGracefully()
  }
}

/// Runs `body`, and throws `CancellationError` if it takes longer.
func within(_ limit: Duration, _ body: @escaping @Sendable () async throws -> Void) async throws {
  try await withThrowingTaskGroup(of: Void.self) { group in
    group.addTask { try await body() }
    group.addTask {
      try await Task.sleep(for: limit)
      throw CancellationError()
    }
    try await group.next()
    group.cancelAll()
  }
}

extension Duration {
  var seconds: Double { Double(nanoseconds) / 1e9 }
}
