import ConclaveClient
import Foundation
import LinuxIO
import MediaModel
import NIOCore
import NIOPosix
import Synchronization
import Transport

/// One load test with calls, from sign-in to report.
struct CallRun: Sendable {
  let plan: CallPlan
  let participants: [SimulatedParticipant]
  let loops: [MediaLoop]
  let certificate = DTLSCertificate()
  let monitor: Monitor
  let calls = StartedCalls()
  private let group: MultiThreadedEventLoopGroup

  /// How long frames that are in flight when the measurement ends may take.
  static let drainTime = Duration.milliseconds(1_500)
  /// How long ending the calls may take; the server ends the others by itself.
  private static let leaveTime = Duration.seconds(5)
  /// Asking a thousand participants for their state takes a millisecond.
  var pollInterval: Duration { .milliseconds(max(20, plan.total / 10)) }
  /// Bytes of the bodies that the participants share once they are parsed.
  private static let sharedBytes = 64 << 20

  /// - Parameter tokens: nil for a server without sign-in.
  init(_ plan: CallPlan, tokens: TokenSource?) throws {
    self.plan = plan
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    self.group = group
    let work = PublicWork(capacity: Self.sharedBytes)
    participants = try (0..<plan.total).map {
      try SimulatedParticipant(tokens?.accounts[$0], index: $0, plan: plan, group: group, work: work)
    }
    loops = try (0..<plan.threads).map { try MediaLoop(number: $0) }
    monitor = Monitor(plan, loops: loops, participants: participants)
  }

  /// An interruption ends each phase at once; the report says how far the test got.
  func perform() async throws -> CallReport {
    let watching = Task { await monitor.run() }
    var outcome = CallOutcome()
    var server = ServerUsage(process: plan.serverProcess)
    try await connect()
    server.noteBeforeJoining()
    let returns = plan.outages ? Task { await watchReturns() } : nil
    switch plan.course {
    case .ramp(let step, let conditions): await ramp(step: step, until: conditions, &outcome, &server)
    case .storm:
      outcome.joining = await joining()
      if !Interrupt.hasCome { await storm() }
      await measure(&outcome, &server)
    case .steady, .churn:
      outcome.joining = await joining()
      await measureCosts(&outcome)
      await pause(plan.settleTime)
      await measure(&outcome, &server)
    }
    if Interrupt.hasCome { outcome.interruption = monitor.phase }
    monitor.enter("ending")
    returns?.cancel()
    outcome.samples = monitor.samples
    outcome.tally = tally
    // The media threads publish the final counts of each stay together with its traffic.
    _ = await traffic()
    let report = CallReport(plan: plan, participants: participants, outcome)
    watching.cancel()
    await watching.value
    await leave()
    return report
  }

  /// Lets everybody join; returns the resources that the load test itself used for it.
  private func joining() async -> OwnUsage {
    let before = monitor.reading()
    await joinAll()
    return OwnUsage(from: before, to: monitor.reading())
  }

  private func measureCosts(_ outcome: inout CallOutcome) async {
    guard let window = plan.costWindow, let call = calls.call(0), !Interrupt.hasCome else { return }
    let measurement = CostMeasurement(
      plan: plan, window: window, call: call, members: members(of: 0), certificate: certificate, monitor: monitor)
    outcome.costs = await measurement.perform(rejoiningOn: loop(of: members(of: 0).last!))
    await settle()
  }

  private func measure(_ outcome: inout CallOutcome, _ server: inout ServerUsage) async {
    guard !Interrupt.hasCome else { return }
    monitor.enter("measuring")
    outcome.measurement = await measurement(&server)
  }

  /// Measures for the planned duration.
  func measurement(_ server: inout ServerUsage) async -> Measurement {
    let (tallyBefore, trafficBefore, readingBefore) = (tally, await traffic(), monitor.reading())
    for loop in loops { loop.submit(.measure(true)) }
    server.start()
    let start = MonotonicClock.now()
    let end = start.advanced(by: plan.duration)
    if case .churn(let rate) = plan.course {
      await Interrupt.orEnd { await churn(perSecond: rate, until: end) }
    } else {
      await pause(plan.duration)
    }
    let (current, readingAfter) = (tally, monitor.reading())
    let seconds = start.duration(to: MonotonicClock.now()).seconds
    let packets = current.packetsReceived - tallyBefore.packetsReceived
    server.stop(packets: packets, seconds: seconds)
    for loop in loops { loop.submit(.measure(false)) }
    try? await Task.sleep(for: Self.drainTime)
    let earlier = Dictionary(trafficBefore.map { ($0.index, $0) }) { first, _ in first }
    let traffic = await traffic().map { $0.since(earlier[$0.index]) }
    let after = tally
    return Measurement(
      seconds: seconds, delivery: PacketArrivals(traffic) { !plan.churns($0) },
      audio: PacketArrivals(traffic, isAudioOnly: true) { !plan.churns($0) },
      undisturbed: PacketArrivals(traffic) { !plan.churns($0) && !plan.isImpaired($0) },
      latency: after.latency.since(tallyBefore.latency),
      audioLatency: after.audioLatency.since(tallyBefore.audioLatency),
      layers: after.layers.since(tallyBefore.layers),
      decryptFailures: after.decryptFailures - tallyBefore.decryptFailures, packets: packets, server: server.result,
      own: OwnUsage(from: readingBefore, to: readingAfter))
  }

  var tally: Tally {
    var sum = Tally()
    for loop in loops { sum.merge(loop.tally) }
    return sum
  }

  private func traffic() async -> [PeerTraffic] {
    var all: [Int: PeerTraffic] = [:]
    for loop in loops {
      // Participants of some servers have two connections.
      for traffic in await loop.traffic() { all[traffic.index] = all[traffic.index]?.with(traffic) ?? traffic }
    }
    return Array(all.values)
  }

  func loop(of participant: SimulatedParticipant) -> MediaLoop { loops[participant.index % loops.count] }

  func members(of call: Int) -> ArraySlice<SimulatedParticipant> {
    participants[call * plan.participants..<(call + 1) * plan.participants]
  }

  private func connect() async throws {
    if case .janus(let url) = plan.target {
      return calls.open(try await JanusRooms(plan, url: url, certificate: certificate))
    }
    await Interrupt.orEnd {
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
    }
    guard Interrupt.hasCome || participants.contains(where: { $0.failure == nil }) else {
      throw TokenSource.Failure(description: participants[0].failure ?? "nobody could sign in")
    }
  }

  /// Sleeps until the time is over or the test is interrupted.
  func pause(_ time: Duration) async {
    guard time > .zero, !Interrupt.hasCome else { return }
    await Interrupt.orEnd { try? await Task.sleep(for: time) }
  }

  private func leave() async {
    for loop in loops { loop.stop() }
    let (calls, rooms, participants) = (calls.all, calls.rooms, participants)
    let limit = Interrupt.hasCome ? .seconds(1) : Self.leaveTime
    // A request to a dead server takes long, and an interrupted test does not wait for it.
    try? await withoutWaiting(limit) {
      for call in calls { try? await call.end() }
      for participant in participants { await participant.client?.close() }
      await rooms?.close()
      // The event loops are left running until the program ends: closing connections still use them.
    }
  }
}

/// The calls that the test has started, by number.
final class StartedCalls: Sendable {
  private let started = Mutex<[Int: (call: JoinedCall, link: JoinedCall.Invitation?)]>([:])
  private let opened = Mutex<JanusRooms?>(nil)

  func add(_ call: JoinedCall, _ number: Int) { started.withLock { $0[number] = (call, nil) } }
  func add(link: JoinedCall.Invitation, _ number: Int) { started.withLock { $0[number]?.link = link } }
  func call(_ number: Int) -> JoinedCall? { started.withLock { $0[number]?.call } }
  func link(_ number: Int) -> JoinedCall.Invitation? { started.withLock { $0[number]?.link } }
  /// The calls are rooms of Janus instead.
  func open(_ rooms: JanusRooms) { opened.withLock { $0 = rooms } }
  var rooms: JanusRooms? { opened.withLock { $0 } }
  var all: [JoinedCall] { started.withLock { $0.values.map(\.call) } }
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

/// Like `within`, but returns in time even if `body` does not react to its cancellation.
func withoutWaiting(_ limit: Duration, _ body: @escaping @Sendable () async -> Void) async throws {
  let (ends, sink) = AsyncStream<Bool>.makeStream()
  Task {
    await body()
    sink.yield(true)
  }
  let clock = Task {
    try await Task.sleep(for: limit)
    sink.yield(false)
  }
  defer { clock.cancel() }
  for await hasEnded in ends {
    guard hasEnded else { throw CancellationError() }
    return
  }
}

extension Duration {
  var seconds: Double { Double(nanoseconds) / 1e9 }
}
