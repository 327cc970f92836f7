import Contract
import Crypto
import Foundation
import MediaModel
import NIOCore
import Testing

@testable import ConclaveClient

/// Words by which people are let into a call (protocol section 5.13). Lies about them are in the table of lies.
struct LettingInTests {
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
    var generator = SystemRandomNumberGenerator()
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

  /// A list counts though words beside it are of other types; the good ones count too.
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

  @Test func theRingerIsRememberedForTheNewestCalls() {
    var ringers = Ringers()
    for number in 0..<Ringers.limit + 1 { ringers.note(UserID("u\(number)")!, of: CallID("c\(number)")!) }
    ringers.note(UserID("again")!, of: CallID("c5")!)
    #expect(ringers[CallID("c0")!] == nil && ringers[CallID("c5")!] == UserID("again"))
    ringers.forget(CallID("c5")!)
    #expect(ringers[CallID("c5")!] == nil)
  }
}
