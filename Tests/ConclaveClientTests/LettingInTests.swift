import Contract
import Crypto
import Foundation
import MediaModel
import NIOCore
import Octets
import Testing

@testable import ConclaveClient

/// The words that let people into a call (protocol section 5.13). Lies about them are in the table of lies.
struct LettingInTests {
  /// Known answers of another implementation (`Tests/Vectors/keys.py`).
  private struct KnownAnswers: Decodable {
    struct Word: Decodable {
      struct Flipped: Decodable { var signature: Base64Bytes }
      var call: CallID
      var word: Admission
      var flipped: Flipped?
    }
    struct Link: Decodable {
      struct Flipped: Decodable {
        var made: Base64Bytes
        var joined: Base64Bytes
        var idOfOtherMaker: String
      }
      var call: CallID
      var secret: Base64Bytes
      var link: Base64Bytes
      var shown: String
      var id: String
      var made: Admission
      var joined: Admission
      var flipped: Flipped
    }
    var admission: Word
    var root: Word
    var link: Link
    var waitingLink: WaitingLink
  }

  private struct WaitingLink: Decodable {
    struct Flipped: Decodable {
      var made: Base64Bytes
      var admitted: Base64Bytes
    }
    var call: CallID
    var made: Admission
    var admitted: Admission
    var flipped: Flipped
  }

  private static let call = KeyWorld.call
  private let alice = DeviceIdentity(user: "alice", device: "phone")!
  private let bob = DeviceIdentity(user: "bob", device: "phone")!

  @Test func aWordIsGoodForItsCallItsUserAndItsDeviceAlone() {
    let word = Admission.letting(bob.address.user, into: Self.call, by: alice)
    #expect(word.isWellFormed && word.isGood(in: Self.call, by: alice.publicKeys))
    #expect(!word.isGood(in: CallID("another")!, by: alice.publicKeys))
    #expect(!word.isGood(in: Self.call, by: bob.publicKeys))
    #expect(!word.isGood(in: Self.call, by: nil))
    var other = word
    other.user = UserID("carol")!
    #expect(!other.isGood(in: Self.call, by: alice.publicKeys))
    var link = word
    link.user = nil
    link.link = Base64Bytes([UInt8](repeating: 1, count: 32))
    #expect(link.isWellFormed && !link.isGood(in: Self.call, by: alice.publicKeys))
  }

  @Test func aLinkIsMadeByItsMakerAndComesWithItsSecretAlone() throws {
    var generator = SplitMix64(seed: 2)
    let secret = LinkSecret(maker: alice.fingerprint, using: &generator)
    #expect(secret.text.count == 64 && LinkSecret(secret.text) == secret)
    for text in ["", String(secret.text.dropLast()), secret.text + "A", "=" + secret.text.dropFirst()] {
      #expect(LinkSecret(text) == nil)
    }
    let made = Admission.making(secret.link(of: Self.call), of: Self.call, by: alice)
    #expect(made.isWellFormed && made.isGood(in: Self.call, by: alice.publicKeys))
    let word = try #require(Admission.coming(by: secret, into: Self.call, as: bob))
    #expect(word.isWellFormed && word.isByLink && word.link == made.link && word.isGood(in: Self.call, by: nil))
    #expect(!word.isGood(in: CallID("another")!, by: nil))
    var other = word
    other.link = Base64Bytes(LinkSecret(maker: alice.fingerprint, using: &generator).link(of: Self.call))
    #expect(!other.isGood(in: Self.call, by: nil))
  }

  @Test func wordsAndLinksAgreeWithAnotherImplementation() throws {
    let url = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Vectors/keys.json")
    let answers = try JSONDecoder().decode(KnownAnswers.self, from: Data(contentsOf: url))
    let alice = try #require(KeyVectors.read().devices.first { $0.user.text == "alice" && $0.device.text == "phone" })
    let keys = try #require(alice.keys())
    for answer in [answers.admission, answers.root] {
      var word = answer.word
      #expect(word.isWellFormed && word.isGood(in: answer.call, by: keys))
      guard let flipped = answer.flipped else { continue }
      word.signature = flipped.signature
      #expect(!word.isGood(in: answer.call, by: keys))
    }
    let link = answers.link
    let secret = try #require(LinkSecret(link.shown))
    #expect(secret.seed == link.secret.bytes && secret.maker == keys.fingerprint && secret.text == link.shown)
    #expect(secret.link(of: link.call) == link.link.bytes)
    #expect(secret.id.text == link.id && LinkID(link.id) == secret.id)
    var other = Array(Base64Bytes(base64: link.shown.replacing("-", with: "+").replacing("_", with: "/"))!.bytes)
    other[other.count - 1] ^= 1
    let moved = Base64Bytes(other).base64.replacing("+", with: "-").replacing("/", with: "_")
    #expect(LinkSecret(String(moved))?.id.text == link.flipped.idOfOtherMaker)
    var (made, joined) = (link.made, link.joined)
    #expect(made.isGood(in: link.call, by: keys) && joined.isByLink && joined.isGood(in: link.call, by: nil))
    made.signature = link.flipped.made
    joined.signature = link.flipped.joined
    #expect(!made.isGood(in: link.call, by: keys) && !joined.isGood(in: link.call, by: nil))
  }

  @Test func waitingLinksAndAdmittedGuestsAgreeWithAnotherImplementation() throws {
    let url = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Vectors/keys.json")
    let answer = try JSONDecoder().decode(KnownAnswers.self, from: Data(contentsOf: url)).waitingLink
    let devices = try KeyVectors.read().devices.filter { $0.device.text == "phone" }
    let alice = try #require(devices.first { $0.user.text == "alice" }?.keys())
    let bob = try #require(devices.first { $0.user.text == "bob" }?.keys())
    var (made, admitted) = (answer.made, answer.admitted)
    #expect(made.isWellFormed && made.waits == true && made.isGood(in: answer.call, by: alice))
    made.waits = nil
    #expect(!made.isGood(in: answer.call, by: alice), "the mark is signed")
    made = answer.made
    made.signature = answer.flipped.made
    #expect(!made.isGood(in: answer.call, by: alice))
    #expect(admitted.isWellFormed && admitted.isGood(in: answer.call, by: nil))
    #expect(admitted.isAdmitted(into: answer.call, by: bob) && !admitted.isAdmitted(into: answer.call, by: alice))
    admitted.user = UserID("guest~ann")!
    #expect(!admitted.isAdmitted(into: answer.call, by: bob))
    admitted = answer.admitted
    admitted.admittedBy?.signature = answer.flipped.admitted
    #expect(!admitted.isAdmitted(into: answer.call, by: bob))
  }

  @Test func onlyGuestsWhoComeByALinkAreAdmitted() throws {
    var generator = SplitMix64(seed: 5)
    let secret = LinkSecret(maker: alice.fingerprint, using: &generator)
    let ana = DeviceIdentity(user: "guest~ana", device: "guest")!
    let word = try #require(Admission.coming(by: secret, into: Self.call, as: ana))
    let admitted = try #require(word.admitted(into: Self.call, by: bob))
    #expect(admitted.isAdmitted(into: Self.call, by: bob.publicKeys))
    #expect(!admitted.isAdmitted(into: CallID("another")!, by: bob.publicKeys))
    #expect(
      try #require(Admission.coming(by: secret, into: Self.call, as: bob)).admitted(into: Self.call, by: alice) == nil)
    #expect(!Admission.letting(ana.address.user, into: Self.call, by: alice).isWellFormed, "a guest without a link")
    var user = Admission.letting(bob.address.user, into: Self.call, by: alice)
    user.waits = true
    #expect(!user.isWellFormed)
    user.waits = nil
    user.admittedBy = admitted.admittedBy
    #expect(!user.isWellFormed)
    var waiting = word
    waiting.waits = true
    #expect(!waiting.isWellFormed)
  }

  /// A guest could let in nobody anyhow.
  @Test(arguments: ["bob", "guest~ana"]) func membersAreShownTheGuestsWhoWait(user: String) throws {
    var generator = SplitMix64(seed: 6)
    let own = try #require(DeviceIdentity(user: user, device: "phone"))
    let secret = LinkSecret(maker: alice.fingerprint, using: &generator)
    let join = JoinCredentials(own, call: Self.call, at: KeyWorld.clock, using: &generator)
    let now = Instant(nanoseconds: 1)
    var keys = KeyAgreement(identity: own, join: join, entrance: .back(root: alice.address.user), now: now)
    let zed = DeviceIdentity(user: "guest~zed", device: "guest")!
    let word = try #require(Admission.coming(by: secret, into: Self.call, as: zed))
    let link = Admission.making(secret.link(of: Self.call), of: Self.call, waits: true, by: alice)
    let maker = Signer(
      user: alice.address.user, device: alice.address.device, fingerprint: Base64Bytes(alice.fingerprint),
      keys: alice.registration)
    func shown(after input: KeyInput) -> [[String]] {
      keys.handle(input, now: now, using: &generator).compactMap {
        if case .waitingGuests(let guests) = $0 { guests.map(\.user) } else { nil }
      }
    }
    let knock = GuestKnock(
      user: zed.address.user, name: "Zed", expiresAt: KeyWorld.clock, admissions: [word, link], signers: [maker])
    let isMember = !own.address.user.isGuest
    #expect(shown(after: .knock(knock)) == (isMember ? [["guest~zed"]] : []))
    #expect(keys.waitingGuests.word(of: zed.address.user) == (isMember ? word : nil))
    #expect(shown(after: .knockOver(zed.address.user)) == (isMember ? [[]] : []))
  }

  /// A guest's own chain begins at its link, and a member's signature lets it in. In whatever order words come.
  @Test(arguments: [true, false]) func aGuestWhoHadToWaitFindsItsRootByItsLink(isAdmitted: Bool) throws {
    var generator = SplitMix64(seed: 4)
    let ana = DeviceIdentity(user: "guest~ana", device: "guest")!
    let secret = LinkSecret(maker: alice.fingerprint, using: &generator)
    let join = JoinCredentials(ana, call: Self.call, at: KeyWorld.clock, using: &generator)
    let own = OwnStay(ana, join, now: Instant(nanoseconds: 1))
    let known = KnownDevices(ana, pins: Pins(), trust: .firstUse, directory: KnownKeys())
    let coming = try #require(Admission.coming(by: secret, into: Self.call, as: ana))
    let words = [
      isAdmitted ? try #require(coming.admitted(into: Self.call, by: bob)) : coming,
      .making(secret.link(of: Self.call), of: Self.call, waits: true, by: alice),
      .letting(bob.address.user, into: Self.call, by: alice), .letting(alice.address.user, into: Self.call, by: alice),
    ]
    let signers = [alice, bob].map { device in
      Signer(
        user: device.address.user, device: device.address.device, fingerprint: Base64Bytes(device.fingerprint),
        keys: device.registration)
    }
    let entry = ListEntry(
      user: ana.address.user, device: ana.address.device, participant: 3, joinId: join.joinId, joinKey: join.joinKey,
      fingerprint: Base64Bytes(ana.fingerprint))
    for order in [words, words.reversed()] {
      var lettingIn = LettingIn(Self.call, .link(secret))
      for word in order { lettingIn.take([word], signers, isWhole: false) }
      lettingIn.judge(nil, own: own, known: known, work: PublicWork(capacity: 0))
      #expect(lettingIn.root == alice.address.user)
      #expect(lettingIn.origin(of: entry) == (isAdmitted ? .by(user: "bob") : .nobody))
    }
  }

  /// A list counts even if some words beside it have wrong types; the good words count, too.
  @Test(arguments: [0, 1 << 20]) func malformedWordsArePassedOver(_ capacity: Int) throws {
    let word = Admission.letting(bob.address.user, into: Self.call, by: alice)
    let rotation = Rotate(
      epoch: 2, mode: .fresh, leader: 1, previous: Base64Bytes([UInt8](repeating: 0, count: 32)),
      listHash: Base64Bytes([UInt8](repeating: 1, count: 32)), list: [], admissions: [word],
      signers: [
        Signer(
          user: alice.address.user, device: alice.address.device, fingerprint: word.fingerprint,
          keys: alice.registration)
      ])
    var object = try #require(
      try JSONSerialization.jsonObject(with: JSONEncoder().encode(rotation)) as? [String: Any])
    object["call"] = Self.call.text
    object["at"] = 1
    let good = try #require((object["admissions"] as? [Any])?.first)
    object["admissions"] = [5, "x", ["user": 7], good, [:], [good]] + [Any](repeating: ["user": "eve"], count: 100)
    object["signers"] = [1.5, ["keys": 1]] + ((object["signers"] as? [Any]) ?? [])
    let body = ByteBuffer(bytes: try JSONSerialization.data(withJSONObject: object))
    let message = try BodyDecoder(PublicWork(capacity: capacity)).event(.keysRotate, from: body)
    guard case .rotate(let read) = message.body else {
      Issue.record("\(message)")
      return
    }
    #expect(read.admissions == [word] && read.signers == rotation.signers && read.epoch == 2)
  }

  /// After a restart of the app, a server and its accomplice present another chain for the user.
  @Test(arguments: [true, false]) func aCallThatIsComeBackToHasTheRootThatItHad(isKept: Bool) throws {
    var generator = SplitMix64(seed: 3)
    let mallory = DeviceIdentity(user: "mallory", device: "phone")!
    let join = JoinCredentials(bob, call: Self.call, at: KeyWorld.clock, using: &generator)
    let now = Instant(nanoseconds: 1)
    let own = OwnStay(bob, join, now: now)
    let known = KnownDevices(bob, pins: Pins(), trust: .firstUse, directory: KnownKeys())
    let work = PublicWork(capacity: 0)
    var lettingIn = LettingIn(Self.call, isKept ? .back(root: alice.address.user) : .other)
    func hear(_ user: DeviceIdentity, letsIn users: [DeviceIdentity]) {
      let signer = Signer(
        user: user.address.user, device: user.address.device, fingerprint: Base64Bytes(user.fingerprint),
        keys: user.registration)
      let words = users.map { Admission.letting($0.address.user, into: Self.call, by: user) }
      lettingIn.take(words, [signer], isWhole: false)
      lettingIn.judge(nil, own: own, known: known, work: work)
    }
    hear(mallory, letsIn: [mallory, bob])
    #expect(lettingIn.root == (isKept ? alice : mallory).address.user)
    let entry = ListEntry(
      user: mallory.address.user, device: mallory.address.device, participant: 7, joinId: join.joinId,
      joinKey: join.joinKey, fingerprint: Base64Bytes(mallory.fingerprint))
    #expect(lettingIn.origin(of: entry) == (isKept ? .nobody : .started))
    hear(alice, letsIn: [alice, bob])
    #expect(lettingIn.root == (isKept ? alice : mallory).address.user)
  }

  @Test func theRingerIsRememberedForTheNewestCalls() {
    var ringers = Ringers()
    for number in 0..<Ringers.limit + 1 { ringers.note(UserID("u\(number)")!, of: CallID("c\(number)")!) }
    ringers.note(UserID("again")!, of: CallID("c5")!)
    #expect(ringers[CallID("c0")!] == nil && ringers[CallID("c5")!] == UserID("again"))
    ringers.forget(CallID("c5")!)
    #expect(ringers[CallID("c5")!] == nil)
  }
}
