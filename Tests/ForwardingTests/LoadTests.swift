import MediaModel
import Testing

@testable import Forwarding

/// A worker that cannot keep up forwards less video.
struct LoadTests {
  /// The packets of a kind that the viewers got from `start` on.
  private func packets(_ kind: MediaKind, _ viewers: [TestPeer], since start: Instant) -> [Int] {
    viewers.map { viewer in
      viewer.configuration.slots.filter { $0.kind == kind }.reduce(0) { sum, slot in
        sum + (viewer.streams[slot.ssrc]?.packets.values.count { $0.arrival >= start } ?? 0)
      }
    }
  }

  /// Two cameras of one layer each, so that a receiver has both, one or none.
  @Test(arguments: isRelease ? [0.75, 0.5, 0.25] : [0.5]) func receiversHaveTheShareOnAverageAndAllAudio(share: Double)
    throws
  {
    let call = SimulatedCall()
    for _ in 0..<2 { call.join(audioSlots: 0, videoSlots: 0) }
    let viewers = (0..<24).map { _ in call.join([], audioSlots: 2, videoSlots: 2) }
    try call.connect()
    call.run(milliseconds: 1_500)
    func measure(_ kind: MediaKind) -> [Int] { packets(kind, viewers, since: start) }
    var start = call.now
    call.run(milliseconds: 2_000)
    let (audio, video) = (measure(.audio), measure(.video))
    #expect(video.allSatisfy { $0 > 100 })

    call.sfu.setVideoShare(share, now: call.now)
    call.run(milliseconds: 100)
    start = call.now
    call.run(milliseconds: 2_000)
    let mean = Double(measure(.video).reduce(0, +)) / Double(video.reduce(0, +))
    #expect(abs(mean - share) < 0.15, "\(mean)")
    #expect(zip(measure(.audio), audio).allSatisfy { $0 >= $1 - 2 })
    #expect(call.sfu.counters.shed > 0)

    call.sfu.setVideoShare(1, now: call.now)
    call.run(milliseconds: 1_000)
    start = call.now
    call.run(milliseconds: 2_000)
    #expect(zip(measure(.video), video).allSatisfy { Double($0) > 0.9 * Double($1) })
    #expect(call.sfu.peers.allSatisfy { $0.load == nil })
  }

  /// A camera of some 160, 490 and 1,300 kbit/s: pictures continue in a lower layer, and are complete.
  @Test func layersFallWithoutAFreezeAndComeBack() throws {
    let call = SimulatedCall()
    let camera = call.joinCamera()
    for (track, packets) in zip(camera.tracks, [1, 3, 8]) {
      track.packetsPerFrame = packets
      track.payloadLength = 600
    }
    let viewers = (0..<6).map { _ in call.joinViewer() }
    try call.connect()
    call.run(milliseconds: 2_000)
    call.sfu.setVideoShare(0.3, now: call.now)
    let shed = call.now
    call.run(milliseconds: 5_000)
    let back = call.now
    call.sfu.setVideoShare(1, now: call.now)
    call.run(milliseconds: 3_000)
    let end = call.now
    for viewer in viewers {
      let stream = try #require(viewer.streams[viewer.configuration.slots[0].ssrc])
      let received = call.decode(stream, of: viewer, from: [camera])
      let low = received.decoded.filter { $0.at >= shed.advanced(by: .seconds(1)) && $0.at < back }
      #expect(low.count > 50)
      #expect(low.allSatisfy { $0.frame.layer < 2 })
      #expect(received.longestGap(after: shed) < .milliseconds(600))
      #expect(received.decoded.last { $0.at < end }?.frame.layer == 2)
    }
  }

  /// The share is divided again when a slot gets another track, and a receiver that joins later also gets its share.
  @Test func laterTracksAndReceiversHaveTheirShare() throws {
    let call = SimulatedCall()
    call.join([.camera], audioSlots: 0, videoSlots: 0)
    let early = call.join([], audioSlots: 0, videoSlots: 2)
    try call.connect()
    call.sfu.setVideoShare(0, now: call.now)
    let late = call.join([], audioSlots: 0, videoSlots: 2)
    call.join([.camera], audioSlots: 0, videoSlots: 0)
    try call.connect()
    call.run(milliseconds: 2_000)
    let start = call.now
    call.run(milliseconds: 1_000)
    #expect(call.assignment(of: late).count == 2)
    #expect(packets(.video, [early, late], since: start) == [0, 0])
  }
}
