import Contract
import Crypto
import Cryptography
import Foundation
import JSON
import MediaModel
import Seeded
import Listening
import Testing

@testable import ConclaveServer

private let now = Timestamp(milliseconds: 1_790_000_000_000)

/// nil if inet_pton(3) does not accept the address.
private func parsed(_ text: String) -> SocketAddress? {
  var (ipv4, ipv6) = (in_addr(), in6_addr())
  if inet_pton(AF_INET, text, &ipv4) == 1 { return SocketAddress(ipv4: UInt32(bigEndian: ipv4.s_addr), port: 443) }
  guard inet_pton(AF_INET6, text, &ipv6) == 1 else { return nil }
  let words = withUnsafeBytes(of: ipv6) { bytes in
    (0..<2).map { UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 8 * $0, as: UInt64.self)) }
  }
  return SocketAddress(high: words[0], low: words[1], port: 443)
}

private func bytes(_ text: String) throws -> [UInt8] { try #require([UInt8](base64URL: text.utf8)) }

@Suite struct PushEncryptionTests {
  /// RFC 8291 section 5 and appendix A.
  @Test func aMessageIsEncryptedAsTheRFCDoes() throws {
    let subscription = PushSubscription(
      endpoint: "https://push.example.net/push/JzLQ3raZJfFBR0aqvOMsLrt54w4rJUsV",
      p256dh: Base64Bytes(
        try bytes(
          "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4")),
      auth: Base64Bytes(try bytes("BTBZMqHH6r4Tts7J_aSIgg")))
    let theirs = try P256.KeyAgreement.PrivateKey(
      rawRepresentation: try bytes("yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"))
    let sender = try #require(P256PrivateKey(pem: Array(theirs.pemRepresentation.utf8)))
    let content = Array("When I grow up, I want to be a watermelon".utf8)
    let body = PushEncryption.body(
      of: content, for: subscription, length: content.count, salt: try bytes("DGv6ra1nlYgDCS1FRnbzlw"), sender: sender)
    let expected = try bytes(
      "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLocInmYWAmS6TlzAC8wEqKK6PBru3jl"
        + "7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSxsj_Qulcy4a-fN")
    #expect(body == expected)
  }

  @Test func allContentsAreOfOneLengthAndOneThatIsTooLongIsRefused() throws {
    let key = P256PrivateKey()
    let subscription = PushSubscription(
      endpoint: "https://push.example/1", p256dh: Base64Bytes(key.publicKey),
      auth: Base64Bytes([UInt8](repeating: 1, count: 16)))
    func size(_ count: Int) -> Int? {
      PushEncryption.body(
        of: [UInt8](repeating: 7, count: count), for: subscription, salt: [UInt8](repeating: 2, count: 16), sender: key)?
        .count
    }
    #expect(size(0) == 86 + 1_024 + 17)
    #expect(size(1_024) == size(0))
    #expect(size(1_025) == nil)
    var other = subscription
    other.p256dh = Base64Bytes([4] + [UInt8](repeating: 9, count: 64))
    #expect(
      PushEncryption.body(of: [], for: other, salt: [UInt8](repeating: 2, count: 16), sender: key) == nil,
      "a point that is not on the curve")
  }

  /// The longest notice that the server makes fits.
  @Test func theLongestNoticeFits() throws {
    let notice = PushNotice(
      type: .ring, call: String(repeating: "c", count: 128), from: String(repeating: "u", count: 128),
      name: String(repeating: "\u{1}", count: PushNotice.maximumNameBytes), media: .video)
    #expect(try JSONCoding.encode(notice).count <= PushEncryption.contentBytes)
  }

  /// RFC 8292 section 2.4. ECDSA takes a random number, so the signature is another one each time.
  @Test func theTokenIsThatOfTheRFC() throws {
    let key = P256PrivateKey()
    let server = ApplicationServerKey(key, contact: "mailto:push@example.com")
    let time = Timestamp(milliseconds: 1_453_523_768_000) - ApplicationServerKey.tokenLifetime
    let header = try server.authorization(for: "https://push.example.net", now: time)
    let signed =
      "eyJ0eXAiOiJKV1QiLCJhbGciOiJFUzI1NiJ9.eyJhdWQiOiJodHRwczovL3B1c2guZXhhbXBsZS5uZXQiLCJleHAiOjE0NTM1MjM3NjgsInN1"
      + "YiI6Im1haWx0bzpwdXNoQGV4YW1wbGUuY29tIn0"
    #expect(header.hasPrefix("vapid t=\(signed)."))
    let parts = header.dropFirst("vapid t=\(signed).".count).components(separatedBy: ", k=")
    #expect(try bytes(parts[1]) == key.publicKey)
    let signature = try P256.Signing.ECDSASignature(rawRepresentation: bytes(parts[0]))
    let publicKey = try P256.Signing.PublicKey(x963Representation: key.publicKey)
    #expect(publicKey.isValidSignature(signature, for: Data(signed.utf8)))
    // The RFC's own signature, by the RFC's key.
    let theirs = try P256.Signing.PublicKey(
      x963Representation: bytes(
        "BA1Hxzyi1RUM1b5wjxsn7nGxAszw2u61m164i3MrAIxHF6YK5h4SDYic-dRuU_RCPCfA5aq9ojSwk5Y2EmClBPs"))
    let example = try P256.Signing.ECDSASignature(
      rawRepresentation: bytes("i3CYb7t4xfxCDquptFOepC9GAu_HLGkMlMuCGSK2rpiUfnK9ojFwDXb1JrErtmysazNjjvW2L9OkSSHzvoD1oA")
    )
    #expect(theirs.isValidSignature(example, for: Data(signed.utf8)))
  }

  @Test func theKeyIsMadeOnceForItsOwnerAloneAndADamagedOneIsToldByName() throws {
    let path = NSTemporaryDirectory() + "conclave-\(UInt64.random(in: .min ... .max))"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let folder = try StateFolder(path)
    let key = try folder.pushKey()
    #expect(try folder.pushKey().publicKey == key.publicKey)
    let file = path + "/push-key"
    #expect(try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int == 0o600)
    for text in ["no key", "", P384.Signing.PrivateKey().pemRepresentation] {
      try Data(text.utf8).write(to: URL(fileURLWithPath: file))
      let error = #expect(throws: ConfigurationError.self) { try folder.pushKey() }
      #expect(error?.description.contains(file) == true)
    }
  }

  /// Releases up to 0.2 wrote the file with swift-crypto. Subscriptions belong to the key, so releases have to read
  /// each other's files.
  @Test func theFileOfAnEarlierReleaseIsReadAndTheOtherWayRound() throws {
    let path = NSTemporaryDirectory() + "conclave-\(UInt64.random(in: .min ... .max))"
    defer { try? FileManager.default.removeItem(atPath: path) }
    let folder = try StateFolder(path)
    let file = path + "/push-key"
    let new = try folder.pushKey()
    let written = try String(contentsOfFile: file, encoding: .utf8).trimmingCharacters(in: .whitespacesAndNewlines)
    #expect(
      Array(try P256.Signing.PrivateKey(pemRepresentation: written).publicKey.x963Representation) == new.publicKey)
    let old = P256.Signing.PrivateKey()
    try Data((old.pemRepresentation + "\n").utf8).write(to: URL(fileURLWithPath: file))
    #expect(try folder.pushKey().publicKey == Array(old.publicKey.x963Representation))
  }
}

@Suite struct PushEndpointTests {
  @Test(arguments: [
    ("https://fcm.googleapis.com/fcm/send/a:b-c_d", "fcm.googleapis.com", 443, "/fcm/send/a:b-c_d"),
    ("https://Push.Example:8443/x?y=1", "push.example", 8443, "/x?y=1"),
    ("https://push.example", "push.example", 443, "/"), ("https://push.example?q", "push.example", 443, "/?q"),
    ("https://[2001:DB8::1]:444/x", "2001:db8::1", 444, "/x"), ("https://192.0.2.7/x", "192.0.2.7", 443, "/x"),
  ])
  func anEndpointIsRead(text: String, host: String, port: Int, target: String) throws {
    let endpoint = try #require(PushEndpoint(text))
    #expect(endpoint.host == host && endpoint.port == UInt16(port) && endpoint.target == target)
  }

  @Test(arguments: [
    "", "https://", "http://push.example/x", "HTTPS://push.example/x", "https:///x", "https://a b/x",
    "https://user@push.example/x", "https://push.example@10.0.0.1/x", "https://push.example\\@10.0.0.1/",
    "https://push.example/x#y", "https://push.example/a\r\nhost: b", "https://push.example/\u{e9}",
    "https://push.exämple/", "https://push.example:0/", "https://push.example:65536/", "https://push.example:+443/",
    "https://push.example:/", "https://push..example/", "https://.example/", "https://push.example./",
    "https://127.1/", "https://2130706433/", "https://0x7f.1/", "https://0177.0.0.1/", "https://1.2.3.4.5/",
    "https://256.0.0.1/", "https://127.0.0.01/", "https://[::1/", "https://[::1]x/", "https://[fe80::1%25eth0]/",
    "https://[127.0.0.1]/", "https://" + String(repeating: "a", count: 64) + "/",
    "https://push.example/" + String(repeating: "a", count: 2_048),
  ])
  func anythingElseIsNone(text: String) { #expect(PushEndpoint(text) == nil) }

  /// A parsed endpoint means what was written, and can be put into a request unchanged.
  @Test(arguments: 1...3 as ClosedRange<UInt64>) func aChangedEndpointIsOneOrNone(seed: UInt64) throws {
    var random = SeededGenerator(seed: seed)
    let pieces = Array("https://push.example:8443/x?y[::1]127.0.0.1@#\\\r\n %\u{0}é-_.~:/")
    for _ in 0..<20_000 {
      var text = Array("https://push.example:8443/x?y=1")
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: 0..<text.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: text[place] = pieces.randomElement(using: &random) ?? "x"
        case 1: text.insert(pieces.randomElement(using: &random) ?? "x", at: place)
        default: if text.count > 1 { text.remove(at: place) }
        }
      }
      guard let endpoint = PushEndpoint(String(text)) else { continue }
      let written = endpoint.origin + endpoint.target
      #expect(PushEndpoint(written) == endpoint, "seed \(seed): \(String(text))")
      #expect(written.utf8.allSatisfy { (0x21...0x7e).contains($0) }, "seed \(seed): \(String(text))")
      #expect(!endpoint.authority.contains(where: { "@/?#\\".contains($0) }), "seed \(seed): \(String(text))")
    }
  }

  @Test(arguments: [
    "127.0.0.1", "127.255.255.254", "0.0.0.0", "10.1.2.3", "172.16.0.1", "172.31.255.255", "192.168.1.1",
    "169.254.169.254", "100.64.0.1", "192.0.0.8", "192.0.2.1", "198.18.0.1", "224.0.0.1", "255.255.255.255", "::",
    "::1",
    "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::7f00:1", "64:ff9b::a00:1", "2002:7f00:1::", "2001::1", "fc00::1",
    "fd12::1", "fe80::1", "ff02::1", "2001:db8::1",
  ])
  func theServersOwnNetworkIsNotConnectedTo(text: String) throws {
    let address = try #require(parsed(text))
    #expect(!PushAddresses(allowed: nil).includes(address))
    #expect(PushAddresses(allowed: AddressList([text])).includes(address))
  }

  /// Each block in IANA's registries of special-purpose addresses, by its first and last address, and other addresses
  /// that belong to no host.
  @Test(arguments: [
    ("0.0.0.0", "0.255.255.255"), ("10.0.0.0", "10.255.255.255"), ("100.64.0.0", "100.127.255.255"),
    ("127.0.0.0", "127.255.255.255"), ("169.254.0.0", "169.254.255.255"), ("172.16.0.0", "172.31.255.255"),
    ("192.0.0.0", "192.0.0.255"), ("192.0.2.0", "192.0.2.255"), ("192.31.196.0", "192.31.196.255"),
    ("192.52.193.0", "192.52.193.255"), ("192.88.99.0", "192.88.99.255"), ("192.168.0.0", "192.168.255.255"),
    ("192.175.48.0", "192.175.48.255"), ("198.18.0.0", "198.19.255.255"), ("198.51.100.0", "198.51.100.255"),
    ("203.0.113.0", "203.0.113.255"), ("224.0.0.0", "255.255.255.255"), ("::", "::1"),
    ("::ffff:0.0.0.0", "::ffff:0.255.255.255"), ("::ffff:0:0:0", "::ffff:0:ffff:ffff"),
    ("::ffff:0:10.0.0.1", "::ffff:0:8.8.8.8"), ("64:ff9b::", "64:ff9b::ffff:ffff"),
    ("64:ff9b:1::", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"), ("100::", "100::ffff:ffff:ffff:ffff"),
    ("100:0:0:1::", "100:0:0:1:ffff:ffff:ffff:ffff"), ("1fff:ffff::", "1fff:ffff::1"),
    ("2001::", "2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff"), ("2001:1::1", "2001:1::3"), ("2001:2::", "2001:3::"),
    ("2001:4:112::", "2001:20::"), ("2001:30::", "2001:3f:ffff::"), ("2001:db8::", "2001:db8:ffff::"),
    ("2002::", "2002:ffff::"), ("2620:4f:8000::", "2620:4f:8000:ffff::"), ("3fff::", "3fff:fff:ffff::"),
    ("4000::", "5f00::1"), ("8000::", "fbff::1"), ("fc00::", "fdff::1"), ("fe80::", "febf::1"), ("fec0::", "feff::1"),
    ("ff00::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
  ])
  func noSpecialPurposeAddressIsConnectedTo(first: String, last: String) throws {
    for text in [first, last] {
      let address = try #require(parsed(text))
      #expect(!PushAddresses(allowed: nil).includes(address), "\(text)")
    }
  }

  @Test(arguments: [
    "8.8.8.8", "172.32.0.1", "100.63.255.255", "2a00:1450:4001::1", "2606:4700::1", "2001:200::1", "::ffff:8.8.8.8",
  ])
  func publicAddressesAreConnectedTo(text: String) throws {
    let address = try #require(parsed(text))
    #expect(PushAddresses(allowed: nil).includes(address))
  }

  @Test(arguments: [
    (200, nil), (201, nil), (204, nil), (301, PushPost.Failure.refused), (400, .refused), (403, .refused), (404, .gone),
    (410, .gone), (413, .refused), (429, .busy), (500, .busy), (503, .busy),
  ])
  func aStatusIsUnderstood(status: Int, failure: PushPost.Failure?) {
    var thrown: PushPost.Failure?
    do throws(PushPost.Failure) { try PushPost.check(status) } catch { thrown = error }
    #expect(thrown == failure)
  }
}

@Suite struct PushQueueTests {
  private func push(_ user: String, _ endpoint: Int, call: String = "c", _ type: PushNotice.Kind = .ring)
    -> PushQueue.Push
  {
    PushQueue.Push(
      user: UserID(unchecked: user),
      subscription: PushSubscription(
        endpoint: "https://push.example/\(endpoint)", p256dh: Base64Bytes([]), auth: Base64Bytes([])),
      notice: PushNotice(type: type, call: call), until: now + .seconds(30))
  }

  @Test func aPushOfARecordingTakesThePlaceOfAnEarlierOneOfTheSame() throws {
    func push(_ number: UInt8, _ type: PushNotice.Kind) -> PushQueue.Push {
      var push = self.push("bob", 1)
      let id = RecordingID([UInt8](repeating: number, count: 16))!
      push.notice = PushNotice(type: type, recording: id, from: "alice")
      return push
    }
    var queue = PushQueue()
    for one in [push(1, .message), push(2, .alert), push(1, .alert)] { queue.add(one, now: now) }
    #expect(queue.count == 2)
    let (first, second) = (queue.next(now: now), queue.next(now: now))
    #expect(first?.notice.subject == RecordingID([UInt8](repeating: 2, count: 16))!.text)
    #expect(second?.notice.type == .alert && second?.notice.subject != first?.notice.subject)
  }

  @Test func aMessageIsLessUrgentThanARingOrAnAlert() {
    let kinds: [PushNotice.Kind] = [.ring, .ringOver, .alert, .message]
    #expect(kinds.map(\.urgency) == ["high", "high", "high", "normal"])
  }

  @Test func theEndOfARingTakesThePlaceOfTheRingThatWaits() throws {
    var queue = PushQueue()
    queue.add(push("bob", 1), now: now)
    queue.add(push("bob", 1, .ringOver), now: now)
    #expect(queue.count == 1)
    let next = queue.next(now: now)
    #expect(next?.notice.type == .ringOver)
  }

  @Test func theEndOfARingWaitsForTheRingThatIsUnderWayAndEndsItsTries() throws {
    var queue = PushQueue()
    queue.add(push("bob", 1), now: now)
    let first = queue.next(now: now)
    let ring = try #require(first)
    queue.add(push("bob", 1, .ringOver), now: now)
    let early = queue.next(now: now)
    #expect(early == nil)
    queue.finished(ring, .busy, now: now, jitter: 0)
    #expect(queue.count == 1)
    let next = queue.next(now: now)
    #expect(next?.notice.type == .ringOver)
  }

  @Test func aFailureThatMayPassIsTriedAgainThreeTimesAtMost() throws {
    var (queue, time) = (PushQueue(), now)
    queue.add(push("bob", 1), now: time)
    for attempt in 1...PushQueue.attempts {
      let next = queue.next(now: time)
      let one = try #require(next)
      #expect(one.attempts == attempt)
      queue.finished(one, .busy, now: time, jitter: 0)
      let early = queue.next(now: time)
      #expect(early == nil, "not at once")
      time = queue.deadline(now: time) ?? time
    }
    #expect(queue.count == 0)
  }

  @Test func expiredMessagesAreDroppedAndCounted() {
    var queue = PushQueue()
    queue.add(push("bob", 1), now: now)
    let next = queue.next(now: now + .seconds(30))
    #expect(next == nil)
    #expect(queue.drops == [.tooOld: 1] && queue.count == 0)
  }

  @Test func aUserWhosePushServiceIsSlowDelaysNobodyElse() throws {
    var queue = PushQueue()
    for number in 0..<200 { queue.add(push("mallory", number), now: now) }
    queue.add(push("bob", 1_000), now: now)
    var users: [String] = []
    while let next = queue.next(now: now) { users.append(next.user.text) }
    #expect(users.count(where: { $0 == "mallory" }) == PushQueue.parallelOfUser)
    #expect(users.last == "bob")
    #expect(queue.drops == [.full: UInt64(200 - PushQueue.maximumWaitingOfUser)])
  }

  @Test func theQueueIsBounded() {
    var queue = PushQueue()
    for number in 0..<2_000 { queue.add(push("user\(number)", number), now: now) }
    #expect(queue.count == PushQueue.maximumWaiting)
    #expect(queue.drops == [.full: UInt64(2_000 - PushQueue.maximumWaiting)])
    var underWay = 0
    while queue.next(now: now) != nil { underWay += 1 }
    #expect(underWay == PushQueue.parallel)
  }

  @Test func aTopicIsShortTheSameForACallAndNotItsID() {
    let topic = WebPush.topic(of: "6f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6e")
    #expect(topic.utf8.count == 32 && topic == WebPush.topic(of: "6f0c2f6e-4d5e-4b52-9f0c-1f2a3b4c5d6e"))
    #expect(topic != WebPush.topic(of: "another") && !topic.contains("6f0c"))
  }
}

@Suite struct WebPushConfigurationTests {
  @Test(arguments: [
    #"{"webPush":{}}"#, #"{"webPush":{"contact":"ops@example.org"}}"#, #"{"webPush":{"contact":"mailto:nobody"}}"#,
    #"{"webPush":{"contact":"http://example.org"}}"#, #"{"webPush":{"contact":"mailto:a@b","networks":["home"]}}"#,
    #"{"webPush":{"contact":"mailto:a@b","on":true}}"#,
  ])
  func aWrongMemberIsToldByName(json: String) {
    let error = #expect(throws: ConfigurationError.self) { try Configuration(json: Array(json.utf8)) }
    #expect(error?.description.hasPrefix("webPush") == true, "\(error?.description ?? "")")
  }

  @Test func nothingIsSentUnlessTheOperatorSaysSo() throws {
    #expect(try Configuration(json: Array("{}".utf8)).webPush == nil)
    let json = #"{"webPush":{"contact":"mailto:calls@example.org"}}"#
    #expect(try Configuration(json: Array(json.utf8)).webPush?.contact == "mailto:calls@example.org")
  }
}
