import CongestionControl
import MediaModel
import Paths
import Testing

@testable import Forwarding

/// Pins with ceilings: the most that a slot gets of its track, whatever the path has room for.
struct CeilingTests {
  private func viewer(_ call: SimulatedCall, slots: Int = 1) -> TestPeer {
    let viewer = call.subscribe(videoSlots: slots)
    viewer.configuration.extensions.dependencyDescriptor = 12
    call.configure(viewer)
    return viewer
  }

  @Test(arguments: workerCounts) func aSlotGetsNoLayerAboveItsCeiling(workers: Int) throws {
    let call = SimulatedCall.room(workers: workers)
    let camera = call.joinCamera()
    let ceilings: [Int?] = [-1, 0, 1, 2, 9, nil]
    let viewers = ceilings.map { _ in viewer(call) }
    for (viewer, ceiling) in zip(viewers, ceilings) {
      call.pin(viewer, viewer.slot(0, shows: camera, ceiling: LayerCeiling(spatial: ceiling)))
    }
    try call.connect()
    call.run(milliseconds: 2000)
    for (viewer, layer) in zip(viewers, [0, 0, 1, 2, 2, 2]) {
      let received = call.decode(viewer.received(0), of: viewer, from: [camera])
      #expect(received.problems == [])
      #expect(received.decoded.allSatisfy { $0.frame.layer <= layer }, "from the first packet on")
      #expect(received.decoded.last?.frame.layer == layer && received.decoded.count > 45)
    }
    #expect(call.peers.allSatisfy { $0.refused == 0 })
  }

  @Test(arguments: workerCounts) func aCeilingOfTemporalLayersLeavesOutFrames(workers: Int) throws {
    let call = SimulatedCall.room(workers: workers)
    let camera = call.joinCamera()
    let viewers = (0..<3).map { _ in viewer(call) }
    for (temporal, viewer) in viewers.enumerated() {
      call.pin(viewer, viewer.slot(0, shows: camera, ceiling: LayerCeiling(temporal: temporal)))
    }
    try call.connect()
    call.run(milliseconds: 3000)
    var frames: [Int] = []
    for (temporal, viewer) in viewers.enumerated() {
      let received = call.decode(viewer.received(0), of: viewer, from: [camera])
      #expect(received.problems == [])
      #expect(received.decoded.allSatisfy { $0.frame.temporalLayer <= temporal && $0.frame.layer == 2 })
      frames.append(received.decoded.count)
    }
    #expect(frames[0] > 15 && frames[1] > 3 * frames[0] / 2 && frames[2] > 3 * frames[1] / 2, "\(frames)")
  }

  /// The old layer goes on until the key frame of the new one.
  @Test func aCeilingMovesWithoutAGap() throws {
    let call = SimulatedCall.room()
    let camera = call.joinCamera()
    let viewer = viewer(call)
    try call.connect()
    call.pin(viewer, viewer.slot(0, shows: camera))
    call.run(milliseconds: 1500)
    let start = call.now
    for ceiling in [
      LayerCeiling(spatial: 0), LayerCeiling(spatial: 1, temporal: 0), LayerCeiling(temporal: 1), LayerCeiling(),
    ] {
      call.pin(viewer, viewer.slot(0, shows: camera, ceiling: ceiling))
      call.run(milliseconds: 1000)
      let received = call.decode(viewer.received(0), of: viewer, from: [camera])
      #expect(received.problems == [])
      #expect(received.decoded.last?.frame.layer == ceiling.spatial ?? 2)
      let recent = received.decoded.suffix(4).map(\.frame.temporalLayer).max()
      #expect(recent == ceiling.temporal ?? 2)
    }
    let received = call.decode(viewer.received(0), of: viewer, from: [camera])
    #expect(received.longestGap(after: start) <= .milliseconds(200))
  }

  /// A layer that nobody may get is not encoded.
  @Test(arguments: workerCounts) func sendersAreNotAskedForLayersAboveAllCeilings(workers: Int) throws {
    let call = SimulatedCall.room(workers: workers)
    let camera = call.joinCamera()
    let viewers = [viewer(call), viewer(call)]
    try call.connect()
    func wanted() -> [Bool] {
      let told = call.events.compactMap { event in
        if case .wanted(camera.configuration.peer, _, let layers) = event { layers } else { nil }
      }
      return told.last?.map(\.active) ?? []
    }
    for (ceiling, viewer) in viewers.enumerated() {
      call.pin(viewer, viewer.slot(0, shows: camera, ceiling: LayerCeiling(spatial: ceiling)))
    }
    call.run(milliseconds: 6000)
    #expect(wanted() == [true, true, false])
    call.pin(viewers[0], viewers[0].slot(0, shows: camera))
    call.run(milliseconds: 500)
    #expect(wanted() == [true, true, true])
  }

  /// The lowest layer does not flow, for example because the sender's encoder is too slow.
  @Test func aTrackWhoseLayersAllLieAboveTheCeilingIsSentInItsLowest() throws {
    let call = SimulatedCall.room()
    let camera = call.joinCamera()
    camera.tracks[0].isSending = false
    let viewer = viewer(call)
    viewer.reportArrivals()
    call.configure(viewer)
    call.pin(viewer, viewer.slot(0, shows: camera, ceiling: LayerCeiling(spatial: 0)))
    try call.connect()
    call.run(milliseconds: 2000)
    let received = call.decode(viewer.received(0), of: viewer, from: [camera])
    #expect(received.decoded.count > 30 && received.decoded.last?.frame.layer == 1)
    #expect(wishes(call, viewer)[0].steps.map(\.spatial) == [1], "for the division of its rate")
  }

  private func wishes(_ call: SimulatedCall, _ viewer: TestPeer) -> [StreamWish] {
    call.sfu(of: viewer).peersByID[viewer.configuration.peer]?.videoWishes ?? []
  }

  /// The path has room for one camera in its middle layer beside another in its lowest. The ceiling of the second leaves the rest to the first.
  @Test func theDivisionOfARateTreatsACeilingAsTheWholeWish() throws {
    let call = SimulatedCall.room()
    let cameras = [call.joinCamera(), call.joinCamera()]
    for camera in cameras {
      for (track, packets) in zip(camera.tracks, [1, 3, 8]) {
        track.packetsPerFrame = packets
        track.payloadLength = 600
      }
    }
    let viewer = viewer(call, slots: 2)
    viewer.reportArrivals()
    call.configure(viewer)
    call.network.links[viewer.address] = Link(rate: 900_000)
    let ceiling = LayerCeiling(spatial: 0, temporal: 1)
    call.pin(viewer, viewer.slot(0, shows: cameras[0]), viewer.slot(1, shows: cameras[1], ceiling: ceiling))
    try call.connect()
    call.run(milliseconds: 10_000)
    let wishes = wishes(call, viewer)
    #expect(wishes[1].steps.allSatisfy { $0.spatial == 0 && $0.temporal <= 1 } && !wishes[1].steps.isEmpty)
    #expect(wishes[0].steps.last?.spatial == 2)
    let start = call.now
    call.run(milliseconds: 5_000)
    let division = call.sfu.peersByID[viewer.configuration.peer]?.transport.downlink?.pointee.division
    #expect(division?.isLimited == true)
    let frames = (0..<2).map { slot in
      call.decode(viewer.received(slot), of: viewer, from: cameras).decoded.filter { $0.at >= start }
    }
    #expect(frames[1].allSatisfy { $0.frame.layer == 0 && $0.frame.temporalLayer <= 1 } && frames[1].count > 50)
    #expect(frames[0].count { $0.frame.layer == 1 } > 100)
  }
}
