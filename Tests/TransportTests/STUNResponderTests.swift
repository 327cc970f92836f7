import CSTUN
import MediaModel
import Seeded
import Testing
import Transport

struct STUNResponderTests {
  private let responder = STUNResponder(role: .controlled)
  private let server = SocketAddress(ipv4: 0xc000_0201, port: 3478)
  private let source = SocketAddress(ipv4: 0xc633_6401, port: 40_000)

  /// The outcome and the reply.
  private func respond(
    _ datagram: [UInt8], from source: SocketAddress? = nil, passwords: [String: String] = ["evtj": STUNVectors.password]
  ) -> (STUNResponder.Response, [UInt8]) {
    var reply = [UInt8](repeating: 0xee, count: STUNResponder.replyCapacity)
    let outcome = datagram.withUnsafeBytes { datagram in
      reply.withUnsafeMutableBytes { reply in
        responder.respond(to: datagram, from: source ?? self.source, into: reply) { passwords[$0] }
      }
    }
    switch outcome {
    case .accepted(_, let length, _), .refused(let length): return (outcome, Array(reply.prefix(length)))
    case .dropped: return (outcome, reply.filter { $0 != 0xee })
    }
  }

  private func checker(password: String = "a-long-enough-password") throws -> ConnectivityChecker {
    try #require(
      ConnectivityChecker(
        role: .controlling, local: ICECredentials(fragment: "client", password: "unused"),
        remote: ICECredentials(fragment: "peer", password: password), tieBreaker: 7))
  }

  private func check(_ checker: ConnectivityChecker, _ transaction: UInt64 = 1) -> [UInt8] {
    var check = [UInt8](repeating: 0, count: ConnectivityChecker.checkCapacity)
    let length = check.withUnsafeMutableBytes { checker.makeCheck(of: server, transaction: (transaction, 2), into: $0) }
    return Array(check.prefix(length))
  }

  @Test(arguments: [
    SocketAddress(ipv4: 0x7f00_0001, port: 1), SocketAddress(high: 0x2001_0db8 << 32, low: 1, port: 65535),
    SocketAddress(high: 0xfe80 << 48, low: 9, port: 5000, scope: 3),
  ])
  func tellsAnAuthenticCheckItsAddress(source: SocketAddress) throws {
    let checker = try checker()
    let request = check(checker)
    let (outcome, reply) = respond(request, from: source, passwords: ["peer": "a-long-enough-password"])
    #expect(outcome == .accepted(localFragment: "peer", length: reply.count, nominated: true))
    #expect(reply.count <= request.count + 12, "only an IPv6 address makes the answer longer than the request")
    var mapped = source
    mapped.scope = 0
    #expect(reply.withUnsafeBytes { checker.handle($0, from: server) } == .succeeded(mapped: mapped))
  }

  @Test func tellsAControlledPeerToSwitchRoles() {
    // RFC 5769 2.1 comes from a controlled agent, and a lite server is always controlled.
    let (outcome, reply) = respond(STUNVectors.request)
    #expect(outcome == .refused(length: reply.count))
    #expect(reply.starts(with: [0x01, 0x11]), "an error response")
    #expect(reply.count <= STUNVectors.request.count)
    #expect(zip(reply.indices, reply.indices.dropFirst()).contains { reply[$0] == 4 && reply[$1] == 87 }, "487")
  }

  @Test func isSilentToEachFlippedByte() {
    for i in STUNVectors.request.indices {
      for bit in [UInt8(1), 0x80] {
        var request = STUNVectors.request
        request[i] ^= bit
        let (outcome, reply) = respond(request)
        guard case .dropped = outcome else {
          Issue.record("byte \(i) flipped: \(outcome)")
          continue
        }
        #expect(reply.isEmpty)
      }
    }
  }

  @Test func isSilentToAWrongPasswordAndAnUnknownFragment() {
    #expect(respond(STUNVectors.request, passwords: ["evtj": "wrong"]).0 == .dropped(.unauthenticated))
    #expect(respond(STUNVectors.request, passwords: ["evtj": ""]).0 == .dropped(.unknownPeer))
    #expect(respond(STUNVectors.request, passwords: ["other": STUNVectors.password]).0 == .dropped(.unknownPeer))
  }

  @Test func isSilentToResponses() {
    #expect(respond(STUNVectors.responseIPv4).0 == .dropped(.unexpected))
  }

  @Test func isSilentToEachTruncation() {
    for count in STUNVectors.request.indices {
      guard case .dropped = respond(Array(STUNVectors.request.prefix(count))).0 else {
        Issue.record("\(count) bytes were answered")
        continue
      }
    }
  }

  @Test func refusesAnAttributeThatItMustUnderstand() {
    let (outcome, reply) = respond(request(username: "evtj:x", attribute: 0x0777))
    #expect(outcome == .refused(length: reply.count))
    #expect(reply.starts(with: [0x01, 0x11]))
    #expect(zip(reply.indices, reply.indices.dropFirst()).contains { reply[$0] == 4 && reply[$1] == 20 }, "420")
  }

  @Test func acceptsAnAttributeThatItMayIgnore() {
    // 0xc057, GOOG-NETWORK-INFO, comes with each check of Chromium.
    let (outcome, reply) = respond(request(username: "evtj:x", attribute: 0xc057))
    #expect(outcome == .accepted(localFragment: "evtj", length: reply.count, nominated: false))
  }

  @Test func acceptsTheLongestUsernameAndNoLonger() {
    let fragment = String(repeating: "f", count: 256)
    let passwords = [fragment: STUNVectors.password]
    let (outcome, reply) = respond(
      request(username: fragment + ":" + fragment, attribute: 0xc057), passwords: passwords)
    #expect(outcome == .accepted(localFragment: fragment, length: reply.count, nominated: false))
    let longer = respond(request(username: fragment + "f:x", attribute: 0xc057), passwords: passwords).0
    #expect(longer == .dropped(.malformed))
  }

  @Test(arguments: ["evtj", ":x", ""])
  func isSilentToAUsernameWithoutAFragment(username: String) {
    #expect(respond(request(username: username, attribute: 0xc057)).0 == .dropped(.malformed))
  }

  @Test(arguments: [0, 4, 16])
  func isSilentToAShortIntegrity(length: Int) {
    // libnice compares 20 bytes, whatever the attribute's length.
    var message = hex("00010000 2112a442 00000000 00000000 00000000 00060008 6576746a 3a683676 0008")
    message += [0, UInt8(length)] + [UInt8](repeating: 0, count: length)
    message[3] = UInt8(message.count - 20 + 8)
    var crc = UInt32.max
    for byte in message {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 1 ? crc >> 1 ^ 0xedb8_8320 : crc >> 1 }
    }
    crc = ~crc ^ 0x5354_554e
    message += [0x80, 0x28, 0, 4] + (0..<4).map { UInt8(truncatingIfNeeded: crc >> (24 - 8 * $0)) }
    #expect(respond(message).0 == .dropped(.malformed))
  }

  @Test func survivesMutations() throws {
    let seed: UInt64 = 0x5754_554e
    var generator = SeededGenerator(seed: seed)
    let client = try checker(password: STUNVectors.password)
    let seeds = [STUNVectors.request, STUNVectors.responseIPv4, STUNVectors.responseIPv6, check(client)]
    for _ in 0..<20_000 {
      let datagram = generator.mutated(seeds[Int(generator.next() % 4)])
      if case .accepted = respond(datagram).0 { Issue.record("accepted, seed \(seed): \(datagram)") }
      let answer = datagram.withUnsafeBytes { client.handle($0, from: server) }
      if case .succeeded = answer {
        Issue.record("succeeded, seed \(seed): \(datagram)")
      }
    }
  }

  /// A signed Binding request with one more attribute of 4 bytes.
  private func request(username: String, attribute: UInt32) -> [UInt8] {
    var buffer = [UInt8](repeating: 0, count: 1000)
    let agent = UnsafeMutablePointer<StunAgent>.allocate(capacity: 1)
    defer { agent.deallocate() }
    cstun_agent_init(agent)
    let length = buffer.withUnsafeMutableBufferPointer { buffer in
      var message = StunMessage()
      stun_agent_init_request(agent, &message, buffer.baseAddress, buffer.count, STUN_BINDING)
      stun_message_append32(&message, StunAttribute(attribute), 1)
      stun_message_append_bytes(&message, STUN_ATTRIBUTE_USERNAME, username, username.utf8.count)
      let key = Array(STUNVectors.password.utf8)
      return stun_agent_finish_message(agent, &message, key, key.count)
    }
    return Array(buffer.prefix(length))
  }
}
