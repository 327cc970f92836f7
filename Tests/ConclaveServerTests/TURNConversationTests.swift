import MediaModel
import NIOCore
import Seeded
import Testing

@testable import ConclaveServer

/// The conversation of `check-turn` with a TURN server, and its conclusions.
struct TURNConversationTests {
  private static let credentials = TURNConversation.Credentials(name: "1:alice", password: "word")
  private static let relayed = MediaModel.SocketAddress(ipv4: 0xCB00_7109, port: 49_152)
  private static let server = MediaModel.SocketAddress(ipv4: 0xCB00_7107, port: 0)
  private static let ipv6 = MediaModel.SocketAddress(high: 0x2001_0db8_0000_0000, low: 7, port: 0)

  private var generator = SeededGenerator(seed: 1)

  /// RFC 5769 section 2.4.
  @Test func aRequestIsAuthenticatedByTheLongTermCredentials() {
    func bytes(_ hex: String) -> [UInt8] {
      let digits = Array(hex.utf8).map { UInt8(String(UnicodeScalar($0)), radix: 16) ?? 0 }
      return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
    }
    var message = TURNMessage(.binding, transaction: bytes("78ad3433c6ad72c029da412e"))
    message.add(.username, "\u{30DE}\u{30C8}\u{30EA}\u{30C3}\u{30AF}\u{30B9}".utf8)
    message.add(.nonce, "f//499k954d6OL34oL9FSTvy64sA".utf8)
    message.add(.realm, "example.org".utf8)
    // MD5 of the name, the realm and the password TheMatrIX.
    let whole = message.encoded(
      key: TURNConversation.key(
        "\u{30DE}\u{30C8}\u{30EA}\u{30C3}\u{30AF}\u{30B9}", Array("example.org".utf8), "TheMatrIX"))
    #expect(whole.readableBytesView.suffix(20).elementsEqual(bytes("f67024656dd64a3e02b8e0712e85c9a28ca89666")))
    #expect(whole.readableBytesView.prefix(4).elementsEqual([0, 1, 0, 0x60]))
  }

  @Test(arguments: [relayed, MediaModel.SocketAddress(high: 0x2001_0db8_0000_0000, low: 9, port: 443)])
  func addressesAreReadAsTheyWereWritten(_ address: MediaModel.SocketAddress) throws {
    var message = TURNMessage(.allocate, .success, transaction: Array(1...12))
    message.add(.xorRelayedAddress, address)
    #expect(try #require(TURNMessage(message.encoded())).address(.xorRelayedAddress) == address)
  }

  @Test mutating func aServerThatRelaysIsAskedForEachAddressAndLetGo() throws {
    var conversation = TURNConversation(Self.credentials, peers: [Self.server, Self.ipv6])
    var request = try #require(TURNMessage(conversation.begin(using: &generator)))
    #expect(request.method == .allocate && request[.username] == nil && request[.requestedTransport] == [17, 0, 0, 0])
    request = try answer(&conversation, request, .failure) { Self.refuse(&$0, 401, realm: "app.example", nonce: "n1") }
    #expect(request.method == .allocate && request[.username] == Array("1:alice".utf8))
    #expect(request[.realm] == Array("app.example".utf8) && request[.messageIntegrity]?.count == 20)
    request = try answer(&conversation, request, .success) { $0.add(.xorRelayedAddress, Self.relayed) }
    // An address of the other family is not tried.
    #expect(request.method == .createPermission && request.address(.xorPeerAddress) == Self.server)
    request = try answer(&conversation, request, .success) { _ in }
    #expect(request.method == .refresh && request[.lifetime] == [0, 0, 0, 0])
    #expect(try end(&conversation, request, .success) { _ in } == .relays(from: Self.relayed, refused: []))
  }

  @Test mutating func aPermissionThatIsRefusedIsToldWithItsAddress() throws {
    var conversation = TURNConversation(Self.credentials, peers: [Self.server])
    var request = try #require(TURNMessage(conversation.begin(using: &generator)))
    request = try answer(&conversation, request, .failure) { Self.refuse(&$0, 401, realm: "r", nonce: "n1") }
    request = try answer(&conversation, request, .success) { $0.add(.xorRelayedAddress, Self.relayed) }
    // A nonce may become stale at any time.
    request = try answer(&conversation, request, .failure) { Self.refuse(&$0, 438, realm: "r", nonce: "n2") }
    #expect(request.method == .createPermission && request[.nonce] == Array("n2".utf8))
    request = try answer(&conversation, request, .failure) { Self.refuse(&$0, 403) }
    let outcome = try end(&conversation, request, .success) { _ in }
    #expect(outcome == .relays(from: Self.relayed, refused: [.init(peer: Self.server, code: 403)]))
    let url = try #require(TURNServerURL("turn:turn.example"))
    let words = TURNWords(url, .ended(outcome))
    #expect(!words.isGood && words.line.contains("allowed-peer-ip=203.0.113.7"))
  }

  @Test mutating func credentialsThatAreRefusedAreNotTriedAgain() throws {
    var conversation = TURNConversation(Self.credentials, peers: [])
    var request = try #require(TURNMessage(conversation.begin(using: &generator)))
    request = try answer(&conversation, request, .failure) { Self.refuse(&$0, 401, realm: "r", nonce: "n") }
    let outcome = try end(&conversation, request, .failure) { Self.refuse(&$0, 401, realm: "r", nonce: "n") }
    #expect(outcome == .refuses(code: 401, knowsCredentials: true))
    #expect(TURNWords(try #require(TURNServerURL("turn:a")), .ended(outcome)).line.contains("static-auth-secret"))
  }

  @Test mutating func anotherTransactionsAnswerIsNoAnswer() throws {
    var conversation = TURNConversation(nil, peers: [])
    let request = try #require(TURNMessage(conversation.begin(using: &generator)))
    #expect(request.method == .binding)
    var other = TURNMessage(.binding, .success, transaction: Array(repeating: 0, count: 12))
    other.add(.xorMappedAddress, Self.relayed)
    guard case .wait = conversation.take(other.encoded(), using: &generator) else {
      Issue.record("taken")
      return
    }
    #expect(try end(&conversation, request, .success) { $0.add(.xorMappedAddress, Self.relayed) } == .answers)
  }

  @Test mutating func anyBytesAreReadWithoutATrap() {
    for _ in 0..<20_000 {
      var conversation = TURNConversation(Self.credentials, peers: [Self.server])
      var bytes = conversation.begin(using: &generator)
      for _ in 0..<Int.random(in: 0...6, using: &generator) {
        let at = Int.random(in: 0..<bytes.readableBytes, using: &generator)
        bytes.setInteger(UInt8.random(in: 0...255, using: &generator), at: at)
      }
      bytes.writeBytes((0..<Int.random(in: 0...40, using: &generator)).map { UInt8($0) })
      bytes.setInteger(UInt16(bytes.readableBytes - 20), at: 2)
      let cut = bytes.getSlice(at: 0, length: Int.random(in: 0...bytes.readableBytes, using: &generator)) ?? bytes
      _ = TURNMessage.length(in: cut)
      _ = TURNMessage(cut).map { ($0.errorCode, $0.address(.xorPeerAddress)) }
      _ = conversation.take(cut, using: &generator)
    }
  }

  @Test func urlsAreReadAsTheRFCsHaveThem() {
    func parts(_ text: String) -> String? {
      TURNServerURL(text).map { "\($0.host) \($0.port) \($0.transport) \($0.isTURN)" }
    }
    #expect(parts("turn:a.example") == "a.example 3478 udp true")
    #expect(parts("turn:a.example:80?transport=tcp") == "a.example 80 tcp true")
    #expect(parts("turns:a.example:443?transport=tcp") == "a.example 443 tls true")
    #expect(parts("turns:a.example") == "a.example 5349 tls true")
    #expect(parts("stun:[::1]:7") == "::1 7 udp false")
    for bad in [
      "turns:a?transport=udp", "turn:", "turn:a:0", "turn:a:b", "turn:[::1", "http://a", "turn:a?transport=x",
    ] {
      #expect(TURNServerURL(bad) == nil, "\(bad)")
    }
  }

  private static func refuse(_ message: inout TURNMessage, _ code: Int, realm: String? = nil, nonce: String? = nil) {
    message.add(.errorCode, [0, 0, UInt8(code / 100), UInt8(code % 100)])
    if let realm { message.add(.realm, realm.utf8) }
    if let nonce { message.add(.nonce, nonce.utf8) }
  }

  /// Answers a request; returns the next one.
  private mutating func answer(
    _ conversation: inout TURNConversation, _ request: TURNMessage, _ kind: TURNMessage.Kind,
    _ fill: (inout TURNMessage) -> Void
  ) throws -> TURNMessage {
    var answer = TURNMessage(request.method, kind, transaction: request.transaction)
    fill(&answer)
    guard case .send(let next) = conversation.take(answer.encoded(), using: &generator) else { throw Unexpected() }
    return try #require(TURNMessage(next))
  }

  private mutating func end(
    _ conversation: inout TURNConversation, _ request: TURNMessage, _ kind: TURNMessage.Kind,
    _ fill: (inout TURNMessage) -> Void
  ) throws -> TURNConversation.Outcome {
    var answer = TURNMessage(request.method, kind, transaction: request.transaction)
    fill(&answer)
    guard case .end(let outcome) = conversation.take(answer.encoded(), using: &generator) else { throw Unexpected() }
    return outcome
  }

  private struct Unexpected: Error {}
}
