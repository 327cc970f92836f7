import MediaModel
import Testing
import Transport

@testable import Forwarding

/// Media goes only to addresses whose owner has proved to receive it, and only as long as that address consents. The
/// attacker is a member: it has a password, keys and authentic packets, and can write any source into an IP header, but
/// does not get what is sent to its victim.
struct ProofTests {
  private let victim = SocketAddress(ipv4: 0x0909_0909, port: 4444)

  /// The datagrams of one kind that the server sent to the victim.
  private func sent(_ call: SimulatedCall, _ kind: DatagramKind) -> [Datagram] {
    call.strayed.filter { datagram in
      datagram.destination == victim && datagram.bytes.withUnsafeBytes { DatagramKind.classify($0.bytes) } == kind
    }
  }

  /// Passes the peer's output to the server as if it came from `source`.
  private func spoof(_ call: SimulatedCall, _ peer: TestPeer, from source: SocketAddress, _ send: () -> Void) {
    #expect(peer.takeOutput().isEmpty)
    send()
    for bytes in peer.takeOutput() { call.receive(bytes, from: source) }
  }

  private func connected() throws -> (SimulatedCall, speaker: TestPeer, member: TestPeer) {
    let call = SimulatedCall()
    let speaker = call.join()
    let member = call.join()
    try call.connect()
    call.run(milliseconds: 500)
    return (call, speaker, member)
  }

  /// The attack `spoof_redirect`: one request of 88 bytes directed 6 MB a minute at a third party.
  @Test func oneSpoofedNominationSendsTheVictimAFewChecksAndNoMedia() throws {
    let (call, speaker, member) = try connected()
    let before = member.serials(of: speaker.tracks[1]).count
    spoof(call, member, from: victim) { member.check() }
    call.run(milliseconds: 60_000)
    #expect(Set(call.strayed.map(\.destination)) == [victim])
    #expect(sent(call, .stun).count == call.strayed.count, "nothing but answers and checks")
    #expect((2...5).contains(call.strayed.count), "the answer, and a round of checks")
    #expect(call.strayed.map(\.bytes.count).max() ?? 0 < 160)
    #expect(member.serials(of: speaker.tracks[1]).count - before > 60 * 80, "the member's own media continued")
  }

  @Test func spoofedNominationsWithoutEndMakeFewChecks() throws {
    let (call, _, member) = try connected()
    let start = call.sfu.counters.checksSent
    for _ in 0..<600 {
      spoof(call, member, from: victim) { member.check() }
      call.run(milliseconds: 100)
    }
    let checks = call.sfu.counters.checksSent - start
    #expect((10...80).contains(checks))
    #expect(sent(call, .stun).count == 600 + Int(checks), "each request is answered once")
    #expect(sent(call, .rtp).isEmpty && sent(call, .rtcp).isEmpty && sent(call, .dtls).isEmpty)
  }

  @Test func authenticMediaUnderASpoofedAddressProvesNothing() throws {
    let (call, speaker, member) = try connected()
    spoof(call, member, from: victim) { member.check() }
    let forwarded = speaker.serials(of: member.tracks[0]).count
    member.spoofedSource = victim
    for _ in 0..<30 {
      call.run(milliseconds: 100)
      spoof(call, member, from: member.address) { member.check() }
    }
    #expect(speaker.serials(of: member.tracks[0]).count > forwarded + 100, "it is media all the same")
    #expect(sent(call, .rtp).isEmpty && sent(call, .rtcp).isEmpty)
  }

  /// The attacker gets a check at its own address and answers it from the victim's.
  @Test func anAnswerCountsOnlyFromTheAddressThatWasAsked() throws {
    let (call, _, member) = try connected()
    let other = SocketAddress(ipv4: 0x0505_0505, port: 1)
    spoof(call, member, from: victim) { member.check() }
    spoof(call, member, from: other) { member.check() }
    let check = try #require(call.strayed.last { $0.destination == other && $0.bytes[0] == 0 })
    let reply = try #require(check.bytes.withUnsafeBytes { member.answer($0) })
    let drops = call.sfu.counters.drops(.unexpected)
    call.receive(reply, from: victim)
    #expect(call.sfu.counters.drops(.unexpected) == drops + 1)
    #expect(call.sfu.paths.addresses[victim]?.isProven == false)
    call.receive(reply, from: other)
    #expect(call.sfu.paths.addresses[other]?.isProven == true)
  }

  @Test func forgedAnswersProveNothing() throws {
    let (call, _, member) = try connected()
    spoof(call, member, from: victim) { member.check() }
    let check = try #require(sent(call, .stun).last { $0.bytes[0] == 0 })
    let reply = try #require(check.bytes.withUnsafeBytes { member.answer($0) })
    // With the member's own password but for another transaction; and for this one, but changed.
    for place in reply.indices where place != 19 {
      var forged = reply
      forged[place] ^= 1
      call.receive(forged, from: victim)
    }
    let guess = try #require(answer(of: member, toCheckOf: (1, 2)))
    call.receive(guess, from: victim)
    #expect(call.sfu.paths.addresses[victim]?.isProven == false)
    call.receive(reply, from: victim)
    #expect(call.sfu.paths.addresses[victim]?.isProven == true, "the forgeries did not use up the check")
  }

  /// An answer with the right password to a check that the server has not sent.
  private func answer(of member: TestPeer, toCheckOf transaction: (UInt64, UInt32)) -> [UInt8]? {
    let configuration = member.configuration
    let checker = ConnectivityChecker(
      role: .controlled, local: configuration.local, remote: configuration.remote, tieBreaker: 1)
    var check = [UInt8](repeating: 0, count: ConnectivityChecker.checkCapacity)
    let length = check.withUnsafeMutableBytes { checker?.makeCheck(of: victim, transaction: transaction, into: $0) }
    return check[..<(length ?? 0)].withUnsafeBytes { member.answer($0) }
  }

  @Test func aHandshakeOverOneAddressProvesIt() throws {
    let call = SimulatedCall()
    let speaker = call.join()
    let simple = call.join()
    simple.answersChecks = false
    try call.connect()
    call.run(milliseconds: 15_000)
    #expect(simple.serials(of: speaker.tracks[0]).count > 600)
    // It need not prove it again after a silence.
    simple.isPresent = false
    call.run(milliseconds: 12_000)
    #expect(call.sfu.counters.connected == 1)
    simple.isPresent = true
    simple.check()
    call.run(milliseconds: 200)
    #expect(call.sfu.counters.connected == 2)
  }

  /// The attacker receives the server's flight at its own address, and finishes the handshake under the victim's.
  @Test func aHandshakeThatEndsUnderAnotherAddressProvesNeither() throws {
    let call = SimulatedCall()
    call.join()
    try call.connect()
    let member = call.join()
    member.answersChecks = false
    // Waits until the ClientHello is in flight.
    call.run(milliseconds: 15)
    member.spoofedSource = victim
    member.check()
    call.run(milliseconds: 5_000)
    #expect(call.sfu.peers[1].transport.sender != nil, "the handshake is done")
    #expect(call.sfu.counters.connected == 1, "no media")
    #expect(sent(call, .rtp).isEmpty && sent(call, .rtcp).isEmpty)
    member.spoofedSource = nil
    member.answersChecks = true
    member.check()
    call.run(milliseconds: 5_000)
    #expect(call.sfu.counters.connected == 2 && member.isConnected)
  }

  @Test func aSpoofedHandshakeSendsTheVictimFewFlights() throws {
    let call = SimulatedCall()
    let member = call.join()
    member.isPresent = false
    spoof(call, member, from: victim) { member.check() }
    // Its ClientHello, repeated from the victim's address.
    let session = DTLSSession(
      role: .client, certificate: TestPeer.certificate, remoteFingerprint: SimulatedCall.certificate.fingerprint)
    var hello: [UInt8] = []
    _ = session.start(now: call.now) { hello = Array($0) }
    for _ in 0..<1_200 {
      call.receive(hello, from: victim)
      call.run(milliseconds: 50)
    }
    #expect((1...90).contains(sent(call, .dtls).count))
    #expect(sent(call, .dtls).map(\.bytes.count).reduce(0, +) < 1_200 * hello.count, "less than was asked for")
  }

  /// A peer that stops at its chosen address and continues at another has no longer consented to media at the first.
  @Test func consentIsEachAddressesOwn() throws {
    let (call, speaker, member) = try connected()
    let old = member.address
    member.address = SocketAddress(ipv4: 0x0505_0505, port: 1234)
    member.check()
    call.run(milliseconds: 2_000)
    let new = member.address
    #expect(call.sfu.peers[1].pair?.address == new)
    // From here on it uses only its old address, and does not say where it wants its media.
    member.address = old
    member.isChecking = false
    let before = member.serials(of: speaker.tracks[0]).count
    call.run(milliseconds: 12_000)
    #expect(call.sfu.peers[1].pair?.address == old)
    let last = try #require(call.strayed.last { $0.destination == new })
    #expect(last.destination == new && member.serials(of: speaker.tracks[0]).count > before + 50)
    let strayed = call.strayed.count
    call.run(milliseconds: 5_000)
    #expect(call.strayed.count == strayed, "not one more to the address without consent")
    let lost = call.events.contains { if case .disconnected = $0 { true } else { false } }
    #expect(!lost)
  }

  @Test func aProvenAddressIsNotTakenWhileItsConsentLasts() throws {
    let (call, speaker, member) = try connected()
    speaker.isPresent = false
    call.run(milliseconds: 8_000)
    spoof(call, member, from: speaker.address) { member.check() }
    #expect(call.sfu.paths.addresses[speaker.address]?.peer.id == speaker.configuration.peer)
    #expect(call.sfu.counters.drops(.addressTaken) == 1)
    call.run(milliseconds: 3_000)
    spoof(call, member, from: speaker.address) { member.check() }
    #expect(call.sfu.paths.addresses[speaker.address]?.peer.id == member.configuration.peer)
  }

  @Test func checksThatAreLostAreSentAgain() throws {
    let call = SimulatedCall(seed: 11, .init(loss: 0.25))
    for _ in 0..<3 { call.join() }
    try call.connect()
    call.peers[1].address = SocketAddress(ipv4: 0x0505_0505, port: 1234)
    let new = call.peers[1].address
    for _ in 0..<20 where call.sfu.peers[1].pair?.address != new {
      call.peers[1].check()
      call.run(milliseconds: 1_000)
    }
    #expect(call.sfu.peers[1].pair?.address == new)
  }

  @Test func aStrangersAnswerIsCountedAndForgotten() throws {
    let (call, _, member) = try connected()
    let drops = call.sfu.counters.drops(.unexpected)
    call.receive([1, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42] + [UInt8](repeating: 7, count: 12), from: victim)
    call.receive([1, 1, 0, 0, 0x21, 0x12, 0xa4, 0x42] + [UInt8](repeating: 7, count: 12), from: member.address)
    #expect(call.sfu.counters.drops(.unexpected) == drops + 2)
  }
}
