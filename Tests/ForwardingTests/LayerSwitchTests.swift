import MediaModel
import Octets
import RTP
import Testing

@testable import Forwarding

/// 1,000 switches of layer, source and mute on one worker, and as many on two, 100 for each seed, with 5 % loss from
/// the senders. A debug build runs one seed.
struct LayerSwitchTests {
  /// One of the senders has dependency descriptors, and one of the receivers. Each receiver decodes everything that it
  /// gets.
  @Test(arguments: UInt64(1)...(isRelease ? 10 : 1), workerCounts)
  func everyFrameIsDecodedAcrossRandomSwitches(seed: UInt64, workers: Int) throws {
    let call = SimulatedCall(seed: seed, workers: workers)
    let senders = [call.joinCamera(descriptors: true), call.joinCamera(descriptors: false)]
    let viewers = [call.joinViewer(descriptors: true), call.joinViewer(descriptors: false)]
    try call.connect()
    call.run(milliseconds: 1000)
    call.network.conditions.upstreamLoss = 0.05
    let start = call.now
    var random = SplitMix64(seed: seed)
    for _ in 0..<100 {
      perform(Int.random(in: 0..<10, using: &random), senders, viewers, call, &random)
      call.run(milliseconds: Int.random(in: 50...600, using: &random))
    }
    call.network.conditions.upstreamLoss = 0
    for sender in senders {
      call.mute(sender, 0, false)
      for track in sender.tracks { track.isSending = true }
    }
    call.run(milliseconds: 1500)
    for viewer in viewers {
      let received = call.decode(viewer, from: senders)
      #expect(received.problems == [])
      #expect(received.decoded.count > 200)
      #expect(received.abandoned < received.decoded.count / 10)
      #expect(Set(received.decoded.map(\.frame.layer)) == [0, 1, 2])
      #expect(Set(received.decoded.map(\.track)).count == 2)
      #expect(received.decoded.count { $0.at >= start.advanced(by: .seconds(30)) } > 20)
    }
    #expect(call.decode(viewers[0], from: senders).descriptors > 100)
    #expect(call.decode(viewers[1], from: senders).descriptors == 0)
    #expect(call.counters(\.layerSwitches) > 5)
  }

  private func perform(
    _ action: Int, _ senders: [TestPeer], _ viewers: [TestPeer], _ call: SimulatedCall, _ random: inout SplitMix64
  ) {
    switch action {
    case 0:
      let sender = senders.randomElement(using: &random)!
      call.mute(sender, 0, Bool.random(using: &random))
    case 1:
      // The sender's own estimate stops its highest layers or resumes them.
      let sender = senders.randomElement(using: &random)!
      let count = Int.random(in: 1...3, using: &random)
      for (rank, track) in sender.tracks.enumerated() {
        if !track.isSending, rank < count { track.wantsKeyFrame = true }
        track.isSending = rank < count
      }
    default:
      let viewer = viewers.randomElement(using: &random)!
      let height = [90, 180, 360, 720].randomElement(using: &random)
      let shown = Int.random(in: 0...1, using: &random)
      call.wish(
        viewer,
        [
          senders[shown].configuration.tracks[0].track: Wishes.Video(maxHeight: height),
          senders[1 - shown].configuration.tracks[0].track: Wishes.Video(isPaused: true),
        ])
    }
  }

  /// A layer switch causes no gap, whatever is lost: without mutes and changes of source, the maximum is 400 ms.
  @Test(arguments: UInt64(1)...(isRelease ? 8 : 1), [true, false])
  func switchesOfLayersAreNoFreeze(seed: UInt64, descriptors: Bool) throws {
    let call = SimulatedCall(seed: seed, workers: seed.isMultiple(of: 2) ? 2 : 1)
    let alice = call.joinCamera(descriptors: descriptors)
    let bob = call.joinViewer(descriptors: descriptors)
    try call.connect()
    call.run(milliseconds: 1000)
    call.network.conditions.upstreamLoss = 0.05
    let start = call.now
    var random = SplitMix64(seed: seed)
    for _ in 0..<60 {
      let height = [180, 360, 720].randomElement(using: &random)
      call.wish(bob, [alice.configuration.tracks[0].track: Wishes.Video(maxHeight: height)])
      call.run(milliseconds: Int.random(in: 50...600, using: &random))
    }
    // The last packets that were lost are sent again.
    call.network.conditions.upstreamLoss = 0
    call.run(milliseconds: 300)
    let received = call.decode(bob, from: [alice])
    #expect(received.problems.filter { !$0.hasPrefix("hole") && !$0.contains("incomplete") } == [])
    #expect(received.longestGap(after: start) <= .milliseconds(400))
    #expect(call.counters(\.layerSwitches) > 20)
  }
}
