import Contract
import Foundation
import MediaModel
import Octets
import Recording
import Synchronization
import Testing

@testable import ConclaveClient

/// The rules of an upload in virtual time, and an uploader against a server in memory.
struct SegmentUploadTests {
  private let now = Instant(nanoseconds: 1_000_000_000_000)

  private func plan(sealed: Int = 3) -> UploadPlan {
    var plan = UploadPlan()
    for _ in 0..<sealed { plan.add() }
    return plan
  }

  @Test func segmentsGoInOrderAndAreConfirmed() {
    var generator = SplitMix64(seed: 1)
    var plan = plan(sealed: 2)
    #expect(plan.next(now: now) == .register)
    plan.registered()
    #expect(plan.next(now: now) == .ask, "an answer may have been lost with the app")
    plan.answered(ask: 200, retryAfter: 0, position: .init(next: 0, isOurs: true), now: now, using: &generator)
    for number in UInt32(0)..<2 {
      #expect(plan.next(now: now) == .put(number))
      plan.answered(put: 201, retryAfter: 0, position: nil, now: now, using: &generator)
    }
    #expect(plan.next(now: now) == .ask && plan.state == .uploading)
    plan.answered(ask: 200, retryAfter: 0, position: .init(next: 2, isOurs: true), now: now, using: &generator)
    #expect(plan.next(now: now) == .rest && plan.state == .stored)
    plan.add()
    #expect(plan.next(now: now) == .put(2))
  }

  /// The meaning of each refusal.
  @Test(arguments: [
    (status: 410, state: SegmentUploader.State.ended), (400, .refused), (413, .refused), (507, .full), (0, .waiting),
    (408, .waiting), (429, .waiting), (503, .waiting), (401, .waiting), (404, .waiting),
  ]) func refusals(row: (status: Int, state: SegmentUploader.State)) {
    var generator = SplitMix64(seed: 2)
    var plan = plan()
    plan.registered()
    plan.answered(ask: 200, retryAfter: 0, position: .init(next: 0, isOurs: true), now: now, using: &generator)
    plan.answered(put: row.status, retryAfter: 0, position: nil, now: now, using: &generator)
    #expect(plan.state == row.state)
    if row.status == 401 || row.status == 404 {
      #expect(plan.next(now: now.advanced(by: .seconds(60))) == .register, "with another ticket")
    }
  }

  @Test func pausesGrowAndAreBounded() {
    var generator = SplitMix64(seed: 3)
    var plan = plan()
    plan.registered()
    var time = now
    var pauses: [Duration] = []
    for _ in 0..<12 {
      plan.answered(put: 0, retryAfter: 0, position: nil, now: time, using: &generator)
      guard case .wait(let until) = plan.next(now: time) else {
        Issue.record("it does not wait")
        return
      }
      pauses.append(time.duration(to: until))
      time = until
    }
    #expect(pauses[0] <= .milliseconds(500) && pauses[0] >= .milliseconds(250))
    #expect(pauses.allSatisfy { $0 <= UploadPlan.longestPause } && pauses[11] >= .seconds(15))
    // The server's own time counts, up to five minutes.
    plan.answered(put: 503, retryAfter: 100_000, position: nil, now: time, using: &generator)
    #expect(plan.next(now: time) == .wait(until: time.advanced(by: .seconds(300))))
    plan.hurry()
    #expect(plan.next(now: time) != .wait(until: time.advanced(by: .seconds(300))))
  }

  @Test func aServerThatHasOthersCannotBeHelped() {
    var generator = SplitMix64(seed: 4)
    for position in [UploadPlan.Position(next: 1, isOurs: false), .init(next: 9, isOurs: true)] {
      var plan = plan()
      plan.registered()
      plan.answered(put: 409, retryAfter: 0, position: position, now: now, using: &generator)
      #expect(plan.state == .lost)
    }
    // A server that has lost segments gets them again, as long as they are here.
    var plan = plan()
    plan.registered()
    for _ in 0..<3 { plan.answered(put: 201, retryAfter: 0, position: nil, now: now, using: &generator) }
    plan.answered(ask: 200, retryAfter: 0, position: .init(next: 1, isOurs: true), now: now, using: &generator)
    #expect(plan.next(now: now) == .put(1))
    plan.kept = 2
    plan.answered(ask: 200, retryAfter: 0, position: .init(next: 1, isOurs: true), now: now, using: &generator)
    #expect(plan.state == .lost)
  }

  /// 409 that says nothing new is no reason to try for ever.
  @Test func itGivesUpOnAContradiction() {
    var generator = SplitMix64(seed: 5)
    var plan = plan()
    plan.registered()
    for _ in 0..<3 {
      #expect(!plan.state.isOver)
      plan.answered(put: 409, retryAfter: 0, position: .init(next: 0, isOurs: true), now: now, using: &generator)
    }
    #expect(plan.state == .refused)
  }

  // MARK: the uploader

  /// A server in memory: it keeps what follows, and fails where a test says so.
  final class MemoryServer: SegmentTransport {
    struct Content {
      var files: [[UInt8]] = []
      var requests: [SegmentRequest] = []
      /// How many of the next requests get no answer although they arrive.
      var lost = 0
    }
    let content = Mutex(Content())

    func send(_ request: SegmentRequest) async -> SegmentAnswer? {
      content.withLock { content in
        content.requests.append(request)
        let head = content.files.last.map { SegmentHash(of: $0).bytes } ?? SegmentHash.zeros.bytes
        var answer: SegmentAnswer
        if request.method == .get {
          answer = SegmentAnswer(
            status: 200,
            body: Array(
              #"{"reels":{"1":{"next":\#(content.files.count),"head":"\#(Base64Bytes(head).base64)"}}}"#.utf8))
        } else if let number = Int(request.path.split(separator: "/").last ?? ""), number == content.files.count {
          content.files.append(request.body)
          answer = SegmentAnswer(status: 201)
        } else if content.files.last == request.body {
          answer = SegmentAnswer(status: 200)
        } else {
          answer = SegmentAnswer(
            status: 409,
            body: Array(#"{"next":\#(content.files.count),"head":"\#(Base64Bytes(head).base64)"}"#.utf8))
        }
        if content.lost > 0 {
          content.lost -= 1
          return nil
        }
        return answer
      }
    }
  }

  @Test func everythingArrivesOnceThoughAnswersAreLost() async throws {
    let world = RecordingWorld()
    let server = MemoryServer()
    let uploader = try #require(
      SegmentUploader(world.draftBefore, over: server) { .ticket("upload~1") })
    server.content.withLock { $0.lost = 2 }
    for segment in world.segments { #expect(await uploader.add(segment)) }
    #expect(await uploader.settle() == .stored)
    #expect(server.content.withLock { $0.files } == world.segments.map(\.file))
    #expect(await uploader.progress == .init(state: .stored, sealed: 4, stored: 4, confirmed: 4))
    let requests = server.content.withLock { $0.requests }
    #expect(requests.allSatisfy { $0.bearer == "upload~1" })
    #expect(requests.contains { $0.witness == world.segments[3].witness && $0.path.hasSuffix("/1/3") })
  }

  /// After a restart of the app, with what was stored and not sent.
  @Test func itResumes() async throws {
    let world = RecordingWorld()
    let server = MemoryServer()
    server.content.withLock { $0.files = world.segments.prefix(2).map(\.file) }
    let stored = try world.segments.dropFirst().map { segment in
      try #require(SealedSegment(file: segment.file, witness: segment.witness))
    }
    let uploader = try #require(
      SegmentUploader(world.draft, over: server, resuming: stored) { .ticket("upload~2") })
    #expect(await uploader.settle() == .stored)
    #expect(server.content.withLock { $0.files } == world.segments.map(\.file))
    #expect(SegmentUploader(world.draft, over: server, resuming: [stored[0], stored[2]]) { .full } == nil)
    // A server that has lost what is not here any more.
    server.content.withLock { $0.files = [] }
    let late = try #require(
      SegmentUploader(world.draft, over: server, resuming: stored) { .ticket("upload~3") })
    #expect(await late.settle() == .lost)
  }

  @Test func theQueueIsBounded() async throws {
    let world = RecordingWorld()
    let size = world.segments[0].file.count
    let uploader = try #require(
      SegmentUploader(world.draftBefore, over: MemoryServer(), limit: size * 2) { .refused })
    #expect(await uploader.add(world.segments[0]))
    #expect(await uploader.add(world.segments[0]) == false, "it is not the next one")
    let second = await uploader.add(world.segments[1])
    let third = await uploader.add(world.segments[2])
    #expect(second || world.segments[1].file.count > size)
    #expect(!third)
    #expect(await uploader.settle() == .refused)
  }
}

extension RecordingWorld {
  /// The draft as it was before the first segment.
  var draftBefore: RecordingDraft {
    var draft = draft
    draft.segments = 0
    draft.head = Base64Bytes(SegmentHash.zeros.bytes)
    return draft
  }
}
