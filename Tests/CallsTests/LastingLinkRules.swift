@testable import Calls
@testable import PeopleMachine
import Contract
import MediaModel
import Simulation
import Testing

import CallMessages

/// Links that are made without a call and serve many calls (protocol section 4, "Lasting links").
struct LastingLinkRules {
  let stage = Stage { $0.pushKey = Base64Bytes([4, 2]) }
  let alice: Client
  let bob: Client
  let link = LinkID(unchecked: "YWxpY2UncyBsaW5rICMxIQ")
  let day = 86_400

  init() {
    alice = stage.connect("alice")
    bob = stage.connect("bob")
  }

  private func id(_ number: Int) -> LinkID {
    LinkID(unchecked: String(repeating: "A", count: 18) + String(1_000 + number).suffix(3) + "Q")
  }

  @discardableResult
  private func make(_ link: LinkID? = nil, by client: Client? = nil, days: Int = 7) throws -> LastingLink {
    try (client ?? alice).get(.people(.makeLink(MakeLastingLink(link: link ?? self.link, expiresIn: days * day))))
  }

  private func refusal(_ link: LinkID? = nil, seconds: Int = 3_600, by client: Client? = nil) -> RequestError? {
    (client ?? alice).error(.people(.makeLink(MakeLastingLink(link: link ?? self.link, expiresIn: seconds))))
  }

  private func list(_ client: Client) throws -> LastingLinkList { try client.get(.people(.listLinks)) }

  private func open(_ client: Client, _ link: LinkID? = nil) throws -> OpenedLink {
    try client.get(.people(.openLink(OpenLastingLink(link: link ?? self.link))))
  }

  private func openRefusal(_ client: Client, _ link: LinkID? = nil) -> RequestError? {
    client.error(.people(.openLink(OpenLastingLink(link: link ?? self.link))))
  }

  private func delete(_ client: Client, _ link: LinkID? = nil) -> RequestError? {
    client.error(.people(.deleteLink(DeleteLastingLink(link: link ?? self.link))))
  }

  /// A call of the link, with its token.
  private func start(by client: Client? = nil, _ link: LinkID? = nil) throws -> (call: CallID, token: String) {
    let client = client ?? alice
    let call = try client.call([])
    let made: CallLink = try client.get(.call(call, .link(MakeLink(lasting: link ?? self.link))))
    return (call, made.link)
  }

  private func join(_ client: Client, _ opened: OpenedLink) -> RequestError.Code? {
    guard let call = opened.call else { return .callNotFound }
    return client.code(.call(call, .join(client.join(link: opened.token))))
  }

  private func changes(_ client: Client) -> [LinkID] {
    client.events().compactMap { if case .linkChanged(let change) = $0 { change.link } else { nil } }
  }

  private func notices(_ client: Client) -> [LinkID] {
    client.events().compactMap { if case .linkWaiting(let notice) = $0 { notice.link } else { nil } }
  }

  private var pushes: [PushNotice] {
    stage.takeOthers().compactMap { if case .push(_, _, let notice, _) = $0 { notice } else { nil } }
  }

  // MARK: making

  @Test func aLinkIsMadeWithoutACallAndListed() throws {
    let made = try make()
    #expect(made == LastingLink(link: link, device: alice.device.device, expiresAt: stage.now + .seconds(7 * day)))
    #expect(try list(alice) == LastingLinkList(links: [made], days: 30))
    #expect(try list(bob).links.isEmpty, "only the user's own")
    let laptop = stage.connect("alice", "laptop")
    #expect(try list(laptop).links == [made])
  }

  @Test func aRepeatGetsItsFirstReplyAndTheIDOfAnotherLinkIsRefused() throws {
    let made = try make()
    stage.advance(.seconds(60))
    #expect(try make(days: 1) == made)
    #expect(refusal(by: bob)?.code == .requestInvalid)
    #expect(refusal(by: stage.connect("alice", "laptop"))?.field == "link")
    #expect(try list(alice).links.count == 1)
  }

  @Test func aLinkLastsAnHourToTheOperatorsDays() throws {
    #expect(refusal(seconds: 3_599)?.field == "expiresIn")
    #expect(refusal(seconds: 30 * day + 1)?.field == "expiresIn")
    #expect(refusal(seconds: .max)?.field == "expiresIn")
    #expect(refusal(seconds: 3_600) == nil)
    #expect(refusal(id(1), seconds: 30 * day) == nil)
  }

  @Test func aUserHasSoManyLinksAndTheOthersTheirs() throws {
    for number in 0..<20 { try make(id(number)) }
    #expect(refusal(id(20))?.code == .requestTooLarge)
    #expect(refusal(id(20), by: bob) == nil)
    #expect(delete(alice, id(3)) == nil)
    #expect(refusal(id(21)) == nil)
    #expect(try list(alice).links.map(\.link) == (0..<20).filter { $0 != 3 }.map(id) + [id(21)])
  }

  @Test func onlyADeviceWithKeysOfAUserWhoMayStartMakesOne() {
    let stage = Stage { $0.neverStarts = ["patient"] }
    let keyless = stage.connect("carol", keys: false)
    #expect(refusal(by: keyless)?.code == .keysNotAllowed)
    let patient = stage.connect("dave", roles: ["patient"])
    #expect(refusal(by: patient)?.code == .roleNotAllowed)
  }

  @Test func withoutDaysThereAreNoneAndThoseThatExistWait() throws {
    try make()
    stage.node.configure { $0.links.days = 0 }
    #expect(refusal(id(1))?.code == .authForbidden)
    #expect(delete(alice)?.code == .authForbidden)
    #expect(openRefusal(bob)?.code == .authForbidden && openRefusal(bob, id(9))?.code == .authForbidden)
    let call = try alice.call([])
    #expect(alice.code(.call(call, .link(MakeLink(lasting: link)))) == .callLinkInvalid)
    guard case .lastingLink(nil) = stage.node.answer(.people(.lastingLink(link)), now: stage.now) else {
      Issue.record("guests learn nothing of it")
      return
    }
    stage.node.configure { $0.links.days = 2 }
    #expect(try list(alice).links.count == 1 && list(alice).days == 2)
    #expect(try open(bob).expiresAt == stage.now + .seconds(7 * day), "a shorter life holds for new links")
  }

  // MARK: its calls

  @Test func oneLinkServesManyCallsOneAfterTheOther() throws {
    try make()
    #expect(try open(bob).call == nil)
    for _ in 0..<3 {
      let (call, token) = try start()
      let opened = try open(bob)
      #expect(opened == OpenedLink(name: "alice", expiresAt: stage.now + .seconds(7 * day), call: call, token: token))
      #expect(try list(alice).links.first?.call == call)
      #expect(join(bob, opened) == nil)
      #expect(alice.code(.call(call, .end)) == nil)
      #expect(try open(bob).call == nil && list(alice).links.first?.call == nil)
    }
  }

  @Test func theCallsLinkIsValidAsLongAsTheLastingOne() throws {
    try make()
    stage.advance(.seconds(3_600))
    let call = try alice.call([])
    let made: CallLink = try alice.get(.call(call, .link(MakeLink(expiresIn: 60, lasting: link))))
    #expect(made.expiresAt == Stage.start + .seconds(7 * day))
  }

  @Test func onlyTheDeviceThatMadeItOpensItAndOnlyForItsOwnCall() throws {
    try make()
    let bobs = try bob.call(["alice"])
    #expect(bob.error(.call(bobs, .link(MakeLink(lasting: link))))?.code == .callLinkInvalid)
    try alice.accept(bobs)
    #expect(
      alice.error(.call(bobs, .link(MakeLink(lasting: link))))?.code == .callNotInitiator,
      "its holders count only a call that this device started")
    let laptop = stage.connect("alice", "laptop")
    let other = try laptop.call([])
    let refused = laptop.error(.call(other, .link(MakeLink(lasting: link))))
    #expect(refused?.code == .callLinkInvalid && refused?.field == "lasting")
    let own = try alice.call([])
    #expect(alice.error(.call(own, .link(MakeLink(lasting: id(1)))))?.field == "lasting")
    #expect(try open(bob).call == nil)
    #expect(alice.error(.call(own, .link(MakeLink(lasting: link)))) == nil)
    #expect(try open(bob).call == own)
  }

  @Test func oneCallOfALinkRunsAtATime() throws {
    try make()
    let (first, _) = try start()
    let second = try alice.call([])
    let refused = alice.error(.call(second, .link(MakeLink(lasting: link))))
    #expect(refused?.code == .callExists && refused?.call == first)
    #expect(try open(bob).call == first)
  }

  @Test func aRevokeClosesItAndTheNextCallOpensItAgain() throws {
    try make()
    let (call, _) = try start()
    let opened = try open(bob)
    #expect(alice.code(.call(call, .link(MakeLink(revoke: true)))) == nil)
    #expect(try open(bob).call == nil)
    #expect(join(bob, opened) == .callLinkInvalid)
    #expect(alice.code(.call(call, .end)) == nil)
    _ = try start()
    #expect(join(bob, try open(bob)) == nil)
  }

  @Test func aGuestWhoIsRemovedDoesNotComeBackToThisCall() throws {
    try make()
    let (call, token) = try start()
    let ana = stage.connect("guest~ana", "guest", guestOf: call)
    #expect(ana.code(.call(call, .join(ana.join(link: token)))) == nil)
    #expect(alice.code(.call(call, .removeGuest(RemoveGuest(guest: ana.user)))) == nil)
    guard case .lastingLink(let opened?) = stage.node.answer(.people(.lastingLink(link)), now: stage.now) else {
      Issue.record("the link is there")
      return
    }
    #expect(opened.call == nil && opened.token == nil)
  }

  @Test func aDeletedLinkPutsNobodyOutAndLetsNobodyElseIn() throws {
    try make()
    let (call, _) = try start()
    let opened = try open(bob)
    #expect(join(bob, opened) == nil)
    let carol = stage.connect("carol")
    let hers = try open(carol)
    #expect(delete(alice) == nil)
    #expect(try bob.phase(of: "bob", in: call) == .joined)
    #expect(join(carol, hers) == .callLinkInvalid, "although she has opened it before")
    #expect(openRefusal(carol)?.code == .callLinkInvalid)
    #expect(try list(alice).links.isEmpty)
  }

  // MARK: strangers

  @Test func everyWrongLinkIsRefusedInTheSameWay() throws {
    try make()
    let unknown = openRefusal(bob, id(1))
    #expect(unknown?.code == .callLinkInvalid)
    #expect(delete(bob) == unknown, "another user's")
    #expect(delete(alice, id(1)) == unknown)
    try make(id(2), days: 1)
    stage.advance(.seconds(day))
    #expect(openRefusal(bob, id(2)) == unknown, "expired")
    #expect(delete(alice) == nil)
    #expect(openRefusal(bob) == unknown, "deleted")
    let call = try alice.call([])
    let ana = stage.connect("guest~ana", "guest", guestOf: call)
    #expect(openRefusal(ana)?.code == .authForbidden)
    #expect(openRefusal(stage.connectService())?.code == .authForbidden)
  }

  // MARK: waiting

  @Test func aStartAndTheEndOfTheLinkAreToldToThoseWhoWait() throws {
    try make()
    _ = try open(bob)
    #expect(changes(bob).isEmpty)
    let (call, _) = try start()
    #expect(changes(bob) == [link])
    #expect(alice.code(.call(call, .end)) == nil)
    #expect(changes(bob).isEmpty, "nobody waits any more who was told")
    _ = try open(bob)
    #expect(delete(alice) == nil)
    #expect(changes(bob) == [link])
    #expect(openRefusal(bob)?.code == .callLinkInvalid)
  }

  @Test func aLinkThatExpiresEndsTheWaitingAndNotItsCall() throws {
    try make(days: 1)
    try make(id(1), days: 1)
    _ = try open(bob)
    let call = try alice.call([]) { $0.maxHours = 48 }
    #expect(alice.code(.call(call, .link(MakeLink(lasting: id(1))))) == nil)
    #expect(join(stage.connect("carol"), try open(bob, id(1))) == nil)
    _ = changes(bob)
    stage.advance(.seconds(day) - .milliseconds(1))
    #expect(changes(bob).isEmpty)
    stage.advance(.milliseconds(1))
    #expect(changes(bob) == [link])
    #expect(stage.node.runs(call), "two are in it")
    #expect(openRefusal(bob, id(1))?.code == .callLinkInvalid)
    #expect(stage.stored.links.isEmpty)
  }

  @Test func theOwnersDevicesHearOfThoseWhoWaitOnceAMinute() throws {
    try make()
    let laptop = stage.connect("alice", "laptop")
    _ = try open(alice)
    #expect(notices(alice).isEmpty && notices(stage.connect("alice", "desk")).isEmpty, "not of themselves")
    _ = try open(bob)
    #expect(notices(alice) == [link] && notices(laptop) == [link] && notices(bob).isEmpty)
    _ = try open(stage.connect("carol"))
    stage.handle(.waitsAtLink(link))
    #expect(notices(alice).isEmpty)
    stage.advance(.seconds(60))
    stage.handle(.waitsAtLink(link))
    #expect(notices(alice) == [link])
    let late = stage.connect("alice", "tablet")
    #expect(notices(late) == [link], "a device that comes while somebody waits")
    _ = try start()
    stage.advance(.seconds(60))
    stage.handle(.waitsAtLink(link))
    stage.handle(.waitsAtLink(id(9)))
    #expect(notices(alice).isEmpty, "its call runs")
  }

  @Test func aClosedBrowserIsToldByAPushAtMostEachTenMinutes() throws {
    try make()
    let subscription = PushSubscription(
      endpoint: "https://push.example/alice", p256dh: Base64Bytes([4] + [UInt8](repeating: 1, count: 64)),
      auth: Base64Bytes([UInt8](repeating: 2, count: 16)))
    #expect(alice.code(.people(.subscribePush(SubscribePush(subscription: subscription)))) == nil)
    alice.disconnect()
    stage.handle(.waitsAtLink(link))
    #expect(pushes == [PushNotice(waitingAt: link)])
    stage.advance(.seconds(599))
    stage.handle(.waitsAtLink(link))
    #expect(pushes.isEmpty)
    stage.advance(.seconds(1))
    stage.handle(.waitsAtLink(link))
    #expect(pushes == [PushNotice(waitingAt: link)])
  }

  @Test func waitingIsBounded() throws {
    for number in 0..<9 { try make(id(number)) }
    for number in 0..<8 { _ = try open(bob, id(number)) }
    #expect(openRefusal(bob, id(8))?.code == .serverBusy)
    #expect(openRefusal(bob, id(0)) == nil, "it waits there already")
    for number in 1..<64 { _ = try open(stage.connect("user\(number)"), id(0)) }
    let last = stage.connect("last")
    #expect(openRefusal(last, id(0))?.code == .serverBusy)
    bob.disconnect()
    #expect(openRefusal(last, id(0)) == nil)
    #expect(openRefusal(stage.connect("bob"), id(8)) == nil)
  }

  // MARK: its end

  @Test func aLinkGoesWithItsDevice() throws {
    let laptop = stage.connect("alice", "laptop")
    try make()
    try make(id(1), by: laptop)
    _ = (try open(bob), try open(bob, id(1)))
    #expect(alice.code(.people(.removeDevice(RemoveDevice(device: laptop.device.device)))) == nil)
    #expect(changes(bob) == [id(1)])
    #expect(try list(alice).links.map(\.link) == [link])
    #expect(stage.stored.links.map(\.id) == [link])
    let other = [
      DeviceKey(use: .wrap, alg: "x", publicKey: Base64Bytes([1])),
      DeviceKey(use: .sign, alg: "y", publicKey: Base64Bytes([2])),
    ]
    #expect(alice.code(.people(.registerDevice(RegisterDevice(name: nil, keys: alice.keys)))) == nil)
    #expect(try list(alice).links.count == 1, "the same keys")
    #expect(alice.code(.people(.registerDevice(RegisterDevice(name: nil, keys: other)))) == nil)
    #expect(try list(alice).links.isEmpty && changes(bob) == [link])
  }

  @Test func aForgottenUsersLinksAreDeleted() throws {
    try make()
    _ = try open(bob)
    stage.handle(.forget(alice.user))
    #expect(changes(bob) == [link])
    #expect(openRefusal(bob)?.code == .callLinkInvalid)
    #expect(stage.stored.links.isEmpty)
  }

  @Test func anOperatorSeesAndEndsAUsersLinksWithoutTheirIds() throws {
    try make()
    try make(id(1))
    try make(id(2), by: bob)
    let (call, _) = try start()
    _ = try open(bob, id(1))
    func listed() -> [LinkSummary] {
      guard case .linkSummaries(let links) = stage.node.answer(.people(.lastingLinksOf(alice.user)), now: stage.now)
      else { return [] }
      return links
    }
    #expect(listed().map(\.call) == [call, nil])
    #expect(listed().map(\.link) == [String(link.text.prefix(8)), String(id(1).text.prefix(8))])
    stage.handle(.endLinks(of: bob.user, named: link.shortName))
    #expect(listed().count == 2, "a link of somebody else")
    stage.handle(.endLinks(of: alice.user, named: id(1).shortName))
    #expect(listed().map(\.link) == [link.shortName] && changes(bob) == [id(1)])
    stage.handle(.endLinks(of: alice.user, named: nil))
    #expect(try listed().isEmpty && list(alice).links.isEmpty && list(bob).links.count == 1)
    #expect(stage.node.runs(call) && openRefusal(bob)?.code == .callLinkInvalid)
    stage.restart(after: .seconds(1))
    #expect(try list(stage.connect("alice")).links.isEmpty)
  }

  @Test func aRestartKeepsLinksAndTheirCalls() throws {
    try make()
    try make(id(1))
    let (call, token) = try start()
    _ = try open(bob, id(1))
    stage.restart(after: .seconds(10))
    let (again, carol) = (stage.connect("alice"), stage.connect("carol"))
    #expect(try list(again).links.map(\.link) == [link, id(1)])
    let opened = try open(carol)
    #expect(opened.call == call && opened.token == token)
    #expect(join(carol, opened) == nil)
    #expect(notices(again).isEmpty, "nobody waits after a restart")
    stage.restart(after: .seconds(10))
    stage.advance(.seconds(400))
    #expect(try open(stage.connect("dave")).call == nil, "its call ended, as nobody came back")
  }

  @Test func aClockThatWasSetBackShortensNoLinkAndLengthensNone() throws {
    try make(days: 2)
    stage.restart(after: .seconds(-10 * day))
    #expect(try open(stage.connect("bob")).expiresAt == stage.now + .seconds(2 * day))
  }

  @Test func makingAndDeletingLinksFillsNoMemory() {
    var links = LastingLinks()
    for number in 0..<10_000 {
      let link = StoredLastingLink(
        id: LinkID(unchecked: "link\(number)"), device: alice.device, fingerprint: Base64Bytes([]), madeAt: stage.now,
        expiresAt: stage.now + .seconds(day))
      links.add(link)
      _ = links.remove(link.id)
      #expect(links.ending <= 65)
    }
    #expect(links.count == 0 && links.nextEnd.map { $0 > stage.now } ?? true)
  }

  @Test(arguments: [
    "", "YWxpY2UncyBsaW5rICMxI", "YWxpY2UncyBsaW5rICMxIQA", "YWxpY2UncyBsaW5rICMxIR", "YWxpY2UncyBsaW5rICMx+Q",
    "YWxpY2UncyBsaW5rICMx=Q", "YWxpY2UncyBsaW5rICMxé",
  ])
  func anIDIsTheBase64URLOfSixteenBytes(text: String) { #expect(LinkID(text) == nil) }

  @Test func anIDDoesNotPrint() {
    #expect(LinkID(link.text) == link && !"\(link)".contains("YWx"))
  }
}
