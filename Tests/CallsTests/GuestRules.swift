import Contract
import MediaModel
import Testing

@testable import Calls

/// Guests (protocol section 4, "Guests"): one call, and nothing else.
struct GuestRules {
  let stage = Stage { $0.maximumGuests = 2 }
  let alice: Client
  let bob: Client
  let call: CallID
  let link: String

  init() throws {
    alice = stage.connect("alice")
    bob = stage.connect("bob")
    call = try alice.call(["bob"]) { $0.ringSeconds = 120 }
    link = try alice.get(.link(call, MakeLink()), as: CallLink.self).link
  }

  private func guest(_ name: String = "ana", in call: CallID? = nil) -> Client {
    stage.connect("guest~\(name)", "guest", guestOf: call ?? self.call)
  }

  private func join(_ guest: Client) -> RequestError.Code? { guest.code(.join(call, guest.join(link: link))) }

  @Test func aGuestComesInByTheLinkWithKeysOfItsOwn() throws {
    let ana = guest()
    #expect(join(ana) == nil)
    let member = try #require(try alice.state(call).members.first { $0.user == ana.user })
    #expect(member.link == true && member.state == .joined && member.name == "guest~ana")
    stage.advance(.seconds(1))
    #expect(alice.events().rotations.last?.added?.map(\.user) == [ana.user])
    let seen: Devices = try alice.get(.listDevices(ListDevices(users: [ana.user])))
    #expect(seen.devices.map(\.fingerprint).count == 1)
    #expect(ana.code(.leave(call)) == nil)
    #expect(ana.code(.rejoin(call, ana.join())) == nil, "as everybody who was in it")
  }

  @Test func withoutTheLinkAGuestIsAStranger() throws {
    let ana = guest()
    #expect(ana.code(.join(call, ana.join())) == .callNotFound)
    #expect(ana.code(.join(call, ana.join(link: "nonsense"))) == .callLinkInvalid)
    #expect(ana.code(.state(call)) == .callNotFound)
    let list: Devices = try ana.get(.listDevices(ListDevices(users: [alice.user, bob.user, ana.user])))
    #expect(list.devices.map(\.user) == [ana.user])
    #expect(ana.subscribe(.call(call)) != nil)
  }

  /// Each request, as a guest in the call makes it: about its own call, and about another one that it knows all of.
  @Test func everyRequestThatIsNotOfItsCallIsRefused() throws {
    let other = try bob.call(["alice"]) { $0.ringSeconds = 120 }
    let otherLink = try bob.get(.link(other, MakeLink()), as: CallLink.self).link
    let ana = guest()
    #expect(join(ana) == nil)
    var seen: Set<Int> = []
    for (id, token) in [(call, link), (other, otherLink)] {
      for request in requests(of: ana, to: id, link: token) {
        seen.insert(place(of: request))
        let isRefused = ana.error(request) == .notForGuests
        #expect(isRefused == !(mayMake(request) && (id == call || !isAboutACall(request))), "\(place(of: request))")
      }
    }
    #expect(seen == Set(0..<38), "a request is missing here")
    #expect(try bob.state(other).members.count == 2)
  }

  @Test func mediaIsForItsCallAlone() throws {
    let other = try bob.call(["alice"])
    let ana = guest()
    let offer: Result<MediaOffer, RequestError> = .failure(RequestError(.mediaSDPInvalid, ""))
    #expect(stage.node.refusal(ofOfferBy: ana.session, to: other)?.code == .authForbidden)
    #expect(ana.offer(other, offer, []) == .authForbidden)
    #expect(stage.node.refusal(ofOfferBy: ana.session, to: call)?.code == .callNotFound)
    #expect(join(ana) == nil && stage.node.refusal(ofOfferBy: ana.session, to: call) == nil)
  }

  @Test func topicsAreForItsCallAlone() throws {
    let other = try bob.call(["alice"])
    let ana = guest()
    #expect(join(ana) == nil)
    #expect(ana.subscribe(.call(call)) == nil)
    for channel in [Channel.call(other), .serviceCalls, .servicePush, .serviceReports] {
      #expect(ana.subscribe(channel) != nil)
    }
  }

  @Test func guestsCannotBeRung() throws {
    let ana = guest()
    #expect(join(ana) == nil)
    #expect(ana.code(.leave(call)) == nil)
    _ = ana.events()
    let again: InviteResults = try alice.get(.invite(call, Invite(callees: [ana.user])))
    #expect(again.results == [ana.user: .noKeys])
    let started = try bob.started([ana.user.text])
    #expect(started.results == [ana.user: .noKeys])
    #expect(ana.events().rings.isEmpty)
  }

  @Test func aGuestSeesTheDevicesOfItsCallsMembersAlone() throws {
    _ = stage.connect("carol")
    let ana = guest()
    #expect(join(ana) == nil)
    let users = ["alice", "bob", "carol", "guest~ana"].map(UserID.init(unchecked:))
    let list: Devices = try ana.get(.listDevices(ListDevices(users: users)))
    #expect(list.devices.map(\.user.text) == ["alice", "bob", "guest~ana"])
  }

  @Test func aCallHasSoManyGuests() throws {
    #expect(join(guest("a")) == nil)
    let second = guest("b")
    #expect(join(second) == nil)
    #expect(second.code(.leave(call)) == nil)
    #expect(join(guest("c")) == .callFull, "those who left counted")
    #expect(second.code(.join(call, second.join(link: link))) == nil)
    let carol = stage.connect("carol")
    #expect(join(carol) == nil, "others are not bound by it")
  }

  @Test func nothingIsLeftOfGuestsWhenTheCallEnds() throws {
    let ana = guest()
    let ben = guest("ben")
    #expect(join(ana) == nil && join(ben) == nil)
    ben.disconnect()
    #expect(stage.stored.devices.contains { $0.device == ana.device })
    _ = ana.deliveries()
    #expect(alice.code(.end(call)) == nil)
    #expect(ana.events().ended != nil, "told before its connection goes")
    #expect(stage.closed == [ana.session])
    for user in [ana.user, ben.user] {
      #expect(stage.node.people.directory.devices(of: user).isEmpty)
      #expect(stage.node.people.memberships[user] == nil)
    }
    #expect(!stage.stored.devices.contains { $0.device.user.isGuest })
    #expect(alice.code(.join(call, alice.join())) == .callEnded)
    #expect(guest().code(.state(call)) == .callNotFound)
  }

  @Test func aGuestThatNeverCameIsForgottenSoon() throws {
    let ana = guest()
    ana.disconnect()
    #expect(stage.stored.devices.contains { $0.device == ana.device })
    stage.advance(.seconds(240))
    #expect(stage.node.people.directory.devices(of: ana.user).isEmpty)
    #expect(!stage.stored.devices.contains { $0.device == ana.device })
  }

  @Test func alsoAfterARestart() throws {
    let ana = guest()
    let ben = guest("ben")
    #expect(join(ben) == nil)
    stage.restart()
    stage.advance(.milliseconds(14_000))
    #expect(!stage.node.people.directory.devices(of: ben.user).isEmpty, "its call goes on")
    stage.advance(.seconds(240))
    #expect(stage.node.people.directory.devices(of: ana.user).isEmpty)
    #expect(!stage.stored.devices.contains { $0.device == ana.device })
  }

  @Test func theAppsBackEndIsNotAskedAboutGuests() throws {
    let stage = Stage { $0.asksBackEnd = true }
    let alice = stage.connect("alice")
    let call = try alice.call([])
    let link: CallLink = try alice.get(.link(call, MakeLink()))
    let ana = stage.connect("guest~ana", "guest", guestOf: call)
    #expect(ana.code(.join(call, ana.join(link: link.link))) == nil)
    let list: Devices = try ana.get(.listDevices(ListDevices(users: [alice.user])))
    #expect(list.devices.map(\.user) == [alice.user])
    let theirs: Devices = try alice.get(.listDevices(ListDevices(users: [ana.user])))
    #expect(theirs.devices.map(\.user) == [ana.user])
    let stranger = stage.connect("carol")
    _ = stage.takeOthers()
    _ = stranger.ask(.listDevices(ListDevices(users: [ana.user, alice.user])))
    let asked: [Question] = stage.others.compactMap { if case .ask(_, let question) = $0 { question } else { nil } }
    #expect(asked == [.authorize(.devices, from: stranger.user, to: [alice.user])])
  }

  @Test func anybodyMayComeAsAGuestWhileALinkIsGood() throws {
    #expect(stage.node.admitsGuest(by: link, to: call, now: stage.now))
    #expect(!stage.node.admitsGuest(by: link, to: .random, now: stage.now))
    #expect(!stage.node.admitsGuest(by: "nonsense", to: call, now: stage.now))
    #expect(!stage.node.admitsGuest(by: link, to: call, now: stage.now + .seconds(3_600)))
    #expect(alice.code(.link(call, MakeLink(revoke: true))) == nil)
    #expect(!stage.node.admitsGuest(by: link, to: call, now: stage.now))
    #expect(stage.node.runs(call))
    #expect(alice.code(.end(call)) == nil)
    #expect(!stage.node.runs(call))
  }
}

// MARK: all requests

private func requests(of guest: Client, to call: CallID, link: String) -> [Request] {
  let statement = DeviceStatement(
    device: guest.device.device, fingerprint: Base64Bytes([]), at: guest.stage.now, sigAlg: "ES256",
    signature: Base64Bytes([1]))
  return [
    .registerDevice(RegisterDevice(name: nil, keys: guest.keys)), .listDevices(ListDevices(users: [])),
    .removeDevice(RemoveDevice(device: guest.device.device)), .vouchForDevice(statement), .revokeDevice(statement),
    .pairDevice(PairDevice(to: guest.device.device, body: Base64Bytes([1]))), guest.start([]),
    .accept(call, guest.join()), .decline(call, Decline()), .invite(call, Invite(callees: [])), .cancel(call, Cancel()),
    .join(call, guest.join(link: link)), .rejoin(call, guest.join()), .transfer(call, guest.join()), .leave(call),
    .end(call), .link(call, MakeLink()), .hold(call, Hold(held: true)), .state(call), .listCalls,
    .media(call, MediaRequest(sdp: "", tracks: [])),
    .track(call, TrackID(participant: 1, index: 1), ChangeTrack(muted: true)),
    .receive(call, Receive()), .message(call, SendMessage(body: Base64Bytes([1]))), .stats(call, QualityNumbers()),
    .report(call, ReportAbuse(text: "x")), .keys(call, HandOutKeys(epoch: 1, envelopes: [])),
    .requestKey(call, RequestKey()), .listKeys(call, ListKeys()),
    .waitForKey(call, WaitForKey(epoch: 1, reason: .trust)),
    .confirmKey(call, ConfirmKey(epoch: 1, tag: Base64Bytes([]))),
    .listConfirmations(call, ListConfirmations(epoch: 1, bucket: 0)), .setPresence(SetPresence(state: .available)),
    .watchPresence(WatchPresence(users: [])), .listHistory(ListHistory()), .deleteHistory(DeleteHistory(all: true)),
    .historyTotals(HistoryTotals(with: UserID(unchecked: "alice"))), .subscribePush(SubscribePush(subscription: nil)),
  ]
}

private func mayMake(_ request: Request) -> Bool {
  [0, 1, 11, 12, 14, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31].contains(place(of: request))
}

private func isAboutACall(_ request: Request) -> Bool { (7...31).contains(place(of: request)) }

/// Without a `default`: a new request has to be decided here, too.
private func place(of request: Request) -> Int {
  switch request {
  case .registerDevice: 0
  case .listDevices: 1
  case .removeDevice: 2
  case .vouchForDevice: 3
  case .revokeDevice: 4
  case .pairDevice: 5
  case .start: 6
  case .accept: 7
  case .decline: 8
  case .invite: 9
  case .cancel: 10
  case .join: 11
  case .rejoin: 12
  case .transfer: 13
  case .leave: 14
  case .end: 15
  case .link: 16
  case .hold: 17
  case .state: 18
  case .listCalls: 19
  case .media: 20
  case .track: 21
  case .receive: 22
  case .message: 23
  case .stats: 24
  case .report: 25
  case .keys: 26
  case .requestKey: 27
  case .listKeys: 28
  case .waitForKey: 29
  case .confirmKey: 30
  case .listConfirmations: 31
  case .setPresence: 32
  case .watchPresence: 33
  case .listHistory: 34
  case .deleteHistory: 35
  case .historyTotals: 36
  case .subscribePush: 37
  }
}
