import MediaModel
import NIOCore
import Connections
import Listening
import Synchronization
import Testing

@testable import ConclaveServer

/// The clock of a machine that was suspended, or started with a wrong time, is corrected later. Tokens and credentials
/// then follow it at once.
struct WallClockTests {
  private final class Machine: Sendable {
    private let time = Mutex(Timestamp(milliseconds: 1_790_000_000_000))
    var now: Timestamp { time.withLock { $0 } }
    func set(by step: Duration) { time.withLock { $0 = $0 + step } }
  }

  @Test(arguments: [3_600, -3_600]) func tokensFollowTheMachinesClockAndCallsDoNot(step: Int) async throws {
    let machine = Machine()
    let clock = WallClock(machine: { machine.now })
    let before = clock.now()
    machine.set(by: .seconds(step))
    #expect(abs((clock.now() - before).nanoseconds) < 60_000_000_000, "no ring ends by it")
    #expect(clock.machineTime() == machine.now)
    let tokens = TokenAuthority(secret: TokenForge.secret)
    let seconds = machine.now.milliseconds / 1_000
    let fresh = TokenForge.hmac(#"{"sub":"alice","nbf":\#(seconds),"exp":\#(seconds + 60)}"#)
    let old = TokenForge.hmac(#"{"sub":"alice","exp":\#(seconds - 600)}"#)
    #expect(try await tokens.verify(fresh, now: clock.machineTime()).user.text == "alice")
    await #expect(throws: TokenError.expired) { try await tokens.verify(old, now: clock.machineTime()) }
  }

  /// A guest's token is valid for an hour of the machine's clock.
  @Test func guestsTokensFollowIt() async throws {
    let machine = Machine()
    let tokens = TokenAuthority(guestSecret: TokenForge.secret)
    let entry = GuestEntry(
      tokens: tokens, clock: WallClock(machine: { machine.now }), proxies: .loopback,
      calls: GuestEntry.CallLookup(
        admits: { _, _ in true }, runs: { _ in true }, opened: { _ in nil }, waits: { _ in }))
    machine.set(by: .seconds(7_200))
    let response = try #require(
      await entry.respond(
        to: HTTPRequest(
          method: "POST", path: "/guest/token", query: nil, headers: [("content-type", "application/json")],
          body: .init(string: #"{"call":"c1","link":"good","name":"Ana"}"#), remoteAddress: nil)))
    let text = String(buffer: response.body.bytes)
    let token = try #require(text.split(separator: "\"").first { $0.hasPrefix("guest~") && $0.contains(".") })
    let claims = try await tokens.verify(String(token.dropFirst("guest~".count)), now: machine.now)
    #expect(claims.expiresAt == machine.now + GuestEntry.lifetime)
  }

  /// The clock may be set before the server reads it for the first time.
  @Test func aStepInTheFirstSecondIsNoticed() {
    var watch = ClockWatch()
    let steady = Timestamp(milliseconds: 1_790_000_001_000)
    #expect(watch.step(machine: steady + .seconds(3_600), steady: steady) == .seconds(3_600))
    #expect(watch.step(machine: steady + .seconds(3_601), steady: steady + .seconds(1)) == nil)
  }

  @Test func toldTimesFollowEachStep() {
    let clock = WallClock()
    #expect(clock.lag == .zero)
    clock.follow(.seconds(3_600))
    let copy = clock
    copy.follow(.seconds(-10))
    #expect(clock.lag == .seconds(3_590))
  }

  @Test func aStepIsNoticedOnceAndADriftIsNot() {
    var watch = ClockWatch()
    var machine = Timestamp(milliseconds: 1_790_000_000_000)
    var steady = machine
    func second(_ step: Duration = .zero) -> Duration? {
      steady = steady + .seconds(1)
      machine = machine + .seconds(1) + step
      return watch.step(machine: machine, steady: steady)
    }
    #expect(second() == nil && second(.seconds(-3_600)) == .seconds(-3_600) && second() == nil)
    for _ in 0..<100 { #expect(second(.milliseconds(500)) == nil) }
    #expect(second(.seconds(7_200)) == .seconds(7_200) && second() == nil)
  }
}
