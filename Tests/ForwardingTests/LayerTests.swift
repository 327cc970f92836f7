import MediaModel
import RTP
import Testing

@testable import Forwarding

/// Simulcast: one layer of a camera to each receiver.
struct LayerTests {
  @Test(arguments: [true, false], workerCounts)
  func aReceiverGetsTheLowestLayerThatIsHighEnough(descriptors: Bool, workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let alice = call.joinCamera(descriptors: descriptors)
    let heights: [Int?] = [90, 180, 181, 360, 500, 720, 1080, nil]
    let viewers = heights.map { _ in call.joinViewer() }
    try call.connect()
    for (viewer, height) in zip(viewers, heights) {
      call.wish(viewer, [alice.configuration.tracks[0].track: Wishes.Video(maxHeight: height)])
    }
    call.run(milliseconds: 3000)
    for (viewer, layer) in zip(viewers, [0, 0, 1, 1, 2, 2, 2, 2]) {
      let received = call.decode(viewer, from: [alice])
      #expect(received.problems == [])
      #expect(received.decoded.last?.frame.layer == layer)
      #expect(received.decoded.count > 60)
    }
  }

  /// The old layer continues until the key frame of the new one arrives, and only that key frame is requested.
  @Test(arguments: [true, false], workerCounts)
  func aSwitchAsksTheNewLayerAlone(descriptors: Bool, workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let (alice, bob) = (call.joinCamera(descriptors: descriptors), call.joinViewer())
    try call.connect()
    call.run(milliseconds: 2000)
    let before = alice.tracks.map(\.keyFrameRequests.count)
    let start = call.now
    call.wish(bob, [alice.configuration.tracks[0].track: Wishes.Video(maxHeight: 180)])
    call.run(milliseconds: 1000)
    call.wish(bob, [:])
    call.run(milliseconds: 1000)
    #expect(alice.tracks.map(\.keyFrameRequests.count) == [before[0] + 1, before[1], before[2] + 1])
    let received = call.decode(bob, from: [alice])
    #expect(received.problems == [])
    #expect(received.longestGap(after: start) <= .milliseconds(150))
    let layers = received.decoded.filter { $0.at >= start }.map(\.frame.layer)
    #expect(layers.first == 2 && layers.contains(0) && layers.last == 2)
    #expect(zip(layers, layers.dropFirst()).count { $0 != $1 } == 2)
  }

  /// The clocks of the layers begin at random, and the receiver's clock continues to the tick, by frame numbers or
  /// sender reports.
  @Test(arguments: [true, false], workerCounts)
  func timesRunOnAcrossLayers(descriptors: Bool, workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let (alice, bob) = (call.joinCamera(descriptors: descriptors), call.joinViewer(descriptors: descriptors))
    try call.connect()
    call.run(milliseconds: 3000)
    for height in [180, 720, 360, 180, 720] {
      call.wish(bob, [alice.configuration.tracks[0].track: Wishes.Video(maxHeight: height)])
      call.run(milliseconds: 500)
    }
    let received = call.decode(bob, from: [alice])
    #expect(received.problems == [])
    let steady = received.decoded.drop { $0.frame.layer != 2 }
    #expect(Set(steady.map(\.frame.layer)) == [0, 1, 2])
    for (a, b) in zip(steady, steady.dropFirst()) {
      let ticks = Int(b.timestamp &- a.timestamp)
      // Two layers of one picture are a tick apart, since timestamps must rise.
      #expect(abs(ticks - (b.frame.tick - a.frame.tick) * 90 * 33) <= (descriptors ? 1 : 180))
    }
  }

  /// A sender's reports on its layers may be a lifetime apart. Then arrivals determine the times.
  @Test(arguments: [4_000_000_000_000_000_000, 0 &- 4_000_000_000_000_000_000] as [UInt64], workerCounts)
  func reportsThatLieFarApartAreNotUsed(offset: UInt64, workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let (alice, bob) = (call.joinCamera(descriptors: false), call.joinViewer(descriptors: false))
    alice.tracks[0].clockOffset = offset
    try call.connect()
    call.run(milliseconds: 3000)
    for height in [180, 720, 180, 720] {
      call.wish(bob, [alice.configuration.tracks[0].track: Wishes.Video(maxHeight: height)])
      call.run(milliseconds: 500)
    }
    let received = call.decode(bob, from: [alice])
    #expect(received.problems == [])
    #expect(received.decoded.last?.frame.layer == 2)
    for (a, b) in zip(received.decoded, received.decoded.dropFirst()) {
      #expect(b.timestamp &- a.timestamp < 90 * 400)
    }
  }

  @Test(arguments: [true, false], workerCounts)
  func aLayerThatStopsIsLeft(descriptors: Bool, workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let (alice, bob) = (call.joinCamera(descriptors: descriptors), call.joinViewer(descriptors: descriptors))
    try call.connect()
    call.run(milliseconds: 2000)
    let start = call.now
    alice.tracks[2].isSending = false
    call.run(milliseconds: 1000)
    var received = call.decode(bob, from: [alice])
    #expect(received.problems == [])
    #expect(received.decoded.last?.frame.layer == 1)
    // 250 ms without a packet, a frame that reveals it, a round trip, the next frame.
    #expect(received.longestGap(after: start.advanced(by: .milliseconds(-50))) <= .milliseconds(380))
    // It comes back automatically, with a key frame, from which on it is shown.
    alice.tracks[2].isSending = true
    alice.tracks[2].wantsKeyFrame = true
    call.run(milliseconds: 500)
    received = call.decode(bob, from: [alice])
    #expect(received.problems == [])
    #expect(received.decoded.last?.frame.layer == 2)
  }

  /// Firefox announces layers for which it has no bandwidth.
  @Test(arguments: workerCounts) func aLayerThatNeverBeganIsNotWaitedFor(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let (alice, bob) = (call.joinCamera(), call.joinViewer())
    alice.tracks[2].isSending = false
    try call.connect()
    call.run(milliseconds: 1000)
    let received = call.decode(bob, from: [alice])
    #expect(received.problems == [])
    #expect(received.decoded.last?.frame.layer == 1)
  }

  /// The rate drops before the lower layer's key frame arrives.
  @Test(arguments: [true, false], workerCounts)
  func onTheWayDownTheLowestTemporalLayerIsEnough(descriptors: Bool, workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let (alice, bob) = (call.joinCamera(descriptors: descriptors), call.joinViewer(descriptors: descriptors))
    try call.connect()
    call.run(milliseconds: 2000)
    alice.ignoresPLI = true
    call.wish(bob, [alice.configuration.tracks[0].track: Wishes.Video(maxHeight: 180)])
    call.run(milliseconds: 200)
    let start = call.now
    call.run(milliseconds: 1000)
    var received = call.decode(bob, from: [alice])
    #expect(received.problems == [])
    let frames = received.decoded.filter { $0.at > start }.map(\.frame)
    #expect(frames.count >= 6 && frames.allSatisfy { $0.layer == 2 && $0.temporalLayer == 0 })
    alice.ignoresPLI = false
    call.run(milliseconds: 1000)
    received = call.decode(bob, from: [alice])
    #expect(received.problems == [])
    #expect(received.decoded.last?.frame.layer == 0)
    #expect(Set(received.decoded.suffix(8).map(\.frame.temporalLayer)) == [0, 1, 2])
  }

  @Test(arguments: workerCounts) func lossesOfEachLayerAreMendedByItsOwnRetransmissions(workers: Int) throws {
    let call = SimulatedCall(seed: 5, workers: workers)
    let alice = call.joinCamera()
    let viewers = [180, 360, 720].map { height in (call.joinViewer(), height) }
    try call.connect()
    for (viewer, height) in viewers {
      call.wish(viewer, [alice.configuration.tracks[0].track: Wishes.Video(maxHeight: height)])
    }
    call.run(milliseconds: 1000)
    call.network.conditions.upstreamLoss = 0.1
    call.run(milliseconds: 4000)
    call.network.conditions.upstreamLoss = 0
    call.run(milliseconds: 500)
    for (viewer, _) in viewers {
      let received = call.decode(viewer, from: [alice])
      #expect(received.problems == [])
      #expect(received.decoded.count > 150)
    }
    #expect(call.counters(\.nacksSent) > 50)
  }

  /// A stream counts as a layer only by an id that the offer named, and another member's names do not help.
  @Test func aStreamWithoutTheIDOfALayerIsDropped() throws {
    let call = SimulatedCall()
    let (alice, bob) = (call.joinCamera(), call.joinViewer())
    try call.connect()
    call.run(milliseconds: 500)
    let before = call.sfu.counters.drops(.unknownStream)
    let forwarded = call.sfu.counters.forwarded
    alice.tracks.forEach { $0.isSending = false }
    for (index, rid) in ["x", "qq", "", "f"].enumerated() {
      let stray = TestTrack(alice.configuration.tracks[0], ssrc: 77_000 + UInt32(index), rtxSSRC: 78_000)
      var extensions = alice.configuration.extensions
      for packet in stray.nextFrame(extensions: extensions) { alice.send(packet.adding(rid, extensions.rid)) }
      extensions.mid = 0
      for packet in stray.nextFrame(extensions: extensions) { alice.send(packet.adding("q", extensions.rid)) }
    }
    call.run(milliseconds: 50)
    #expect(call.sfu.counters.drops(.unknownStream) >= before + 24)
    #expect(call.sfu.counters.forwarded <= forwarded + 10)
    #expect(call.decode(bob, from: [alice]).problems == [])
  }
}

extension SimulatedCall {
  func decode(_ viewer: TestPeer, from senders: [TestPeer]) -> ReferenceReceiver {
    decode(viewer.streams.values.first!, of: viewer, from: senders)
  }

  func decode(_ stream: ReceivedStream, of viewer: TestPeer, from senders: [TestPeer]) -> ReferenceReceiver {
    ReferenceReceiver(
      stream, from: senders,
      descriptorID: viewer.configuration.extensions.dependencyDescriptor)
  }
}

extension [UInt8] {
  /// A packet with a one-byte header extension, and one more element in it.
  fileprivate func adding(_ text: String, _ id: UInt8) -> [UInt8] {
    guard !text.isEmpty else { return self }
    var copy = self + [UInt8](repeating: 0, count: 32)
    let length = copy.withUnsafeMutableBytes { buffer -> Int in
      let header = RTPHeader(parsing: self.span.bytes)!
      let payload = self[header.headerLength...]
      let start = header.extensionOffset - 4
      self.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<start])) }
      var map = HeaderExtensionMap()
      for id in UInt8(1)...14 { map[id] = id }
      var writer = HeaderExtensionWriter(buffer, at: start)
      if let elements = HeaderExtensions(header) {
        _ = self.withUnsafeBytes { writer.append(elements, of: $0, by: map, noting: 0) }
      }
      writer.append(id, text)
      let end = writer.finish()
      for (i, byte) in payload.enumerated() { buffer[end + i] = byte }
      return end + payload.count
    }
    return Array(copy[..<length])
  }
}
