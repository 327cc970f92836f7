import MediaModel
import Octets
import Testing

@testable import Forwarding

/// ICE and DTLS: a peer's addresses, and whether it is connected.
struct PathTests {
  @Test func aPeerThatMovesIsFollowed() throws {
    let call = SimulatedCall()
    let a = call.join()
    let b = call.join()
    try call.connect()
    call.run(milliseconds: 500)
    let old = b.address
    b.address = SocketAddress(ipv4: 0x0505_0505, port: 1234)
    let before = b.serials(of: a.tracks[0]).count
    b.check()
    call.run(milliseconds: 500)
    #expect(b.serials(of: a.tracks[0]).count > before + 20)
    #expect(!call.strayed.isEmpty && call.strayed.allSatisfy { $0.destination == old })
    #expect(call.strayed.count < 20)
  }

  @Test func aPathThatEndsIsLeft() throws {
    let call = SimulatedCall()
    let a = call.join()
    let b = call.join()
    try call.connect()
    let old = b.address
    var connection = SocketAddress(ipv4: old.ipv4, port: old.port)
    connection.connection = 3
    b.address = connection
    b.check()
    call.run(milliseconds: 500)
    #expect(call.sfu.isPath(connection) && call.sfu.isPath(old))
    call.sfu.forget(connection, now: call.now)
    #expect(!call.sfu.isPath(connection))
    b.address = old
    let before = b.serials(of: a.tracks[0]).count
    call.run(milliseconds: 500)
    #expect(b.serials(of: a.tracks[0]).count > before + 20)
    // The last one: there is no other path until a new one comes.
    call.sfu.forget(old, now: call.now)
    call.sfu.forget(old, now: call.now)
    b.address = SocketAddress(ipv4: 0x0505_0505, port: 1234)
    b.check()
    let last = b.serials(of: a.tracks[0]).count
    call.run(milliseconds: 500)
    #expect(b.serials(of: a.tracks[0]).count > last + 20)
  }

  @Test func anICERestartKeepsTheMediaGoing() throws {
    let call = SimulatedCall()
    let a = call.join()
    let b = call.join()
    try call.connect()
    call.run(milliseconds: 500)
    let before = a.serials(of: b.tracks[1]).count
    b.restartICE()
    call.configure(b)
    call.run(milliseconds: 12_000)
    #expect(a.serials(of: b.tracks[1]).count > before + 500)
    #expect(call.connections(of: b) == ["connected"])
  }

  @Test func silenceDisconnectsAndChecksConnectAgain() throws {
    let call = SimulatedCall()
    let a = call.join()
    let b = call.join()
    try call.connect()
    call.run(milliseconds: 1000)
    b.isPresent = false
    call.run(milliseconds: 9500)
    #expect(call.connections(of: b) == ["connected"])
    call.run(milliseconds: 600)
    #expect(call.connections(of: b) == ["connected", "silent 10"])
    let sent = call.sfu.counters.forwarded
    call.run(milliseconds: 1000)
    #expect(call.sfu.counters.forwarded == sent, "nothing is sent without consent")
    b.isPresent = true
    b.check()
    call.run(milliseconds: 1000)
    #expect(call.connections(of: b) == ["connected", "silent 10", "connected"])
    #expect(call.sfu.counters.forwarded > sent)
    #expect(call.connections(of: a) == ["connected"])
  }

  @Test func aClosedAssociationIsSaidAtOnce() throws {
    let call = SimulatedCall()
    let a = call.join()
    try call.connect()
    a.close()
    call.run(milliseconds: 50)
    #expect(call.connections(of: a) == ["connected", "silent 0"])
    call.run(milliseconds: 2000)
    #expect(call.connections(of: a) == ["connected", "silent 0"])
    #expect(call.sfu.counters.connected == 0)
  }

  @Test func anotherPeersAddressCannotBeTaken() throws {
    let call = SimulatedCall()
    let a = call.join()
    let b = call.join()
    try call.connect()
    let own = b.address
    b.address = a.address
    b.check()
    call.run(milliseconds: 3)
    b.address = own
    call.run(milliseconds: 500)
    #expect(call.sfu.counters.drops(.addressTaken) > 0)
    #expect(call.sfu.paths.addresses[a.address]?.peer.id == a.configuration.peer)
  }

  @Test func addressesOfOnePeerAreBounded() throws {
    let call = SimulatedCall()
    let a = call.join()
    try call.connect()
    for i in 0..<50 {
      a.address = SocketAddress(ipv4: 0x0606_0000 + UInt32(i), port: 1)
      a.check()
      call.run(milliseconds: 15)
    }
    #expect(call.sfu.paths.addresses.count == Peer.maximumPairs)
    #expect(call.sfu.paths.addresses[a.address] != nil)
  }

  @Test func removingFreesEverything() throws {
    let call = SimulatedCall()
    for _ in 0..<3 { call.join() }
    try call.connect()
    call.run(milliseconds: 200)
    weak let peer = call.sfu.peers[0]
    weak let track = call.sfu.peers[0].upTracks[0]
    for peer in call.peers { call.command(.remove(peer.configuration.peer)) }
    #expect(peer == nil && track == nil)
    #expect(call.sfu.counters.peers == 0 && call.sfu.counters.connected == 0)
    #expect(call.sfu.paths.addresses.count == 0 && call.sfu.calls.isEmpty && call.sfu.paths.peersByFragment.isEmpty)
    call.run(milliseconds: 2000)
    #expect(call.peers.allSatisfy { $0.isClosed })
    #expect(call.sfu.nextTimeout == nil)
  }

  @Test func theAddressTableFindsWhatItHolds() {
    let table = AddressTable(seed: 9)
    let peer = Peer(SimulatedCall().join().configuration, call: ForwardedCall(SimulatedCall.name))
    var random = SplitMix64(seed: 3)
    var model: Set<SocketAddress> = []
    var pairs: [SocketAddress: CandidatePair] = [:]
    for _ in 0..<5000 {
      let address = SocketAddress(ipv4: UInt32(random.next() % 50), port: UInt16(random.next() % 20))
      if Bool.random(using: &random) {
        let pair = CandidatePair(peer, address, now: instant(0))
        pairs[address] = pair
        table.insert(pair)
        model.insert(address)
      } else {
        table.remove(address)
        model.remove(address)
      }
      #expect(table.count == model.count)
    }
    for host in 0..<50 as Range<UInt32> {
      for port in 0..<20 as Range<UInt16> {
        let address = SocketAddress(ipv4: host, port: port)
        #expect((table[address] != nil) == model.contains(address))
      }
    }
  }
}

extension SimulatedCall {
  /// The peer's connection events: "connected", "silent <seconds>".
  fileprivate func connections(of peer: TestPeer) -> [String] {
    events.compactMap { event in
      switch event {
      case .connected(peer.configuration.peer): "connected"
      case .disconnected(peer.configuration.peer, let silence): "silent \(silence.components.seconds)"
      default: nil
      }
    }
  }
}
