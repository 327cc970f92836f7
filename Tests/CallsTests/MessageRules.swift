import CallMessages
import Contract
import MediaModel
import Simulation
import Testing

/// `message`, `receive`, `stats`, `report` and the event `quality` (protocol section 6).
struct MessageRules {
  let stage = Stage()
  let alice: Client
  let bob: Client
  let carol: Client
  let call: CallID

  init() throws {
    alice = stage.connect("alice")
    bob = stage.connect("bob")
    carol = stage.connect("carol")
    call = try alice.call(["bob", "carol", "dave"])
    try bob.accept(call)
    try carol.accept(call)
    clear()
  }

  private func clear() { for client in [alice, bob, carol] { _ = client.events() } }

  private func send(_ client: Client, bytes: Int = 1, to: [ParticipantNumber]? = nil) -> RequestError.Code? {
    client.code(.inCall(call, .message(SendMessage(to: to, body: Base64Bytes([UInt8](repeating: 1, count: bytes))))))
  }

  private func messages(_ client: Client) -> [CallMessage] {
    client.events().compactMap { if case .message(let message) = $0 { message } else { nil } }
  }

  @Test func aMessageGoesToAllOthersOrToThoseNamed() throws {
    #expect(send(alice) == nil)
    #expect(messages(bob) == [CallMessage(from: 1, body: Base64Bytes([1]))])
    #expect(messages(carol).count == 1 && messages(alice).isEmpty)
    #expect(send(bob, to: [3, 3, 99, 2]) == nil)
    #expect(messages(carol).map(\.from) == [2], "absent recipients are skipped")
    #expect(messages(alice).isEmpty && messages(bob).isEmpty)
    for nobody in [[], [99], [1]] as [[ParticipantNumber]] { #expect(send(alice, to: nobody) == .userNotFound) }
    _ = carol.ask(.call(call, .leave))
    #expect(send(carol) == .callNotJoined)
    #expect(send(alice, to: [3]) == .userNotFound)
    #expect(send(stage.connect("dave")) == .callNotFound)
  }

  @Test func aMessageHasAtMost16KiB() throws {
    #expect(send(alice, bytes: 16_384) == nil)
    #expect(send(alice, bytes: 16_385) == .requestTooLarge)
    #expect(messages(bob).count == 1)
  }

  @Test func aParticipantSends10ASecond() throws {
    for _ in 0..<10 { #expect(send(alice) == nil) }
    guard case .failed(let error) = alice.ask(.inCall(call, .message(SendMessage(body: Base64Bytes([1]))))) else {
      return #expect(Bool(false))
    }
    #expect(error.code == .rateLimited && error.retryAfterMs == 100)
    #expect(send(bob) == nil, "each has its own")
    #expect(messages(carol).count == 11)
    stage.advance(.milliseconds(99))
    #expect(send(alice) == .rateLimited)
    stage.advance(.milliseconds(1))
    #expect(send(alice) == nil)
  }

  @Test func aParticipantSends64KiBASecond() throws {
    for _ in 0..<4 { #expect(send(alice, bytes: 16_384) == nil) }
    #expect(send(alice, bytes: 16_384) == .rateLimited)
    stage.advance(.milliseconds(250))
    #expect(send(alice, bytes: 16_384) == nil)
    #expect(send(alice, bytes: 1) == .rateLimited)
  }

  @Test func aMessageWaitsForADeviceThatIsAwayAndNotForAFormerParticipant() throws {
    bob.disconnect()
    carol.disconnect()
    #expect(send(alice) == nil)
    #expect(messages(stage.connect("bob")).count == 1)
    stage.advance(.seconds(15))
    #expect(messages(stage.connect("carol")).isEmpty)
  }

  // MARK: receive

  private func wishes() -> [Wishes] {
    stage.takeMedia().compactMap { if case .receive(_, let wishes) = $0 { wishes } else { nil } }
  }

  @Test func wishesAreAddedToWhatWasWantedBefore() throws {
    #expect(alice.offer(call, .sending([:]), []) == nil)
    let first = TrackID(participant: 2, index: 1)
    let second = TrackID(participant: 3, index: 1)
    let height = Receive(lastN: 4, videos: [.init(track: first, maxHeight: 360, priority: 2)])
    #expect(alice.code(.inCall(call, .receive(height))) == nil)
    #expect(wishes() == [Wishes(lastN: 4, videos: [first: .init(maxHeight: 360, priority: 2)])])
    let pause = Receive(videos: [.init(track: first, paused: true), .init(track: second, maxHeight: 90)])
    #expect(alice.code(.inCall(call, .receive(pause))) == nil)
    #expect(
      wishes() == [
        Wishes(
          lastN: 4, videos: [first: .init(maxHeight: 360, priority: 2, isPaused: true), second: .init(maxHeight: 90)])
      ])
    #expect(alice.code(.inCall(call, .receive(pause))) == nil)
    #expect(wishes().isEmpty, "nothing changed")
  }

  @Test func wishesBeforeTheFirstOfferAreToldWithIt() throws {
    #expect(alice.code(.inCall(call, .receive(Receive(lastN: 0)))) == nil)
    #expect(wishes().isEmpty)
    #expect(alice.offer(call, .sending([:]), []) == nil)
    #expect(wishes() == [Wishes(lastN: 0)])
    try alice.rejoin(call)
    #expect(alice.offer(call, .sending([:]), []) == nil)
    #expect(wishes().isEmpty, "a new participant wishes everything again")
  }

  @Test func mutedParticipantsAreReplacedAndTheirListIsBounded() throws {
    func code(_ muted: [ParticipantNumber]?, lastN: Int? = nil) -> RequestError.Code? {
      alice.code(.inCall(call, .receive(Receive(lastN: lastN, muted: muted))))
    }
    #expect(code([2, 3, 3]) == nil && wishes().isEmpty, "before the first offer")
    #expect(alice.offer(call, .sending([:]), []) == nil)
    #expect(wishes() == [Wishes(muted: [2, 3])])
    #expect(code(nil, lastN: 3) == nil && wishes() == [Wishes(lastN: 3, muted: [2, 3])], "left out: it stays")
    #expect(code([3]) == nil && wishes() == [Wishes(lastN: 3, muted: [3])])
    #expect(code([3]) == nil && wishes().isEmpty)
    for number in [0, 4, .max] as [ParticipantNumber] { #expect(code([2, number]) == .userNotFound) }
    #expect(code(Array(repeating: 2, count: 65)) == .requestInvalid)
    #expect(wishes().isEmpty, "a refused request has no effect")
    #expect(bob.events().isEmpty && carol.events().isEmpty, "nobody is told")
    #expect(code([]) == nil && wishes() == [Wishes(lastN: 3)])
    try alice.rejoin(call)
    #expect(alice.offer(call, .sending([:]), []) == nil)
    #expect(wishes().isEmpty)
  }

  @Test func wishesOutOfBoundsAreRefused() throws {
    let track = TrackID(participant: 2, index: 9)
    func code(_ receive: Receive) -> RequestError.Code? { alice.code(.inCall(call, .receive(receive))) }
    #expect(code(Receive(lastN: 26)) == .requestInvalid && code(Receive(lastN: -1)) == .requestInvalid)
    for height in [0, -1, .max] {
      #expect(code(Receive(videos: [.init(track: track, maxHeight: height)])) == .requestInvalid)
    }
    #expect(code(Receive(videos: [.init(track: track, priority: .min)])) == .requestInvalid)
    #expect(code(Receive(videos: Array(repeating: .init(track: track), count: 65))) == .requestInvalid)
    #expect(code(Receive(videos: [.init(track: TrackID(participant: 4, index: 1))])) == .trackNotFound)
    _ = bob.ask(.call(call, .leave))
    #expect(code(Receive(videos: [.init(track: track)])) == nil, "it may have just gone")
    #expect(bob.code(.inCall(call, .receive(Receive(lastN: 1)))) == .callNotJoined)
  }

  // MARK: stats, quality and reports

  @Test func measurementsArePassedOnWithoutWhose() throws {
    let numbers = QualityNumbers(rtt: 20, loss: 0.01, jitter: 3, freezes: 0, firstFrameMs: 300)
    #expect(alice.code(.inCall(call, .stats(numbers))) == nil)
    let measured = stage.others.compactMap { if case .measured(let numbers) = $0 { numbers } else { nil } }
    #expect(measured == [numbers])
    for bad in [
      QualityNumbers(rtt: -1), .init(loss: 1.01), .init(jitter: .infinity), .init(freezes: .nan),
      .init(firstFrameMs: 600_001),
    ] { #expect(alice.code(.inCall(call, .stats(bad))) == .requestInvalid) }
    _ = bob.ask(.call(call, .leave))
    #expect(bob.code(.inCall(call, .stats(numbers))) == .callNotJoined)
  }

  @Test func aDeviceHearsHowWellItIsServed() throws {
    stage.handle(.media(.quality(try bob.peer(in: call), level: 3, bitrate: 900_000)))
    #expect(bob.events() == [.quality(Quality(participant: 2, level: 3, bitrate: 900_000))])
    #expect(alice.events().isEmpty)
  }

  private func reports() -> [Report] {
    stage.webhooks.compactMap { channel, event in
      if channel == .serviceReports, case .report(let report) = event.body { report } else { nil }
    }
  }

  @Test func membersReportAParticipantOrAUserUntil24HoursAfterTheEnd() throws {
    #expect(bob.code(.call(call, .report(ReportAbuse(participant: 1, text: "rude")))) == nil)
    #expect(bob.code(.call(call, .report(ReportAbuse(user: carol.user, text: "rude")))) == nil)
    #expect(
      reports() == [
        Report(by: bob.user, user: alice.user, participant: 1, text: "rude"),
        Report(by: bob.user, user: carol.user, participant: nil, text: "rude"),
      ])
    try carol.rejoin(call)
    #expect(bob.code(.call(call, .report(ReportAbuse(participant: 3, text: "who was")))) == nil)
    _ = alice.ask(.call(call, .end))
    #expect(bob.code(.call(call, .report(ReportAbuse(participant: 3, text: "late")))) == nil)
    #expect(reports().count == 4)
    stage.advance(.seconds(86_399))
    #expect(bob.code(.call(call, .report(ReportAbuse(participant: 1, text: "later")))) == nil)
    stage.advance(.seconds(1))
    #expect(bob.code(.call(call, .report(ReportAbuse(participant: 1, text: "too late")))) == .callEnded)
    #expect(stage.connect("eve").code(.call(call, .report(ReportAbuse(participant: 1, text: "x")))) == .callNotFound)
  }

  @Test func aReportIsStoredForTheOperatorUntilEitherPersonIsForgotten() throws {
    for text in ["one", "two"] {
      #expect(bob.code(.call(call, .report(ReportAbuse(participant: 1, text: text)))) == nil)
    }
    let kept = stage.disk.reports
    #expect(
      kept.map(\.report) == reports() && kept.map(\.call) == [call, call] && kept.map(\.at) == [stage.now, stage.now])
    #expect(Set(kept.map(\.id)).count == 2)
    #expect(bob.code(.call(call, .report(ReportAbuse(text: "x")))) == .requestInvalid)
    #expect(stage.disk.reports == kept, "a refused one is not stored")
    #expect("\(kept[0])" == "report", "it never reaches a log")
    stage.handle(.forget(alice.user))
    #expect(stage.disk.reports.isEmpty)
    #expect(bob.code(.call(call, .report(ReportAbuse(user: alice.user, text: "x")))) == .userNotFound)
  }

  @Test func aReportNamesSomebodyOfTheCall() throws {
    func code(_ report: ReportAbuse) -> RequestError.Code? { bob.code(.call(call, .report(report))) }
    #expect(code(ReportAbuse(text: "x")) == .requestInvalid)
    #expect(code(ReportAbuse(user: UserID(unchecked: "eve"), text: "x")) == .userNotFound)
    #expect(code(ReportAbuse(participant: 9, text: "x")) == .userNotFound)
    #expect(code(ReportAbuse(participant: 1, user: carol.user, text: "x")) == .userNotFound, "they are not the same")
    #expect(code(ReportAbuse(participant: 1, text: "")) == .requestInvalid)
    #expect(code(ReportAbuse(participant: 1, text: String(repeating: "x", count: 4_097))) == .requestTooLarge)
    #expect(reports().isEmpty)
    for _ in 0..<5 { #expect(code(ReportAbuse(participant: 1, text: "x")) == nil) }
    #expect(code(ReportAbuse(participant: 1, text: "x")) == .rateLimited)
    stage.advance(.seconds(10))
    #expect(code(ReportAbuse(participant: 1, text: "x")) == nil)
  }
}
