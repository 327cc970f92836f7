@testable import PeopleMachine
@testable import Calls
import Contract
import MediaModel
import Testing

import CallMessages

/// Guests (protocol section 4, "Guests"): one call, and nothing else.
struct GuestRules {
  let stage = Stage { $0.limits.guests = 2 }
  let alice: Client
  let bob: Client
  let call: CallID
  let link: String

  init() throws {
    alice = stage.connect("alice")
    bob = stage.connect("bob")
    call = try alice.call(["bob"]) { $0.ringSeconds = 120 }
    link = try alice.get(.call(call, .link(MakeLink())), as: CallLink.self).link
  }

  private func guest(_ name: String = "ana", in call: CallID? = nil) -> Client {
    stage.connect("guest~\(name)", "guest", guestOf: call ?? self.call)
  }

  private func join(_ guest: Client) -> RequestError.Code? { guest.code(.call(call, .join(guest.join(link: link)))) }

  @Test func aGuestComesInByTheLinkWithKeysOfItsOwn() throws {
    let ana = guest()
    #expect(join(ana) == nil)
    let member = try #require(try alice.state(call).members.first { $0.user == ana.user })
    #expect(member.link == true && member.state == .joined && member.name == "guest~ana")
    stage.advance(.seconds(1))
    #expect(alice.events().rotations.last?.added?.map(\.user) == [ana.user])
    let seen: Devices = try alice.get(.people(.listDevices(ListDevices(users: [ana.user]))))
    #expect(seen.devices.map(\.fingerprint).count == 1)
    #expect(ana.code(.call(call, .leave)) == nil)
    #expect(ana.code(.call(call, .rejoin(ana.join()))) == nil, "like everybody who was in it")
  }

  @Test func withoutTheLinkAGuestIsAStranger() throws {
    let ana = guest()
    #expect(ana.code(.call(call, .join(ana.join()))) == .callNotFound)
    #expect(ana.code(.call(call, .join(ana.join(link: "nonsense")))) == .callLinkInvalid)
    #expect(ana.code(.call(call, .state)) == .callNotFound)
    let list: Devices = try ana.get(.people(.listDevices(ListDevices(users: [alice.user, bob.user, ana.user]))))
    #expect(list.devices.map(\.user) == [ana.user])
    #expect(ana.subscribe(.call(call)) != nil)
  }

  /// Each request by a guest in the call: about its own call, and about another call whose values it knows.
  @Test func everyRequestThatIsNotOfItsCallIsRefused() throws {
    _ = stage.connect("dave")
    let other = try bob.call(["dave"]) { $0.ringSeconds = 120 }
    let otherLink = try bob.get(.call(other, .link(MakeLink())), as: CallLink.self).link
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
    #expect(seen == Set(0..<59), "a request is missing here")
    #expect(try bob.state(other).members.count == 2)
  }

  @Test func mediaIsForItsCallAlone() throws {
    _ = stage.connect("dave")
    let other = try bob.call(["dave"])
    let ana = guest()
    let offer: Result<MediaOffer, RequestError> = .failure(RequestError(.mediaSDPInvalid, ""))
    let media = ParticipantRequest.media(MediaRequest(sdp: "", tracks: []))
    func isRead() -> Bool { stage.others.contains { if case .read = $0 { true } else { false } } }
    #expect(ana.code(.inCall(other, media)) == .authForbidden)
    #expect(ana.offer(other, offer, []) == .authForbidden)
    #expect(ana.code(.inCall(call, media)) == .callNotFound)
    #expect(join(ana) == nil && !isRead(), "an SDP is read only for participants")
    _ = ana.ask(.inCall(call, media))
    #expect(isRead())
  }

  @Test func topicsAreForItsCallAlone() throws {
    _ = stage.connect("dave")
    let other = try bob.call(["dave"])
    let ana = guest()
    #expect(join(ana) == nil)
    #expect(ana.subscribe(.call(call)) == nil)
    for channel in [Channel.call(other), .serviceCalls, .servicePush, .serviceReports] {
      #expect(ana.subscribe(channel) != nil)
    }
  }

  @Test func theMediaPlaneKnowsWhoIsAGuest() throws {
    let ana = guest()
    #expect(join(ana) == nil)
    #expect(ana.offer(call, .sending(["0": .microphone]), [.init(mid: "0", source: .microphone)]) == nil)
    #expect(stage.negotiations.last?.isGuest == true)
    #expect(alice.offer(call, .sending(["0": .microphone]), [.init(mid: "0", source: .microphone)]) == nil)
    #expect(stage.negotiations.last?.isGuest == false)
  }

  @Test func guestsCannotBeRung() throws {
    let ana = guest()
    #expect(join(ana) == nil)
    #expect(ana.code(.call(call, .leave)) == nil)
    _ = ana.events()
    let again: InviteResults = try alice.get(.call(call, .invite(Invite(callees: [ana.user]))))
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
    let list: Devices = try ana.get(.people(.listDevices(ListDevices(users: users))))
    #expect(list.devices.map(\.user.text) == ["alice", "bob", "guest~ana"])
  }

  @Test func aCallHasSoManyGuests() throws {
    #expect(join(guest("a")) == nil)
    let second = guest("b")
    #expect(join(second) == nil)
    #expect(second.code(.call(call, .leave)) == nil)
    #expect(join(guest("c")) == .callFull, "including those who left")
    #expect(second.code(.call(call, .join(second.join(link: link)))) == nil)
    let carol = stage.connect("carol")
    #expect(join(carol) == nil, "the limit does not apply to others")
  }

  @Test func nothingIsLeftOfGuestsWhenTheCallEnds() throws {
    let ana = guest()
    let ben = guest("ben")
    #expect(join(ana) == nil && join(ben) == nil)
    ben.disconnect()
    #expect(stage.stored.devices.contains { $0.device == ana.device })
    _ = ana.deliveries()
    #expect(alice.code(.call(call, .end)) == nil)
    #expect(ana.events().ended != nil, "told before its connection goes")
    #expect(stage.closed == [ana.session])
    for user in [ana.user, ben.user] {
      #expect(stage.node.people.directory.devices(of: user).isEmpty)
      #expect(stage.node.people.memberships[user] == nil)
    }
    #expect(!stage.stored.devices.contains { $0.device.user.isGuest })
    #expect(alice.code(.call(call, .join(alice.join()))) == .callEnded)
    #expect(guest().code(.call(call, .state)) == .callNotFound)
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
    #expect(!stage.node.people.directory.devices(of: ben.user).isEmpty, "its call continues")
    stage.advance(.seconds(240))
    #expect(stage.node.people.directory.devices(of: ana.user).isEmpty)
    #expect(!stage.stored.devices.contains { $0.device == ana.device })
  }

  @Test func theAppsBackEndIsNotAskedAboutGuests() throws {
    let stage = Stage { $0.asksBackEnd = true }
    let alice = stage.connect("alice")
    let call = try alice.call([])
    let link: CallLink = try alice.get(.call(call, .link(MakeLink())))
    let ana = stage.connect("guest~ana", "guest", guestOf: call)
    #expect(ana.code(.call(call, .join(ana.join(link: link.link)))) == nil)
    let list: Devices = try ana.get(.people(.listDevices(ListDevices(users: [alice.user]))))
    #expect(list.devices.map(\.user) == [alice.user])
    let theirs: Devices = try alice.get(.people(.listDevices(ListDevices(users: [ana.user]))))
    #expect(theirs.devices.map(\.user) == [ana.user])
    let stranger = stage.connect("carol")
    _ = stage.takeOthers()
    _ = stranger.ask(.people(.listDevices(ListDevices(users: [ana.user, alice.user]))))
    let asked: [Question] = stage.others.compactMap { if case .ask(_, let question) = $0 { question } else { nil } }
    #expect(asked == [.authorize(.devices, from: stranger.user, to: [alice.user])])
  }

  // MARK: removing

  private func remove(_ user: UserID, by client: Client) -> RequestError.Code? {
    client.code(.call(call, .removeGuest(RemoveGuest(guest: user))))
  }

  @Test func anyMemberMayRemoveAGuestWhoIsToldAndOfWhomNothingIsKept() throws {
    try bob.accept(call)
    let ana = guest()
    #expect(join(ana) == nil)
    _ = (alice.events(), ana.deliveries())
    #expect(remove(ana.user, by: bob) == nil, "bob did not start the call, nor make the link")
    #expect(ana.events().causes == [.removed], "told before its connection goes")
    #expect(alice.events().causes == [.removed])
    #expect(stage.closed == [ana.session])
    #expect(try !alice.state(call).members.contains { $0.user == ana.user })
    #expect(stage.node.people.directory.devices(of: ana.user).isEmpty)
    #expect(stage.node.people.memberships[ana.user] == nil)
    #expect(!stage.stored.devices.contains { $0.device.user == ana.user })
    #expect(remove(ana.user, by: bob) == .userNotFound)
  }

  @Test func theKeysRotateWithoutTheRemovedGuest() throws {
    let ana = guest()
    #expect(join(ana) == nil)
    stage.advance(.milliseconds(100))
    _ = try alice.handOut(call, 2, to: [ana])
    stage.advance(.milliseconds(100))
    _ = (alice.events(), ana.events())
    #expect(remove(ana.user, by: alice) == nil)
    stage.advance(.milliseconds(100))
    let rotation = try #require(alice.events().rotations.first)
    #expect(rotation.epoch == 3 && rotation.mode == .fresh && rotation.removed == [2])
    #expect(ana.events().rotations.isEmpty)
  }

  @Test func aRemovedGuestDoesNotComeBackByALinkOfBefore() throws {
    let ana = guest()
    let ben = guest("ben")
    #expect(join(ana) == nil && join(ben) == nil)
    #expect(remove(ana.user, by: alice) == nil)
    #expect(!stage.node.admitsGuest(by: link, to: call, now: stage.now), "no new guest's token by it")
    #expect(join(guest("zoe")) == .callLinkInvalid)
    let again = guest()
    #expect(join(again) == .callLinkInvalid)
    #expect(again.code(.call(call, .rejoin(again.join()))) == .callNotFound)
    #expect(again.code(.call(call, .join(again.join()))) == .callNotFound)
    // The others stay, and may come back.
    #expect(ben.code(.call(call, .leave)) == nil)
    #expect(ben.code(.call(call, .rejoin(ben.join()))) == nil)
    let fresh: CallLink = try alice.get(.call(call, .link(MakeLink())))
    #expect(again.code(.call(call, .join(again.join(link: fresh.link)))) == nil, "somebody gave it a new link")
  }

  @Test func membersAreNeverRemoved() throws {
    try bob.accept(call)
    let carol = stage.connect("carol")
    #expect(join(carol) == nil, "by a link, and not as a guest")
    for user in [alice.user, bob.user, carol.user] {
      for client in [alice, bob, carol] { #expect(remove(user, by: client) == .authForbidden) }
    }
    #expect(try alice.state(call).members.allSatisfy { $0.state == .joined })
    #expect(stage.node.admitsGuest(by: link, to: call, now: stage.now), "a refused request voids no link")
  }

  @Test func guestsRemoveNobody() throws {
    let ana = guest()
    let ben = guest("ben")
    #expect(join(ana) == nil && join(ben) == nil)
    for user in [alice.user, ben.user, ana.user] { #expect(remove(user, by: ana) == .authForbidden) }
    #expect(try alice.state(call).members.count { $0.state == .joined } == 3)
  }

  @Test func onlyWhoHasJoinedRemovesAndOnlyGuestsOfItsCall() throws {
    let ana = guest()
    #expect(join(ana) == nil)
    #expect(remove(ana.user, by: bob) == .callNotJoined, "bob rings")
    #expect(remove(ana.user, by: stage.connect("stranger")) == .callNotFound)
    #expect(remove(UserID(unchecked: "guest~nobody"), by: alice) == .userNotFound)
    _ = stage.connect("dave")
    let other = try bob.call(["dave"]) { $0.ringSeconds = 120 }
    let theirs = try bob.get(.call(other, .link(MakeLink())), as: CallLink.self).link
    let ben = guest("ben", in: other)
    #expect(ben.code(.call(other, .join(ben.join(link: theirs)))) == nil)
    #expect(remove(ben.user, by: alice) == .userNotFound, "of another call")
    #expect(try bob.state(other).members.contains { $0.user == ben.user })
  }

  @Test func aGuestThatIsAwayIsRemovedToo() throws {
    let ana = guest()
    let ben = guest("ben")
    #expect(join(ana) == nil && join(ben) == nil)
    ana.disconnect()
    stage.advance(.seconds(20))
    #expect(ben.code(.call(call, .leave)) == nil)
    for user in [ana.user, ben.user] { #expect(remove(user, by: alice) == nil) }
    #expect(try alice.state(call).members.map(\.user) == [alice.user, bob.user])
  }

  @Test func aRemovedGuestStaysRemovedAfterARestart() throws {
    let ana = guest()
    #expect(join(ana) == nil)
    #expect(remove(ana.user, by: alice) == nil)
    stage.restart()
    #expect(stage.node.runs(call))
    #expect(!stage.node.admitsGuest(by: link, to: call, now: stage.now))
    let again = guest()
    #expect(again.code(.call(call, .rejoin(again.join()))) == .callNotFound)
    #expect(join(again) == .callLinkInvalid)
  }

  @Test func aMemberLeftAloneByARemovalWaitsAsWithoutALink() throws {
    #expect(alice.code(.call(call, .cancel(Cancel()))) == nil)
    let ana = guest()
    #expect(join(ana) == nil)
    #expect(remove(ana.user, by: alice) == nil)
    stage.advance(.milliseconds(119_999))
    #expect(stage.node.runs(call))
    stage.advance(.milliseconds(1))
    #expect(!stage.node.runs(call))
  }

  @Test func anybodyMayComeAsAGuestWhileALinkIsGood() throws {
    #expect(stage.node.admitsGuest(by: link, to: call, now: stage.now))
    #expect(!stage.node.admitsGuest(by: link, to: .random, now: stage.now))
    #expect(!stage.node.admitsGuest(by: "nonsense", to: call, now: stage.now))
    #expect(!stage.node.admitsGuest(by: link, to: call, now: stage.now + .seconds(3_600)))
    #expect(alice.code(.call(call, .link(MakeLink(revoke: true)))) == nil)
    #expect(!stage.node.admitsGuest(by: link, to: call, now: stage.now))
    #expect(stage.node.runs(call))
    #expect(alice.code(.call(call, .end)) == nil)
    #expect(!stage.node.runs(call))
  }
}

// MARK: all requests

private func requests(of guest: Client, to call: CallID, link: String) -> [Request] {
  let statement = DeviceStatement(
    device: guest.device.device, fingerprint: Base64Bytes([]), at: guest.stage.now, sigAlg: "ES256",
    signature: Base64Bytes([1]))
  let word = Admission(user: guest.user, fingerprint: Base64Bytes([]), signature: Base64Bytes([]))
  let lasting = LinkID(unchecked: String(repeating: "A", count: 22))
  return [
    .people(.registerDevice(RegisterDevice(name: nil, keys: guest.keys))),
    .people(.listDevices(ListDevices(users: []))),
    .people(.removeDevice(RemoveDevice(device: guest.device.device))), .people(.vouchForDevice(statement)),
    .people(.revokeDevice(statement)),
    .people(.pairDevice(PairDevice(to: guest.device.device, body: Base64Bytes([1])))), guest.start([]),
    .call(call, .accept(guest.join())), .call(call, .decline(Decline())), .call(call, .invite(Invite(callees: []))),
    .call(call, .cancel(Cancel())),
    .call(call, .join(guest.join(link: link))), .call(call, .rejoin(guest.join())),
    .call(call, .transfer(guest.join())), .call(call, .leave),
    .call(call, .end), .call(call, .link(MakeLink())), .call(call, .hold(Hold(held: true))), .call(call, .state),
    .listCalls,
    .inCall(call, .media(MediaRequest(sdp: "", tracks: []))),
    .inCall(call, .track(TrackID(participant: 1, index: 1), ChangeTrack(muted: true))),
    .inCall(call, .receive(Receive())), .inCall(call, .message(SendMessage(body: Base64Bytes([1])))),
    .inCall(call, .stats(QualityNumbers())),
    .call(call, .report(ReportAbuse(text: "x"))), .inCall(call, .keys(HandOutKeys(epoch: 1, envelopes: []))),
    .inCall(call, .requestKey(RequestKey())), .inCall(call, .listKeys(ListKeys())),
    .inCall(call, .waitForKey(WaitForKey(epoch: 1, reason: .trust))),
    .inCall(call, .confirmKey(ConfirmKey(epoch: 1, tag: Base64Bytes([])))),
    .inCall(call, .listConfirmations(ListConfirmations(epoch: 1, bucket: 0))),
    .inCall(call, .startRecording(StartCallRecording(statement: guest.statement(call)))),
    .inCall(call, .consentToRecording(ConsentToRecording(recording: RecordingRules.id, media: []))),
    .inCall(call, .exportTrackKeys(Client.trackKeys([1], 2))),
    .inCall(call, .stopRecording(StopCallRecording(recording: RecordingRules.id))),
    .people(.setPresence(SetPresence(state: .available))),
    .people(.watchPresence(WatchPresence(users: []))), .history(.list(ListHistory())),
    .history(.delete(DeleteHistory(all: true))),
    .history(.totals(HistoryTotals(with: UserID(unchecked: "alice")))),
    .people(.subscribePush(SubscribePush(subscription: nil))),
    .call(call, .removeGuest(RemoveGuest(guest: guest.user))),
    .call(call, .knock(Knock(link: link, admission: word))), .call(call, .admitGuest(AdmitGuest(admission: word))),
    .call(call, .refuseGuest(RefuseGuest(guest: guest.user))),
    .people(.makeLink(MakeLastingLink(link: lasting, expiresIn: 3_600))), .people(.listLinks),
    .people(.deleteLink(DeleteLastingLink(link: lasting))), .people(.openLink(OpenLastingLink(link: lasting))),
    .recordings(.start(RecordingRules.start(by: guest.device))),
    .recordings(.finish(FinishRecording(id: RecordingRules.id, reels: []))), .recordings(.list(ListRecordings())),
    .recordings(.get(GetRecording(id: RecordingRules.id))),
    .recordings(.share(ShareRecording(id: RecordingRules.id, grants: []))), .recordings(.note(RecordingRules.note)),
    .recordings(.delete(DeleteRecordings(ids: []))), .recordings(.seen(SeenRecording(id: RecordingRules.id))),
    .recordings(.erase(EraseReel(id: RecordingRules.id))),
  ]
}

private func mayMake(_ request: Request) -> Bool {
  [0, 1, 11, 12, 14, 18, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 39, 56, 57].contains(place(of: request))
}

private func isAboutACall(_ request: Request) -> Bool {
  (7...31).contains(place(of: request)) || (38...41).contains(place(of: request))
    || (55...58).contains(place(of: request))
}

/// Without a `default`, so that a decision is needed here for each new request.
private func place(of request: Request) -> Int {
  switch request {
  case .people(.registerDevice): 0
  case .people(.listDevices): 1
  case .people(.removeDevice): 2
  case .people(.vouchForDevice): 3
  case .people(.revokeDevice): 4
  case .people(.pairDevice): 5
  case .calls(.start): 6
  case .calls(.call(_, .accept)): 7
  case .calls(.call(_, .decline)): 8
  case .calls(.call(_, .invite)): 9
  case .calls(.call(_, .cancel)): 10
  case .calls(.call(_, .join)): 11
  case .calls(.call(_, .rejoin)): 12
  case .calls(.call(_, .transfer)): 13
  case .calls(.call(_, .leave)): 14
  case .calls(.call(_, .end)): 15
  case .calls(.call(_, .link)): 16
  case .calls(.call(_, .hold)): 17
  case .calls(.call(_, .state)): 18
  case .calls(.list): 19
  case .calls(.inCall(_, .media)): 20
  case .calls(.inCall(_, .track)): 21
  case .calls(.inCall(_, .receive)): 22
  case .calls(.inCall(_, .message)): 23
  case .calls(.inCall(_, .stats)): 24
  case .calls(.call(_, .report)): 25
  case .calls(.inCall(_, .keys)): 26
  case .calls(.inCall(_, .requestKey)): 27
  case .calls(.inCall(_, .listKeys)): 28
  case .calls(.inCall(_, .waitForKey)): 29
  case .calls(.inCall(_, .confirmKey)): 30
  case .calls(.inCall(_, .listConfirmations)): 31
  case .people(.setPresence): 32
  case .people(.watchPresence): 33
  case .history(.list): 34
  case .history(.delete): 35
  case .history(.totals): 36
  case .people(.subscribePush): 37
  case .calls(.call(_, .removeGuest)): 38
  case .calls(.call(_, .knock)): 39
  case .calls(.call(_, .admitGuest)): 40
  case .calls(.call(_, .refuseGuest)): 41
  case .people(.makeLink): 42
  case .people(.listLinks): 43
  case .people(.deleteLink): 44
  case .people(.openLink): 45
  case .recordings(.start): 46
  case .recordings(.finish): 47
  case .recordings(.list): 48
  case .recordings(.get): 49
  case .recordings(.share): 50
  case .recordings(.note): 51
  case .recordings(.delete): 52
  case .recordings(.seen): 53
  case .recordings(.erase): 54
  case .calls(.inCall(_, .startRecording)): 55
  case .calls(.inCall(_, .consentToRecording)): 56
  case .calls(.inCall(_, .exportTrackKeys)): 57
  case .calls(.inCall(_, .stopRecording)): 58
  }
}
