import MediaModel
import Octets
import Paths
import RTP
import Testing

@testable import Forwarding

/// A slot has its own numbers: no source can make its receiver lose track of them. `SentNumbers` and `UnluckyReceiver`
/// check it in every simulated call.
struct SlotNumberTests {
  /// The viewer gets a packet, loses the next, and gets the one after it. The source's numbers jump twice meanwhile, so
  /// that the receiver would guess another rollover counter than the server's (RFC 3711 section 3.3.1), and would open
  /// nothing in this slot any longer, whoever is in it.
  @Test(arguments: [30_000, 32_767, 32_500] as [UInt16], [TrackSource.camera, .microphone])
  func jumpsAndOneLostPacketLeaveTheSlotToTheNextSource(jump: UInt16, source: TrackSource) throws {
    let call = SimulatedCall()
    let attacker = call.join([source], audioSlots: 0, videoSlots: 0)
    let viewer = call.join([], audioSlots: 1, videoSlots: 1)
    let honest = call.join([source], audioSlots: 0, videoSlots: 0, muted: true)
    try call.connect()
    call.run(milliseconds: 500)
    let track = attacker.tracks[0]
    track.isSending = false
    track.packetsPerFrame = 1
    for i in 0..<90 {
      if i % 3 != 0 { track.sequenceNumber &+= jump }
      setDeaf(viewer, i % 3 == 1, in: call)
      track.wantsKeyFrame = true
      for packet in track.nextFrame(extensions: attacker.configuration.extensions) { attacker.send(packet) }
      call.run(milliseconds: 20)
    }
    setDeaf(viewer, false, in: call)
    attacker.isPresent = false
    call.command(.remove(attacker.configuration.peer))
    let before = Int(honest.tracks[0].packetCount)
    call.mute(honest, 0, false)
    call.run(milliseconds: 2_000)
    let sent = Int(honest.tracks[0].packetCount) - before
    let received = viewer.serials(of: honest.tracks[0]).count
    // Minus the time until it has the slot and its first key frame arrives.
    #expect(received > sent * 3 / 4 && sent > 90, "\(received) of \(sent)")
    #expect(viewer.refused == 0)
    #expect(call.counters { $0.drops(.notProtected) } == 0)
  }

  private func setDeaf(_ viewer: TestPeer, _ isDeaf: Bool, in call: SimulatedCall) {
    var link = Link(rate: 1_000_000_000)
    link.loss = isDeaf ? 1 : 0
    call.network.links[viewer.address] = link
  }

  /// A camera whose numbers jump gets the viewer's slot back with the requested key frame, under the next number. A
  /// microphone continues at once.
  @Test(arguments: [TrackSource.camera, .microphone], workerCounts)
  func aJumpIsANewBeginning(source: TrackSource, workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let sender = call.join([source], audioSlots: 0, videoSlots: 0)
    let viewer = call.join([], audioSlots: 1, videoSlots: 1)
    try call.connect()
    call.run(milliseconds: 500)
    let track = sender.tracks[0]
    let before = try #require(viewer.stream(slotName(of: track, at: viewer)).newest)
    let (last, requests) = (track.serial, track.keyFrameRequests.count)
    track.sequenceNumber &+= 20_000
    call.run(milliseconds: 1_000)
    let stream = viewer.stream(slotName(of: track, at: viewer))
    let after = try #require(stream.newest)
    #expect(Int(after &- before) < 200, "the slot's numbers continue")
    #expect(stream.missing.isEmpty)
    let serials = viewer.serials(of: track).filter { $0 > last }
    if source == .camera {
      #expect(track.keyFrameRequests.count > requests)
      #expect(track.keyFrames.contains(try #require(serials.first)))
      #expect(call.counters { $0.drops(.jumped) } == 1)
      #expect(serials.count > 60)
    } else {
      #expect(serials.count > 45)
    }
  }

  private func slotName(of track: TestTrack, at viewer: TestPeer) -> String {
    viewer.configuration.slots.first { $0.kind == track.description.source.kind }!.mid
  }

  /// A repairable loss is not a jump: the receiver sees the hole, and gets the packet when it arrives.
  @Test func aHoleThatCanBeMendedStaysAHole() throws {
    let call = SimulatedCall()
    let camera = call.join([.camera], audioSlots: 0, videoSlots: 0)
    let viewer = call.join([], audioSlots: 0, videoSlots: 1)
    try call.connect()
    call.run(milliseconds: 500)
    call.network.conditions.upstreamLoss = 0.3
    call.run(milliseconds: 2_000)
    call.network.conditions.upstreamLoss = 0
    call.run(milliseconds: 1_000)
    #expect(call.sfu.counters.drops(.jumped) == 0)
    let serials = viewer.serials(of: camera.tracks[0])
    #expect(serials.count > 200)
    #expect(serials == Array(try #require(serials.first)...(try #require(serials.last))))
  }

  /// Many small gaps add up like one large gap: a receiver that is away for all of them would also lose track.
  @Test(arguments: [TrackSource.camera, .microphone])
  func manyGapsInOneOutageLeaveNobodyBehind(source: TrackSource) throws {
    let call = SimulatedCall()
    let attacker = call.join([source], audioSlots: 0, videoSlots: 0)
    let viewer = call.join([], audioSlots: 1, videoSlots: 1)
    try call.connect()
    call.run(milliseconds: 500)
    let track = attacker.tracks[0]
    track.isSending = false
    track.packetsPerFrame = 1
    setDeaf(viewer, true, in: call)
    // 300 packets in 300 ms: with 190 numbers between them, the receiver would be 57,000 behind.
    for _ in 0..<300 {
      track.sequenceNumber &+= 190
      track.wantsKeyFrame = true
      for packet in track.nextFrame(extensions: attacker.configuration.extensions) { attacker.send(packet) }
      call.run(milliseconds: 1)
    }
    setDeaf(viewer, false, in: call)
    let last = track.serial
    track.isSending = true
    track.wantsKeyFrame = true
    call.run(milliseconds: 1_000)
    #expect(viewer.serials(of: track).filter { $0 > last }.count > 25)
    #expect(viewer.refused == 0)
  }

  /// A hostile simulcast camera with every way to leave numbers unused: jumps, packets that a receiver does not get,
  /// unreadable descriptors, mutes, heights, a narrow path whose pacer gives up, a full path between workers. The
  /// cipher never refuses, and the next camera in the slot is seen completely.
  @Test(arguments: isRelease ? Array(1...40) : [1] as [UInt64])
  func noSourceMakesTheSlotUnreadable(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let party = try Party(seed: seed, workers: isRelease ? 1 + Int(seed % 2) : 2)
    let (call, viewer) = (party.call, party.viewers[0])
    let honest = call.join([.camera], audioSlots: 0, videoSlots: 0, muted: true)
    try party.connect()
    call.run(milliseconds: 500)
    if seed % 3 == 0 { party.narrow(500_000, queue: 100_000) }
    call.relays.isFull = { message in
      guard case .packet = message.body else { return false }
      return Int.random(in: 0..<20, using: &random) == 0
    }
    var choices = SplitMix64(seed: seed &+ 1_000)
    for _ in 0..<300 {
      let layer = party.camera.tracks[Int.random(in: 0..<3, using: &choices)]
      switch Int.random(in: 0..<10, using: &choices) {
      case 0, 1: layer.sequenceNumber &+= [201, 1_025, 30_000, 32_767].randomElement(using: &choices)!
      case 2: layer.sequenceNumber &+= UInt16.random(in: 1...200, using: &choices)
      case 3: layer.wantsKeyFrame = true
      case 4: party.wishHeight([180, 360, 720].randomElement(using: &choices)!)
      case 5: call.mute(party.camera, 0, Bool.random(using: &choices))
      case 6: sendUnreadable(layer, of: party.camera, count: Int.random(in: 1...300, using: &choices))
      case 7: if seed % 3 == 0 { party.narrow(Int.random(in: 200_000...3_000_000, using: &choices), queue: 100_000) }
      case 8: layer.packetsPerFrame = Int.random(in: 1...40, using: &choices)
      default: layer.timestamp &+= UInt32(truncatingIfNeeded: choices.next())
      }
      call.network.conditions.loss = Double.random(in: 0..<0.3, using: &choices)
      call.run(milliseconds: Int.random(in: 1...60, using: &choices))
    }
    call.network.conditions.loss = 0
    call.relays.isFull = { _ in false }
    party.narrow(50_000_000)
    call.command(.remove(party.camera.configuration.peer))
    party.camera.isPresent = false
    call.mute(honest, 0, false)
    call.run(milliseconds: 500)
    let seen = Set(viewer.serials(of: honest.tracks[0]))
    let first = honest.tracks[0].serial + 1
    var serials: [UInt64] = []
    // After a path of 200 kbit/s the estimated rate takes a while to rise.
    for _ in 0..<30 where serials.count <= 150 {
      call.run(milliseconds: 2_000)
      serials = viewer.serials(of: honest.tracks[0]).filter { !seen.contains($0) && $0 >= first }
    }
    #expect(serials.count > 150, "\(serials.count)")
    #expect(viewer.refused == 0)
    #expect(call.counters { $0.drops(.notProtected) } == 0)
    #expect(try #require(viewer.unlucky).opened > 100)
  }

  /// Frames whose descriptors name a template that is not in the structure.
  private func sendUnreadable(_ layer: TestTrack, of camera: TestPeer, count: Int) {
    var extensions = camera.configuration.extensions
    extensions.dependencyDescriptor = 0
    for i in 0..<count {
      let packets = layer.nextFrame(extensions: extensions)
      // The element replaces the transport-wide number, whose two bytes are too short for a descriptor.
      for var packet in packets where i % 100 != 99 {
        let header = packet.withUnsafeBytes { RTPHeader(parsing: $0.bytes)! }
        let element = packet.withUnsafeBytes {
          HeaderExtensions(header)?.element(camera.configuration.extensions.transportSequence, in: $0.bytes)
        }
        if let element { packet[element.offset - 1] = camera.configuration.extensions.dependencyDescriptor << 4 | 1 }
        camera.send(packet)
      }
    }
  }
}
