import CallMessages
import Logging
import STOMPFront
import Synchronization
import Testing

@testable import ConclaveServer

/// A running server applies a part of a new configuration, and names the rest.
struct ConfigurationReloadTests {
  private func read(_ text: String) throws -> Configuration { try Configuration(json: Array(text.utf8)) }

  /// The names of the changes that a running server applies, and of the others.
  private func changes(_ old: Configuration, _ new: Configuration) -> [[String]] {
    let (live, waiting) = old.changes(to: new)
    return [live, waiting]
  }

  @Test func changesAreNamedByTheTimeWhenTheyCount() throws {
    let old = try read(#"{"drain":30,"log":"info","listen":{"http":8080},"limits":{"body":1000}}"#)
    let new = try read(
      #"{"log":"debug","listen":{"http":"127.0.0.1:8080","origins":["https://a.example"]},"limits":{"ringing":7},"page":{"videoFirst":true}}"#
    )
    // An explicit default is not a change.
    #expect(
      changes(old, new) == [
        ["limits.body", "limits.ringing", "listen.origins", "log"], ["listen.http", "page.videoFirst"],
      ])
    #expect(changes(new, new) == [[], []])
  }

  @Test func anObjectThatComesOrGoesIsNamedAndItsMembersAreNot() throws {
    let turn = #""turn":{"urls":["turn:t.example"],"secret":"one secret"}"#
    let tls = try read(#"{"tls":{"certificate":"c","key":"k"},\#(turn)}"#)
    #expect(changes(Configuration(), tls) == [["turn"], ["tls"]])
    #expect(changes(tls, Configuration()) == [["turn"], ["tls"]])
    let other = try read(#"{"tls":{"certificate":"d","key":"k"},\#(turn.replacing("one", with: "other"))}"#)
    #expect(changes(tls, other) == [["tls.certificate", "turn.secret"], []])
  }

  @Test func onlyLiveMembersAreTaken() throws {
    var taken = try read(#"{"tls":{"certificate":"c","key":"k"},"media":{"voices":8},"listen":{"stomp":1}}"#)
    let new = try read(
      #"""
      {"tls":{"certificate":"d","key":"e"},"media":{"voices":9},"listen":{"stomp":2,"origins":["*"]},"drain":7,
       "limits":{"body":7},"roles":{"r":{"neverStarts":true}},"log":"error","guests":true,
       "links":{"days":3}}
      """#)
    taken.takeLive(new)
    #expect(
      taken.tls?.certificate == "d" && taken.tls?.key == "e" && taken.media.voices == 8 && taken.listen.stomp == 1)
    #expect(
      taken.listen.origins == ["*"] && taken.drain == 7 && taken.limits.stomp.body == 7 && taken.log == .error)
    #expect(taken.roles["r"]?.neverStarts == true && !taken.guests && taken.links.days == 3)
    // TLS comes and goes with its ports.
    taken.takeLive(Configuration())
    #expect(taken.tls?.certificate == "d")
  }

  @Test func allLoggersFollowTheLevel() {
    let level = SharedLogLevel(.notice)
    let lines = Lines()
    let logger = Logger(label: "test") { _ in SharedLevelHandler(lines, level) }
    var copy = logger
    copy[metadataKey: "a"] = "b"
    logger.info("too much")
    level.set(.info)
    logger.info("one")
    copy.info("two")
    level.set(.error)
    copy.warning("too much")
    #expect(lines.texts == ["one", "two"])
  }

  /// Records the messages.
  private final class Lines: LogHandler, Sendable {
    private let kept = Mutex<[String]>([])
    var texts: [String] { kept.withLock { $0 } }
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
    func log(event: LogEvent) { kept.withLock { $0.append("\(event.message)") } }
  }
}
