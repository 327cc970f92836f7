import MediaModel
import Testing
import Transport

@testable import Forwarding

/// Handshakes whose steps another thread carries out, while packets and commands go on.
struct HandshakeTests {
  /// The first datagram of a client's handshake.
  private func hello(_ call: SimulatedCall) -> [UInt8] {
    let session = DTLSSession(
      role: .client, certificate: TestPeer.certificate, remoteFingerprint: SimulatedCall.certificate.fingerprint)
    var hello: [UInt8] = []
    _ = session.start(now: call.now) { hello = Array($0) }
    return hello
  }

  @Test func packetsAreForwardedWhileAStepIsCarriedOut() throws {
    let call = SimulatedCall(stepTime: 400)
    let (a, b) = (call.join(), call.join())
    try call.connect()
    call.run(milliseconds: 500)
    let late = call.join()
    call.run(milliseconds: 100)
    try #require(!call.handshakes[0].isIdle)
    let (before, finished) = (b.serials(of: a.tracks[0]).count, call.handshakes[0].finished)
    call.run(milliseconds: 200)
    #expect(b.serials(of: a.tracks[0]).count >= before + 9)
    #expect(call.handshakes[0].finished == finished && !late.isConnected)
    try call.connect()
    call.run(milliseconds: 1_000)
    #expect(late.serials(of: a.tracks[0]).count > 40)
  }

  @Test(arguments: [0, 3, 60] as [UInt64], isRelease ? Array(1...10) : [1] as [UInt64])
  func handshakesEndOverAPoorPath(stepTime: UInt64, seed: UInt64) throws {
    var conditions = NetworkConditions()
    conditions.loss = 0.15
    conditions.duplication = 0.15
    conditions.delay = 2...40
    let call = SimulatedCall(seed: seed, conditions, stepTime: stepTime)
    for _ in 0..<4 { call.join() }
    // Runs of one seed differ. A client repeats its flight after 0.25, 0.5, 1, 2 and then every 4 s, so one that loses five exchanges in a row needs
    // longer than other tests wait.
    try call.connect(seconds: 30)
    #expect(call.sfu.counters.drops(.handshakeFailed) == 0)
    #expect(call.handshakes[0].finished >= 8, "two datagrams of each client at least")
  }

  /// Anyone can write the peer's address into an IP header.
  @Test func datagramsThatWaitAreBoundedAndTheHandshakeEnds() throws {
    let call = SimulatedCall(stepTime: 50)
    let peer = call.join()
    let hello = hello(call)
    for _ in 0..<100 where call.handshakes[0].isIdle { call.run(milliseconds: 1) }
    try #require(!call.handshakes[0].isIdle)
    for _ in 0..<50 { call.receive(hello, from: peer.address) }
    #expect(call.sfu.counters.drops(.handshakeBusy) == UInt64(50 - Association.maximumWaiting))
    try call.connect()
  }

  @Test func aPeerCanGoWhileAStepOfItsIsCarriedOut() throws {
    let call = SimulatedCall(stepTime: 100)
    let peer = call.join()
    for _ in 0..<100 where call.handshakes[0].isIdle { call.run(milliseconds: 1) }
    try #require(!call.handshakes[0].isIdle)
    call.command(.remove(peer.configuration.peer))
    let sent = call.sfu.counters.datagramsOut
    // The participant comes again: the result of the old step is not its own.
    call.configure(peer)
    peer.isPresent = false
    call.run(milliseconds: 500)
    #expect(call.handshakes[0].isIdle && call.handshakes[0].finished == 1)
    #expect(call.sfu.counters.datagramsOut == sent)
    #expect(call.sfu.counters.peers == 1 && call.sfu.counters.connected == 0)
  }

  @Test func aSpoiledHandshakeBeginsAgain() throws {
    let call = SimulatedCall(stepTime: 20)
    let peer = call.join()
    for _ in 0..<100 where call.handshakes[0].isIdle { call.run(milliseconds: 1) }
    try #require(!call.handshakes[0].isIdle)
    peer.isPresent = false
    // A record of DTLS 1.2 with ServerHelloDone, which no client sends.
    let forged: [UInt8] = [22, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 9, 0, 12, 14, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0]
    call.receive(forged, from: peer.address)
    call.receive(hello(call), from: peer.address)
    call.run(milliseconds: 60)
    #expect(call.sfu.counters.drops(.handshakeFailed) == 1)
    #expect(call.sfu.counters.drops(.notConnected) >= 1, "what waited for the spoiled one")
    try #require(call.handshakes[0].isIdle)
    let (sent, finished) = (call.sfu.counters.datagramsOut, call.handshakes[0].finished)
    call.receive(hello(call), from: peer.address)
    call.run(milliseconds: 60)
    #expect(call.handshakes[0].finished == finished + 1)
    #expect(call.sfu.counters.datagramsOut > sent, "the server's flight")
  }
}
