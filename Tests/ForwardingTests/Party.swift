import MediaModel
import Paths
import RTP
import Testing

@testable import Forwarding

/// A camera of some 160, 490 and 1,300 kbit/s and a sender with a microphone, and receivers with a slot for each of the
/// two.
struct Party {
  let call: SimulatedCall
  let camera: TestPeer
  let speaker: TestPeer
  let viewers: [TestPeer]

  init(
    seed: UInt64 = 1, viewers count: Int = 1, screen: Bool = false, reports: Bool = true, estimates: Bool = false,
    workers: Int = 1
  ) throws {
    call = SimulatedCall(seed: seed, workers: workers)
    camera = call.joinCamera()
    for (track, packets) in zip(camera.tracks, [1, 3, 8]) {
      track.packetsPerFrame = packets
      track.payloadLength = 600
    }
    speaker = call.join(screen ? [.microphone, .screen] : [.microphone], audioSlots: 0, videoSlots: 0)
    speaker.tracks[0].payloadLength = 80
    if screen {
      speaker.tracks[1].packetsPerFrame = 1
      speaker.tracks[1].payloadLength = 100
    }
    let call = call
    viewers = (0..<count).map { _ in call.join([], audioSlots: 1, videoSlots: screen ? 2 : 1) }
    for viewer in viewers {
      viewer.configuration.extensions.dependencyDescriptor = 12
      if estimates { viewer.estimateRate() } else if reports { viewer.reportArrivals() }
      call.configure(viewer)
    }
  }

  func connect(_ rate: Int? = nil, loss: Double = 0) throws {
    if let rate { narrow(rate, loss: loss) }
    try call.connect()
  }

  /// - Parameter queue: in µs; nil for the usual one.
  func narrow(_ rate: Int, loss: Double = 0, queue: Int? = nil) {
    var link = Link(rate: rate)
    link.loss = loss
    if let queue { link.queue = queue }
    call.network.links[viewers[0].address] = link
  }

  /// The first viewer wants the camera at this height.
  func wishHeight(_ height: Int) {
    call.wish(viewers[0], [camera.configuration.tracks[0].track: Wishes.Video(maxHeight: height)])
  }

  /// The camera sends the demanded layers, and begins each with a key frame.
  func runAsWanted(milliseconds: Int) {
    for _ in 0..<milliseconds / 50 {
      call.run(milliseconds: 50)
      let told = call.events.compactMap { event in
        if case .wanted(camera.configuration.peer, _, let layers) = event { layers } else { nil }
      }
      for (track, layer) in zip(camera.tracks, told.last ?? []) where track.isSending != layer.active {
        track.isSending = layer.active
        track.wantsKeyFrame = true
      }
    }
  }

  func video(_ viewer: TestPeer, _ place: Int = 0) -> ReceivedStream {
    viewer.streams[viewer.configuration.slots[1 + place].ssrc]!
  }

  func decoded(_ viewer: TestPeer) -> ReferenceReceiver {
    call.decode(video(viewer), of: viewer, from: [camera])
  }

  /// Frames of each layer that the viewer decoded from `start` on.
  func frames(_ viewer: TestPeer, since start: Instant) -> [Int] {
    let frames = decoded(viewer).decoded.filter { $0.at >= start }
    return (0..<3).map { layer in frames.count { $0.frame.layer == layer } }
  }

  func audioPackets(_ viewer: TestPeer, since start: Instant) -> Int {
    viewer.streams[viewer.configuration.slots[0].ssrc]!.packets.values.count { $0.arrival >= start }
  }

  /// The first viewer gets lower layers without a freeze, and the second one gets everything.
  func checkThatTheFirstViewerAloneIsLimited(since start: Instant, frames least: Int) {
    let narrow = frames(viewers[0], since: start)
    #expect(narrow[0] + narrow[1] >= least, "\(narrow)")
    #expect(narrow[2] < 30, "\(narrow)")
    #expect(decoded(viewers[0]).longestGap(after: start) <= .seconds(1))
    // 30.3 frames a second.
    #expect(frames(viewers[1], since: start)[2] >= 445)
    #expect(isLimited(viewers[0]) == true)
    #expect(isLimited(viewers[1]) == false)
  }

  func isLimited(_ viewer: TestPeer) -> Bool? {
    call.sfu(of: viewer).peersByID[viewer.configuration.peer]?.transport.downlink?.pointee.division.isLimited
  }
}
