@testable import PeopleMachine
@testable import Calls
import Contract
import MediaModel
import Simulation
import Testing

import CallMessages

/// The words that let people into a call (protocol section 5.13).
struct AdmissionRules {
  let stage = Stage()
  let alice: Client
  let bob: Client
  let carol: Client
  let dave: Client

  init() {
    alice = stage.connect("alice")
    bob = stage.connect("bob")
    carol = stage.connect("carol")
    dave = stage.connect("dave")
  }

  private func keys(_ client: Client) throws -> DeviceEntry {
    try #require(stage.node.people.directory[client.device]?.entry)
  }

  private func words(_ client: Client, for users: [Client], in call: CallID) throws -> [Admission] {
    Stage.words.words(for: users.map(\.user), in: call, by: try keys(client))
  }

  private func list(_ client: Client, _ call: CallID) throws -> KeyList {
    try client.get(.inCall(call, .listKeys(ListKeys())))
  }

  /// As `by>user` or `by>link`, and `link>user` for a user who joined by a link.
  private func told(_ words: [Admission]?) throws -> [String] {
    let names = Dictionary(
      uniqueKeysWithValues: try [alice, bob, carol, dave].map { (try keys($0).fingerprint, $0.user.text) })
    return (words ?? []).map { word in
      let by = word.sigAlg == nil ? "link" : names[word.fingerprint] ?? "?"
      return "\(by)>\(word.user?.text ?? "link")"
    }
  }

  private func error(_ request: Request, by client: Client) -> String {
    client.error(request).map { "\($0.code.rawValue) \($0.field ?? "")" } ?? "none"
  }

  // MARK: requests

  @Test func aStartNeedsAWordForEachCalleeAndForItsSender() throws {
    let id = CallID.random
    let good = try words(alice, for: [alice, bob], in: id)
    func start(_ change: (inout [Admission]) throws -> Void) rethrows -> String {
      var words = good
      try change(&words)
      return error(
        .start(
          StartCall(
            id: id, callees: [bob.user], media: .audio, joinId: alice.join().joinId, joinKey: alice.join().joinKey,
            admissions: words)), by: alice)
    }
    #expect(start { $0 = [] } == "request.invalid admissions")
    #expect(start { $0.removeFirst() } == "request.invalid admissions", "no root")
    #expect(start { $0.removeLast() } == "request.invalid admissions")
    #expect(start { $0.append($0[1]) } == "request.invalid admissions", "twice")
    #expect(try start { $0 += try words(alice, for: [carol], in: id) } == "request.invalid admissions")
    #expect(start { $0[1].user = nil } == "request.invalid admissions")
    #expect(start { $0[1].link = Base64Bytes([1]) } == "request.invalid admissions")
    #expect(try start { $0[1].fingerprint = try keys(bob).fingerprint } == "request.invalid admissions.1.fingerprint")
    #expect(start { $0[1].sigAlg = "EdDSA" } == "request.invalid admissions.1.sigAlg")
    #expect(start { $0[1].sigAlg = nil } == "request.invalid admissions.1.sigAlg")
    #expect(start { $0[1].signature.bytes[0] ^= 1 } == "request.invalid admissions.1.signature")
    #expect(start { $0[0].signature = $0[1].signature } == "request.invalid admissions.0.signature")
    #expect(
      try start { $0 = try words(alice, for: [alice, bob], in: .random) }.hasSuffix("signature"), "another call's")
    #expect(bob.events().isEmpty, "nobody was rung")
    #expect(start { $0.reverse() } == "none", "in any order")
  }

  @Test func anInviteNeedsAWordForEachCallee() throws {
    let call = try alice.call(["bob"])
    func invite(_ words: [Admission]) -> String {
      error(.call(call, .invite(Invite(callees: [carol.user, dave.user], admissions: words))), by: alice)
    }
    #expect(invite([]) == "request.invalid admissions")
    #expect(try invite(words(alice, for: [carol], in: call)) == "request.invalid admissions")
    #expect(try invite(words(alice, for: [carol, alice], in: call)) == "request.invalid admissions")
    #expect(try invite(words(bob, for: [carol, dave], in: call)) == "request.invalid admissions.0.fingerprint")
    var bad = try words(alice, for: [carol, dave], in: call)
    bad[1].signature.bytes[0] ^= 1
    #expect(invite(bad) == "request.invalid admissions.1.signature")
    #expect(carol.events().isEmpty && dave.events().isEmpty, "nobody was rung")
    #expect(try invite(words(alice, for: [carol, dave], in: call)) == "none")
  }

  @Test func onlyTheDeviceThatIsInTheCallLetsPeopleIn() throws {
    let laptop = stage.connect("alice", "laptop")
    let call = try alice.call(["bob"])
    #expect(laptop.code(.call(call, .invite(Invite(callees: [carol.user])))) == .callAnsweredElsewhere)
    #expect(laptop.code(.call(call, .link(MakeLink()))) == .callAnsweredElsewhere)
    #expect(laptop.code(.call(call, .link(MakeLink(revoke: true)))) == nil)
    try laptop.transfer(call)
    #expect(laptop.code(.call(call, .invite(Invite(callees: [carol.user])))) == nil, "it is in the call now, too")
  }

  @Test func aDeviceWithAnUnknownSignAlgorithmLetsNobodyIn() throws {
    let eve = stage.connect("eve", keys: false)
    var keys = eve.keys
    keys[1].alg = "X448"
    _ = eve.ask(.people(.registerDevice(RegisterDevice(name: nil, keys: keys))))
    #expect(eve.code(eve.start([bob.user])) == .keysNotAllowed)
    let call = try alice.call(["eve"])
    try eve.accept(call)
    #expect(eve.code(.call(call, .invite(Invite(callees: [carol.user])))) == .keysNotAllowed)
    #expect(eve.code(.call(call, .link(MakeLink()))) == .keysNotAllowed)
  }

  // MARK: on their way

  @Test func aRingBringsTheWordsOfItsCallee() throws {
    let call = try alice.call(["bob", "carol"])
    let ring = try #require(bob.events().rings.last)
    #expect(try told(ring.admissions) == ["alice>alice", "alice>bob"])
    #expect(ring.signers?.map(\.user) == [alice.user])
    #expect(ring.signers?.first?.keys == alice.keys)
    try bob.accept(call)
    _ = bob.ask(.call(call, .invite(Invite(callees: [dave.user]))))
    #expect(try told(dave.events().rings.last?.admissions) == ["alice>alice", "alice>bob", "bob>dave"])
    let again = stage.connect("dave", "laptop")
    #expect(again.events().rings.last?.admissions?.count == 3, "a device that connects later, too")
  }

  @Test func aListBringsTheWordsThatItNeedsAndTheNextOneWhatIsNew() throws {
    let call = try alice.call(["bob", "carol"]) { $0.ringSeconds = 120 }
    try bob.accept(call)
    stage.advance(.milliseconds(100))
    #expect(try told(alice.events().rotations.last?.admissions) == ["alice>bob"])
    let whole = try #require(bob.events().rotations.last)
    #expect(try told(whole.admissions) == ["alice>alice", "alice>bob"])
    #expect(whole.signers == nil, "the signer is on the list")
    stage.advance(.seconds(5))
    try carol.accept(call)
    stage.advance(.seconds(5))
    #expect(try told(alice.events().rotations.last?.admissions) == ["alice>carol"])
    #expect(try told(carol.events().rotations.last?.admissions) == ["alice>alice", "alice>bob", "alice>carol"])
    try bob.rejoin(call)
    stage.advance(.seconds(5))
    let last = try #require(alice.events().rotations.last)
    #expect(last.added?.map(\.user) == [bob.user] && last.admissions == nil, "bob's word is known")
    #expect(try told(try list(alice, call).admissions) == ["alice>alice", "alice>bob", "alice>carol"])
  }

  @Test func theChainGoesOnOverSignersWhoHaveGone() throws {
    let call = try alice.call(["bob"])
    try bob.accept(call)
    _ = bob.ask(.call(call, .invite(Invite(callees: [carol.user]))))
    try carol.accept(call)
    _ = carol.ask(.call(call, .invite(Invite(callees: [dave.user]))))
    _ = alice.ask(.call(call, .leave))
    _ = bob.ask(.call(call, .leave))
    #expect(bob.code(.people(.removeDevice(RemoveDevice(device: bob.device.device)))) == nil)
    try dave.accept(call)
    stage.advance(.seconds(1))
    let list = try list(dave, call)
    #expect(list.list.map(\.user) == [carol.user, dave.user])
    let chain = ["alice>alice", "alice>bob", "bob>carol", "carol>dave"]
    #expect(list.admissions?.map(\.user) == [alice.user, bob.user, carol.user, dave.user])
    #expect(list.signers?.map(\.user) == [alice.user, bob.user], "with the keys of a removed device")
    #expect(list.signers?.last?.keys == bob.keys)
    stage.restart()
    let back = stage.connect("dave")
    try back.rejoin(call)
    // Carol does not come back.
    stage.advance(.seconds(20))
    _ = stage.connect("bob")
    #expect(try told(try self.list(back, call).admissions) == chain, "over a restart, too")
    #expect(try self.list(back, call).signers?.map(\.user) == [alice.user, bob.user, carol.user])
  }

  @Test func theWordOfAForgottenUserStaysInTheChain() throws {
    let call = try alice.call(["bob"])
    try bob.accept(call)
    _ = bob.ask(.call(call, .invite(Invite(callees: [carol.user]))))
    try carol.accept(call)
    stage.handle(.forget(bob.user))
    stage.advance(.seconds(1))
    #expect(try list(carol, call).admissions?.map(\.user) == [alice.user, bob.user, carol.user])
  }

  @Test func theFirstWordStaysUntilTheMemberIsRungAnew() throws {
    let call = try alice.call(["bob", "carol"]) { $0.ringSeconds = 120 }
    try bob.accept(call)
    _ = bob.ask(.call(call, .invite(Invite(callees: [carol.user]))))
    try carol.accept(call)
    stage.advance(.seconds(1))
    #expect(
      try told(try list(carol, call).admissions) == ["alice>alice", "alice>bob", "alice>carol"], "it rang already")
    _ = carol.ask(.call(call, .leave))
    _ = bob.ask(.call(call, .invite(Invite(callees: [carol.user]))))
    try carol.accept(call)
    // No device answers for the previous epoch.
    stage.advance(.seconds(15))
    #expect(try told(try list(carol, call).admissions) == ["alice>alice", "alice>bob", "bob>carol"])
    #expect(try told(alice.events().rotations.last?.admissions) == ["bob>carol"], "another word is told, too")
  }

  @Test func aCallOfAServiceHasNoWords() throws {
    let service = stage.connectService()
    let started: StartedCall = try service.get(
      .start(StartCall(callees: [bob.user], media: .audio, as: alice.user)))
    #expect(bob.events().rings.last?.admissions == nil)
    try alice.accept(started.call.id)
    try bob.accept(started.call.id)
    stage.advance(.seconds(5))
    let list = try list(alice, started.call.id)
    #expect(list.list.count == 2 && list.admissions == nil && list.signers == nil)
  }

  @Test func aCalleeWhoDoesNotBecomeAMemberLeavesNoWord() throws {
    let call = try alice.call(["bob", "nobody"])
    #expect(stage.stored.calls.first { $0.call.id == call }?.words.map(\.subject.text).sorted() == ["alice", "bob"])
  }
}

/// Words by links.
struct LinkAdmissionRules {
  let stage = Stage()
  let alice: Client
  let bob: Client
  let call: CallID
  let key = Base64Bytes([UInt8](repeating: 5, count: 32))

  init() throws {
    alice = stage.connect("alice")
    bob = stage.connect("bob")
    call = try alice.call(["nobody", "carol"]) { $0.aloneSeconds = 86_400 }
  }

  private func keys(_ client: Client) throws -> DeviceEntry {
    try #require(stage.node.people.directory[client.device]?.entry)
  }

  private func make(_ link: Base64Bytes) throws -> String {
    let word = Stage.words.word(toMake: link, in: call, by: try keys(alice))
    return try (alice.get(.call(call, .link(MakeLink(admission: word)))) as CallLink).link
  }

  private func join(_ client: Client, _ link: String?, _ word: Admission?) -> Request {
    var join = client.join(link: link)
    join.admission = word
    return .call(call, .join(join))
  }

  private func error(_ request: Request, by client: Client) -> String {
    let reply = stage.request(client.session) { .request(client.session, id: $0, request) }
    guard case .failed(let error)? = reply else { return "none" }
    return "\(error.code.rawValue) \(error.field ?? "")"
  }

  @Test func aLinkIsMadeByAWordWithItsKey() throws {
    let good = Stage.words.word(toMake: key, in: call, by: try keys(alice))
    func make(_ change: (inout Admission) throws -> Void) rethrows -> String {
      var word = good
      try change(&word)
      return error(.call(call, .link(MakeLink(admission: word))), by: alice)
    }
    #expect(error(.call(call, .link(MakeLink())), by: alice) == "request.invalid admission")
    #expect(make { $0.user = bob.user } == "request.invalid admission")
    #expect(make { $0.link = nil } == "request.invalid admission.link")
    #expect(make { $0.link?.bytes.removeLast() } == "request.invalid admission.link")
    #expect(try make { $0.fingerprint = try keys(bob).fingerprint } == "request.invalid admission.fingerprint")
    #expect(make { $0.sigAlg = nil } == "request.invalid admission.sigAlg")
    #expect(make { $0.link?.bytes[0] ^= 1 } == "request.invalid admission.signature")
    #expect(make { _ in } == "none")
    #expect(make { _ in } == "request.invalid admission.link", "each link has a new key")
  }

  @Test func aUserComesByAWordUnderTheLink() throws {
    let link = try make(key)
    let good = Stage.words.word(toComeBy: key, in: call, by: try keys(bob))
    var foreign = good
    foreign.link = Base64Bytes([UInt8](repeating: 6, count: 32))
    var flipped = good
    flipped.signature.bytes[0] ^= 1
    var others = good
    others.user = alice.user
    let ofOther = Stage.words.word(toComeBy: key, in: call, by: try keys(alice))
    var ofOtherDevice = good
    ofOtherDevice.fingerprint = ofOther.fingerprint
    #expect(error(join(bob, link, nil), by: bob) == "request.invalid admission")
    #expect(error(join(bob, nil, good), by: bob) == "request.invalid link")
    #expect(error(join(bob, link, others), by: bob) == "request.invalid admission.user")
    #expect(error(join(bob, link, ofOtherDevice), by: bob) == "request.invalid admission.fingerprint")
    #expect(error(join(bob, link, foreign), by: bob) == "call.link-invalid admission")
    #expect(error(join(bob, link, flipped), by: bob) == "call.link-invalid admission")
    #expect(error(join(bob, link, good), by: bob) == "none")
    stage.advance(.seconds(1))
    let list: KeyList = try bob.get(.inCall(call, .listKeys(ListKeys())))
    #expect(
      list.admissions?.map(\.link) == [key, nil, key] && list.admissions?.map(\.user) == [nil, alice.user, bob.user])
    #expect(list.admissions?.last?.sigAlg == nil)
    let toAlice = alice.events().rotations.last?.admissions
    #expect(toAlice?.map(\.link) == [key, key], "with the word that made the link")
  }

  @Test func aRevokedLinkLetsNobodyInAndItsPeopleKeepTheirWords() throws {
    let link = try make(key)
    #expect(error(join(bob, link, Stage.words.word(toComeBy: key, in: call, by: try keys(bob))), by: bob) == "none")
    _ = alice.ask(.call(call, .link(MakeLink(revoke: true))))
    let fresh = try make(Base64Bytes([UInt8](repeating: 7, count: 32)))
    let dave = stage.connect("dave")
    let old = Stage.words.word(toComeBy: key, in: call, by: try keys(dave))
    #expect(error(join(dave, fresh, old), by: dave) == "call.link-invalid admission")
    stage.advance(.seconds(1))
    let list: KeyList = try bob.get(.inCall(call, .listKeys(ListKeys())))
    #expect(list.admissions?.map(\.user) == [nil, alice.user, bob.user])
    stage.restart()
    let again = stage.connect("dave")
    #expect(error(join(again, fresh, old), by: again) == "call.link-invalid admission", "after a restart, too")
  }

  @Test func aMemberWhoNeedsNoLinkJoinsWithABadWordToo() throws {
    let carol = stage.connect("carol")
    _ = alice.ask(.call(call, .invite(Invite(callees: [carol.user]))))
    _ = carol.ask(.call(call, .decline(Decline())))
    var bad = Stage.words.word(toComeBy: key, in: call, by: try keys(carol))
    bad.signature.bytes[0] ^= 1
    #expect(error(join(carol, "old", bad), by: carol) == "none")
    stage.advance(.seconds(1))
    let list: KeyList = try carol.get(.inCall(call, .listKeys(ListKeys())))
    #expect(list.admissions?.last?.link == nil && list.admissions?.last?.user == carol.user, "alice's word stays")
  }

  @Test func aGuestWithOtherKeysNeedsAnotherWord() throws {
    let link = try make(key)
    let ana = stage.connect("guest~ana", "guest", guestOf: call)
    let first = Stage.words.word(toComeBy: key, in: call, by: try keys(ana))
    #expect(error(join(ana, link, first), by: ana) == "none")
    #expect(error(.call(call, .rejoin(ana.join())), by: ana) == "none", "with the same keys it needs none")
    let others = ana.keys.map { DeviceKey(use: $0.use, alg: $0.alg, publicKey: Base64Bytes($0.publicKey.bytes + [9])) }
    _ = ana.ask(.people(.registerDevice(RegisterDevice(name: nil, keys: others))))
    #expect(error(.call(call, .rejoin(ana.join())), by: ana) == "call.link-invalid admission")
    var rejoin = ana.join()
    rejoin.admission = first
    #expect(error(.call(call, .rejoin(rejoin)), by: ana) == "request.invalid admission.fingerprint")
    rejoin.admission = Stage.words.word(toComeBy: key, in: call, by: try keys(ana))
    #expect(error(.call(call, .rejoin(rejoin)), by: ana) == "none")
    stage.advance(.seconds(1))
    let list: KeyList = try alice.get(.inCall(call, .listKeys(ListKeys())))
    #expect(list.admissions?.last == rejoin.admission)
  }

  @Test func linksAreBoundedAndThoseThatAreOverMakeRoom() throws {
    func key(_ number: Int) -> Base64Bytes {
      Base64Bytes([UInt8](repeating: 1, count: 31) + [UInt8(truncatingIfNeeded: number)])
    }
    for number in 0..<64 { _ = try make(key(number)) }
    let word = Stage.words.word(toMake: key(64), in: call, by: try keys(alice))
    #expect(error(.call(call, .link(MakeLink(admission: word))), by: alice) == "call.full ")
    stage.advance(.seconds(3_601))
    _ = try make(key(64))
    #expect(stage.stored.calls.first?.words.count == 2, "the root and the new link")
  }

  /// If a member keeps changing its device's keys, each of its links has another signer.
  @Test func theKeysOfSignersGoWithTheirWords() throws {
    for number in 0..<20 {
      let others = alice.keys.map {
        DeviceKey(use: $0.use, alg: $0.alg, publicKey: Base64Bytes($0.publicKey.bytes + [UInt8(number)]))
      }
      _ = alice.ask(.people(.registerDevice(RegisterDevice(name: nil, keys: others))))
      try alice.rejoin(call)
      _ = try make(Base64Bytes([UInt8](repeating: UInt8(number), count: 32)))
      #expect(alice.code(.call(call, .link(MakeLink(revoke: true)))) == nil)
    }
    let stored = try #require(stage.stored.calls.first)
    #expect(stored.words.count == 1 && stored.signers.count == 1, "the root's")
  }
}
