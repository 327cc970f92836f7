import NIOCore
import STOMP
import Testing

@testable import STOMPFront

/// Which destinations a client may name (protocol section 3); stomp.md 84.
@Suite struct DestinationTests {
  private let rules = DestinationRules(prefixes: ["/topic/", "/queue/work", "/exchange/chat/"], body: 100)

  private func send(_ destination: String, service: Bool = false, bytes: Int = 1) -> Bool {
    admission(.send, destination, service: service, bytes: bytes) == .allowed
  }

  private func subscribe(_ destination: String, service: Bool = false) -> Session.Admission {
    admission(.subscribe, destination, service: service)
  }

  private func admission(
    _ command: FrameCommand, _ destination: String, service: Bool = false, guest: Bool = false, bytes: Int = 0,
    by rules: DestinationRules? = nil
  ) -> Session.Admission {
    let body = ByteBuffer(repeating: 0, count: bytes)
    let frame = Frame(command, ["destination": destination], body: body)
    return (rules ?? self.rules).admission(of: Destination(of: frame), for: frame, isService: service, isGuest: guest)
  }

  @Test(arguments: [
    "/topic/a", "/topic/a/b", "/topic/a.b", "/topic/callsign", "/topic/x/calls", "/queue/work", "/queue/work/1",
    "/exchange/chat/room", "/exchange/news", "/exchange/a.b/c",
  ])
  func anAppsOwnAreOpen(destination: String) {
    #expect(send(destination) && subscribe(destination) == .allowed)
  }

  @Test(arguments: [
    "", "/", "topic/a", "/topic", "/topic/", "/topic//a", "/topic/a/", "/topic/./a", "/topic/../app/x", "/topic/*",
    "/topic/a/#", "/topic/**", "/queue/other", "/queue/", "/exchange/", "/exchange/a/b/c", "/exchange//a",
    "/exchange/a/", "/temp-queue/a", "/amq/queue/a", "/Topic/a", "/user", "/user/queue", "/user/queue/a/b",
    "/topic/" + String(repeating: "x", count: 1_024),
  ])
  func allElseIsRefused(destination: String) {
    #expect(!send(destination) && !send(destination, service: true))
    guard case .refused = subscribe(destination) else { return #expect(Bool(false), "\(destination)") }
  }

  @Test(
    "stomp.md 84: the servers own take no send",
    arguments: [
      "/topic/calls", "/topic/calls/c1", "/topic/calls/c1/x", "/topic/calls.c1", "/topic/service",
      "/topic/service/calls",
      "/topic/service.calls", "/topic/service/x", "/exchange/calls", "/exchange/calls/c1", "/exchange/calls.c1",
      "/exchange/service/calls", "/exchange/service.calls/x", "/user/queue/events", "/user/queue/replies",
      "/user/bob/queue/events", "/user/bob/queue/replies", "/user/queue/x",
    ])
  func theServersOwnTakeNoSend(destination: String) {
    #expect(!send(destination) && !send(destination, service: true))
  }

  @Test func guestsHaveTheirCallAlone() {
    for destination in ["/user/queue/replies", "/user/queue/events"] {
      guard case .allowedOnce = admission(.subscribe, destination, guest: true) else {
        return #expect(Bool(false), "\(destination)")
      }
    }
    #expect(admission(.subscribe, "/topic/calls/c1", guest: true) == .asked)
    #expect(admission(.send, "/app/calls/c1/leave", guest: true) == .allowed, "the calls decide")
    for destination in ["/topic/a", "/queue/work", "/exchange/chat/room", "/user/queue/x", "/topic/service/calls"] {
      for command in [FrameCommand.send, .subscribe] {
        guard case .refused = admission(command, destination, guest: true) else {
          return #expect(Bool(false), "\(destination)")
        }
      }
    }
  }

  @Test func theServersTopicsAreAskedFor() {
    #expect(subscribe("/topic/calls/c1") == .asked)
    for name in ["calls", "push", "reports"] { #expect(subscribe("/topic/service/\(name)") == .asked) }
    for name in ["/topic/calls", "/topic/calls/c1/x", "/topic/service/x", "/topic/calls.c1", "/exchange/calls/c1"] {
      guard case .refused = subscribe(name) else { return #expect(Bool(false), "\(name)") }
    }
  }

  @Test("stomp.md 84: only a service sends to a users queue")
  func onlyAServiceSendsToAUsersQueue() {
    #expect(!send("/user/bob/queue/news") && send("/user/bob/queue/news", service: true))
    #expect(subscribe("/user/queue/news") == .allowed)
    for name in ["/user/b b/queue/x", "/user/bob/queue/", "/user/bob/topic/x", "/user/bob/queue/x/y"] {
      #expect(!send(name, service: true))
    }
    guard case .refused = subscribe("/user/bob/queue/news", service: true) else { return #expect(Bool(false)) }
  }

  @Test func withoutPrefixesNothingIsOpenButRequests() {
    let rules = DestinationRules(prefixes: [], body: 100)
    for destination in ["/topic/a", "/queue/a", "/exchange/a"] {
      #expect(admission(.send, destination, service: true, bytes: 1, by: rules) != .allowed)
    }
    #expect(admission(.send, "/app/x", bytes: 1_000, by: rules) == .allowed)
  }

  @Test func bodiesAreBounded() {
    #expect(send("/topic/a", bytes: 100) && !send("/topic/a", bytes: 101))
    #expect(!send("/user/bob/queue/news", service: true, bytes: 101))
  }

  @Test func exchangesAreTopics() {
    #expect(Destination("/exchange/a/b") == Destination("/topic/a.b"))
    #expect(Destination("/exchange/a") == Destination("/topic/a"))
    #expect(Destination("/topic/a/b") != Destination("/topic/a.b"))
  }
}
