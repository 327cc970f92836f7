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
  private let participants: [Participant]
  private let loops: [MediaLoop]
  private let group: MultiThreadedEventLoopGroup
  private let certificate = DTLSCertificate()

  /// Callees that ring at a time; the server rings at most 100 a call.
  private static let ringLimit = 80
  /// Frames that are still on their way when measuring ends get this long.
  private static let drainTime = Duration.milliseconds(1_500)
  private static let pollInterval = Duration.milliseconds(20)

  init(_ plan: CallPlan, tokens: TokenSource) throws {
    self.plan = plan
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    self.group = group
    participants = try tokens.accounts.prefix(plan.total).enumerated().map {
      try Participant($0.element, index: $0.offset, plan: plan, group: group)
    }
    loops = try (0..<plan.threads).map { try MediaLoop(number: $0) }
  }

  func perform() async throws -> CallReport {
    let progress = ProgressLine()
    var server = ServerUsage(process: plan.serverProcess)
    try await connect(progress)
    server.noteBeforeJoining()
    var calls: [Call] = []
    let returns = plan.outages ? Task { await watchReturns() } : nil
    await join(progress, &calls)
    await settle(progress)
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
      plan: plan, participants: participants, traffic: traffic, tally: tally, server: server.result)
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

  private func loop(of participant: Participant) -> MediaLoop { loops[participant.index % loops.count] }

  private func members(of call: Int) -> ArraySlice<Participant> {
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

  /// All calls at once: the first of each rings the others, who accept at once.
  private func join(_ progress: ProgressLine, _ calls: inout [Call]) async {
    for participant in participants where participant.index % plan.participants != 0 {
      Task {
        do {
          try await participant.joinWhenRung(on: loop(of: participant), certificate: certificate)
        } catch {
          participant.fail("could not join: \(error)")
        }
      }
    }
    await withTaskGroup(of: Call?.self) { group in
      for number in 0..<plan.calls { group.addTask { await start(number) } }
      for await call in group { if let call { calls.append(call) } }
    }
    await wait(progress, "joining") { participants.allSatisfy { $0.joinTime != nil || $0.failure != nil } }
  }

  private func start(_ number: Int) async -> Call? {
    let members = members(of: number)
    guard let first = members.first else { return nil }
    var callees = members.dropFirst().map(\.account.user) + plan.guests
    do {
      let call = try await first.start(
        ringing: Array(callees.prefix(Self.ringLimit)), on: loop(of: first), certificate: certificate)
      callees.removeFirst(min(callees.count, Self.ringLimit))
      while !callees.isEmpty {
        let invited = members.prefix(members.count + plan.guests.count - callees.count)
        _ = await poll(for: plan.joinTimeout) { invited.allSatisfy { $0.joinTime != nil || $0.failure != nil } }
        _ = try await call.invite(Array(callees.prefix(Self.ringLimit)))
        callees.removeFirst(min(callees.count, Self.ringLimit))
      }
      return call
    } catch {
      first.fail("could not start the call: \(error)")
      return nil
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
      try? await Task.sleep(for: Self.pollInterval)
    }
  }

  private func wait(_ progress: ProgressLine, _ what: String, until isDone: () -> Bool) async {
    let deadline = MonotonicClock.now().advanced(by: plan.joinTimeout)
    while !isDone(), MonotonicClock.now() < deadline {
      let joined = participants.count { $0.joinTime != nil }
      progress.show("\(what): \(joined) of \(plan.total) joined")
      try? await Task.sleep(for: Self.pollInterval)
    }
  }

  private func poll(for limit: Duration, until isDone: () -> Bool) async -> Bool {
    let deadline = MonotonicClock.now().advanced(by: limit)
    while !isDone() {
      guard MonotonicClock.now() < deadline else { return false }
      try? await Task.sleep(for: Self.pollInterval)
    }
    return true
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

  private func leave(_ calls: [Call]) async {
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
