import Listening
import Logging
import Synchronization
import Testing

/// A stranger cannot fill the disk, and the log says how many lines were left out.
@Suite struct LimitedLogTests {
  private final class Lines: LogHandler, Sendable {
    let kept = Mutex<[Logger.Metadata]>([])
    var metadata: Logger.Metadata {
      get { [:] }
      set {}
    }
    var logLevel: Logger.Level {
      get { .info }
      set {}
    }
    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { nil }
      set {}
    }
    func log(event: LogEvent) { kept.withLock { $0.append(event.metadata ?? [:]) } }
  }

  @Test func aFewLinesAtOnceAndThenOneATime() {
    let lines = Lines()
    let clock = Mutex<UInt64>(1_000)
    let log = LimitedLog(Logger(label: "test") { _ in lines }, clock: { clock.withLock { $0 } })
    func flood() { for _ in 0..<1_000 { log.log(.tlsHandshake, .info, "x", ["reason": "y"]) } }
    flood()
    #expect(lines.kept.withLock(\.count) == 5)
    clock.withLock { $0 += 10_000_000_000 }
    flood()
    #expect(lines.kept.withLock(\.count) == 6)
    #expect(lines.kept.withLock { $0.last?["suppressed"] } == "995")
    // Another kind of line has its own bucket, and lines below the level do not use it.
    for _ in 0..<100 { log.log(.login, .debug, "x") }
    log.log(.login, .info, "x")
    #expect(lines.kept.withLock { $0.last?["suppressed"] } == nil)
    #expect(lines.kept.withLock(\.count) == 7)
  }
}
