import CAllocations
import MediaModel
import Seeded
import Testing
import Transport

struct DTLSSessionTests {
  static let serverCertificate = DTLSCertificate()
  static let p256 = DTLSCertificate()
  static let rsa = DTLSCertificate(keyType: .rsa2048)

  private func network(
    client certificate: DTLSCertificate = p256, mtu: Int = 1200, seed: UInt64 = 0,
    conditions: DTLSNetwork.Conditions = .init(), clientFingerprint: CertificateFingerprint? = nil,
    serverFingerprint: CertificateFingerprint? = nil
  ) -> DTLSNetwork {
    DTLSNetwork(
      client: DTLSSession(
        role: .client, certificate: certificate,
        remoteFingerprint: serverFingerprint ?? Self.serverCertificate.fingerprint, maximumDatagram: mtu),
      server: DTLSSession(
        role: .server, certificate: Self.serverCertificate,
        remoteFingerprint: clientFingerprint ?? certificate.fingerprint, maximumDatagram: mtu),
      seed: seed, conditions: conditions)
  }

  private func expectSameKeys(_ network: DTLSNetwork, _ comment: Comment? = nil) throws {
    let (clientKeys, serverKeys) = (network.client.keys, network.server.keys)
    let client = try #require(clientKeys, comment)
    let server = try #require(serverKeys, comment)
    #expect(client.profile == .aeadAES128GCM && server.profile == .aeadAES128GCM)
    #expect(client.outbound.key == server.inbound.key && client.outbound.salt == server.inbound.salt)
    #expect(client.inbound.key == server.outbound.key && client.inbound.salt == server.outbound.salt)
    #expect(client.outbound.key != client.inbound.key)
    #expect(client.outbound.key.count == 16 && client.outbound.salt.count == 12)
  }

  @Test(arguments: [p256, rsa])
  func connectsInTwoRoundTrips(client: DTLSCertificate) throws {
    let network = network(client: client)
    network.run()
    try expectSameKeys(network)
    #expect(network.now == Instant(nanoseconds: 21_000_000), "four flights of 5 ms")
    #expect(network.client.session.nextTimeout == nil && network.server.session.nextTimeout == nil)
  }

  @Test(arguments: [p256, rsa], [400, 576, 1200, 1350])
  func keepsToTheLargestDatagram(client: DTLSCertificate, mtu: Int) throws {
    let network = network(client: client, mtu: mtu)
    network.run()
    try expectSameKeys(network)
    let longest = (network.client.sent + network.server.sent).map(\.count).max() ?? 0
    #expect(longest <= mtu)
  }

  @Test(arguments: 0..<24 as Range<UInt64>)
  func connectsOverABadNetwork(seed: UInt64) throws {
    let network = network(
      client: seed % 2 == 0 ? Self.p256 : Self.rsa, mtu: seed % 3 == 0 ? 400 : 1200, seed: seed,
      conditions: .init(loss: 0.25, duplication: 0.2, jitter: .milliseconds(80)))
    network.run()
    try expectSameKeys(network, "seed \(seed)")
  }

  @Test func repeatsEachLostFlight() throws {
    // Each datagram of both sides is lost once, one per run, including the server's last flight.
    for (isFromClient, number) in [(true, 0), (true, 1), (false, 0), (false, 1)] {
      let network = network()
      network.isLost = { $0 == isFromClient && $1 == number }
      network.run()
      try expectSameKeys(network, "\(isFromClient ? "client" : "server") datagram \(number)")
      #expect(network.now < Instant(nanoseconds: 600_000_000))
    }
  }

  @Test func aWrongClientCertificateEndsItBeforeKeys() {
    let network = network(clientFingerprint: Self.rsa.fingerprint)
    network.run()
    #expect(network.server.failure == .wrongFingerprint)
    #expect(network.client.failure == .handshake)
    #expect(!network.client.isConnected && !network.server.isConnected)
  }

  @Test func aWrongServerCertificateEndsItBeforeKeys() {
    let network = network(serverFingerprint: Self.rsa.fingerprint)
    network.run()
    #expect(network.client.failure == .wrongFingerprint)
    #expect(!network.client.isConnected && !network.server.isConnected)
  }

  @Test(arguments: ["sha-1", "md5", "sha-256", "SHA-256", ""])
  func aFingerprintThatProvesNothingIsWrong(hash: String) {
    // The right digest by another name, or a digest cut short.
    let digest = hash == "sha-256" ? [] : Self.p256.fingerprint.digest
    let network = network(clientFingerprint: CertificateFingerprint(hash: hash, digest: digest))
    network.run()
    #expect(network.server.failure == .wrongFingerprint)
    #expect(!network.server.isConnected)
  }

  @Test func gives30SecondsAndThenUp() {
    let network = network()
    network.isLost = { isFromClient, _ in isFromClient }
    network.run()
    #expect(network.client.failure == .timedOut)
    #expect(network.now == Instant(nanoseconds: 30_001_000_000))
    let repeats = network.client.sent.count
    #expect((8...16).contains(repeats), "the intervals grow")
    #expect(network.client.session.nextTimeout == nil)
  }

  @Test func ignoresWhatIsNotItsPeers() throws {
    let network = network()
    var generator = SeededGenerator(seed: 9)
    // Garbage and unencrypted application data, before, during and after the handshake.
    let noise = { (generator: inout SeededGenerator) in
      [
        [UInt8(20 + generator.next() % 44)] + generator.bytes(Int(generator.next() % 200)),
        hex("17 fefd 0000 000000000009 0005") + Array("hello".utf8), hex("16 feff 0001 000000000000 0001 00"), [22], [],
      ]
    }
    for datagram in noise(&generator) { network.deliver(datagram, toServer: true) }
    for _ in 0..<2 {
      network.run()
      for _ in 0..<50 {
        for datagram in noise(&generator) {
          network.deliver(datagram, toServer: true)
          network.deliver(datagram, toServer: false)
        }
      }
      #expect(!network.client.isOver && !network.server.isOver)
    }
    try expectSameKeys(network)
  }

  /// From the client's address, at each step of the handshake: instead of, and after, the client's last datagram.
  @Test func aForgedAlertInClearDoesNotSpoilTheServersHandshake() throws {
    let network = network()
    var number: UInt8 = 0
    var alert: [UInt8] {
      number += 1
      return [21, 0xfe, 0xfd, 0, 0, 0, 0, 0, 0, 0, 100 + number, 0, 2, 2, 40]
    }
    network.deliver(alert, toServer: true)
    network.start()
    repeat {
      network.deliver(alert, toServer: true)
      network.deliver((network.client.sent.last ?? []) + alert, toServer: true)
    } while (!network.client.isConnected || !network.server.isConnected) && network.step()
    network.deliver(alert, toServer: true)
    #expect(!network.server.isOver && number > 8)
    try expectSameKeys(network)
  }

  @Test func aFloodEndsTheHandshake() {
    let network = network()
    let record = hex("16 fefd 0005 000000000000 0400") + [UInt8](repeating: 0xff, count: 1024)
    for _ in 0..<100 where network.server.end == nil { network.deliver(record, toServer: true) }
    #expect(network.server.failure == .flooded)
  }

  @Test(.enabled(if: allocations_are_counted()))
  func keepsABoundedNumberOfRecordsOfALaterEpoch() {
    let network = network()
    network.isLost = { isFromClient, number in isFromClient && number > 0 }
    network.run(until: 2)
    let records = (0..<60 as Range<UInt8>).map {
      hex("16 fefd 0001 0000000000") + [$0] + hex("0028") + [UInt8](repeating: $0, count: 40)
    }
    var allocations = records.map { record in
      record.withUnsafeBytes { record in
        let before = allocations_of_this_thread()
        _ = network.server.session.handle(record, now: network.now) { _ in }
        return allocations_of_this_thread() - before
      }
    }
    #expect(allocations.removeFirst() > 0, "the first ones wait for their epoch")
    #expect(allocations.suffix(20).allSatisfy { $0 == 0 }, "the last ones do not")
  }

  @Test func closingIsHeard() throws {
    let network = network()
    network.run()
    var farewell: [[UInt8]] = []
    network.client.session.close { farewell.append(Array($0)) }
    #expect(farewell.count == 1)
    for datagram in farewell { network.deliver(datagram, toServer: true) }
    guard case .closed = network.server.end else {
      Issue.record("not closed")
      return
    }
    for datagram in farewell { network.deliver(datagram, toServer: true) }
    network.client.session.close { _ in Issue.record("a closed session sends nothing") }
  }

  @Test func repeatsToAConnectedServerAreAnsweredABoundedNumberOfTimes() throws {
    let network = network()
    network.run()
    try expectSameKeys(network)
    let before = network.server.sent.count
    let repeated = network.client.sent.last ?? []
    for _ in 0..<1000 { network.deliver(repeated, toServer: true) }
    let answers = network.server.sent.count - before
    #expect((1...40).contains(answers))
    #expect(!network.server.isOver)
  }

  @Test func secretsHaveNoDescription() throws {
    let network = network()
    network.run()
    let keys = try #require(network.server.keys)
    #expect("\(keys)" == "keys" && "\(keys.inbound)" == "key")
  }

  /// Mutated copies of a real handshake, with new servers and clients: nothing traps, no keys result, and nobody
  /// answers with more than a flight.
  @Test func survivesMutations() {
    let seed: UInt64 = 0x4454_4c53
    var generator = SeededGenerator(seed: seed)
    let recorded = network(mtu: 400)
    recorded.run()
    for _ in 0..<300 {
      let network = network()
      if generator.next() % 2 == 0 { network.run(until: Int(generator.next() % 4)) }
      for _ in 0..<12 {
        let toServer = generator.next() % 2 == 0
        let source = toServer ? recorded.client.sent : recorded.server.sent
        network.deliver(generator.mutated(source.randomElement(using: &generator) ?? []), toServer: toServer)
      }
      let answers = network.server.sent.count
      #expect(answers <= 60, "seed \(seed)")
    }
  }
}

extension DTLSNetwork.Side {
  fileprivate var isConnected: Bool { keys != nil }
  fileprivate var isOver: Bool { end != nil }
  fileprivate var failure: DTLSSession.Failure? {
    guard case .failed(let failure) = end else { return nil }
    return failure
  }
}

extension DTLSNetwork {
  /// Runs the ClientHello and `count` events.
  fileprivate func run(until steps: Int) {
    start()
    for _ in 0..<steps { _ = step() }
  }
}
