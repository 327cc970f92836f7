import MediaModel
import Octets
import Testing

@testable import Forwarding

/// Video waits for a path that is too narrow for it at once, so that a key frame leaves room for audio.
struct PacingTests {
  /// A viewer who gets the middle layer on a narrow path, and the layers. Their next key frames are longer than the
  /// path's queue.
  private static func narrowParty(seed: UInt64 = 1) throws -> (party: Party, layers: [LayerTrack]) {
    let party = try Party(seed: seed)
    try party.connect()
    party.narrow(700_000, queue: 150_000)
    party.call.run(milliseconds: 8_000)
    let layers = party.camera.tracks.compactMap { $0 as? LayerTrack }
    for layer in layers { layer.keyFrameSize = 10 }
    return (party, layers)
  }

  /// The middle layer fits, and its key frames are longer than the path's queue. One comes every second.
  @Test(arguments: isRelease ? [1, 2] : [1] as [UInt64]) func longKeyFramesLoseNoAudio(seed: UInt64) throws {
    let (party, layers) = try Self.narrowParty(seed: seed)
    let (start, before) = (party.call.now, party.call.sfu.counters)
    for _ in 0..<12 {
      for layer in layers { layer.wantsKeyFrame = true }
      party.call.run(milliseconds: 1_000)
    }
    let after = party.call.sfu.counters
    #expect(after.paced - before.paced > 200)
    #expect(after.drops(.paced) == before.drops(.paced))
    // Without the pacer 704 packets were asked for again, most frames were of the lowest layer, and the longest gap was 520 ms.
    #expect(after.nacksReceived - before.nacksReceived < 50)
    #expect(party.audioPackets(party.viewers[0], since: start) >= 599)
    let frames = party.frames(party.viewers[0], since: start)
    #expect(frames[1] >= 150, "\(frames)")
    #expect(party.decoded(party.viewers[0]).longestGap(after: start) <= .milliseconds(400))
  }

  /// A key frame replaces the waiting packets, and the receiver misses nothing before it: its requests for the unused
  /// numbers are answered.
  @Test func aKeyFrameMakesWhatWaitsVoid() throws {
    let (party, layers) = try Self.narrowParty()
    let layer = layers[1]
    let start = party.call.now
    // The second one arrives while most of the first one is waiting.
    for _ in 0..<2 {
      layer.wantsKeyFrame = true
      party.call.run(milliseconds: 120)
    }
    party.call.run(milliseconds: 3_000)
    let received = party.decoded(party.viewers[0])
    #expect(received.problems.isEmpty, "\(received.problems)")
    #expect(received.decoded.count { $0.at >= start && $0.frame.isKeyFrame } == 1)
    #expect(received.longestGap(after: start) <= .milliseconds(500))
  }

  /// The receiver gets only correct bytes and rising timestamps, and every number or an answer for it, while packets of
  /// the publisher are lost and repeated, key frames are long, and mutes, heights and the path change at random.
  @Test(arguments: isRelease ? Array(1...8) : [1] as [UInt64]) func noNumberStaysOpen(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let party = try Party(seed: seed)
    party.call.network.conditions.delay = 5...12
    // The path drops nothing, since a packet that is requested after its place in the history has been reused would
    // remain missing.
    try party.connect()
    party.narrow(700_000, queue: 5_000_000)
    party.call.run(milliseconds: 6_000)
    party.call.network.conditions.upstreamLoss = 0.03
    let before = party.call.sfu.counters
    for _ in 0..<60 {
      for track in party.camera.tracks {
        guard let layer = track as? LayerTrack else { continue }
        layer.keyFrameSize = 3 + Int(random.next() % 10)
        if random.next() % 4 == 0 { layer.wantsKeyFrame = true }
      }
      switch random.next() % 8 {
      case 0: party.call.mute(party.camera, 0, true)
      case 1: party.wishHeight([180, 360, 720][Int(random.next() % 3)])
      case 2: party.narrow(500_000 + Int(random.next() % 1_500_000), queue: 5_000_000)
      default: party.call.mute(party.camera, 0, false)
      }
      party.call.run(milliseconds: 50 + Int(random.next() % 500))
    }
    party.call.mute(party.camera, 0, false)
    party.call.network.conditions.upstreamLoss = 0
    party.narrow(5_000_000)
    // No packet is overtaken, so that none is temporarily missing at the end.
    party.call.network.conditions.delay = 5...5
    party.call.run(milliseconds: 3_000)
    #expect(party.call.sfu.counters.paced - before.paced > 30)
    let problems = party.decoded(party.viewers[0]).problems
    let broken = problems.filter { problem in
      ["hole", "bytes", "falls", "unknown", "unreadable"].contains { problem.contains($0) }
    }
    #expect(broken.isEmpty, "\(broken)")
  }

  /// A track that ends discards its waiting packets, and the next one in the slot begins with its key frame.
  @Test func aMuteForgetsWhatWaits() throws {
    let (party, layers) = try Self.narrowParty()
    let layer = layers[1]
    layer.wantsKeyFrame = true
    party.call.run(milliseconds: 60)
    let peer = try #require(party.call.sfu.peersByID[party.viewers[0].configuration.peer])
    let downlink = try #require(peer.transport.downlink)
    #expect(downlink.pointee.holds(slot: 0))
    party.call.mute(party.camera, 0, true)
    #expect(!downlink.pointee.holds(slot: 0))
    party.call.run(milliseconds: 200)
    let start = party.call.now
    party.call.mute(party.camera, 0, false)
    party.call.run(milliseconds: 2_000)
    let first = try #require(party.decoded(party.viewers[0]).decoded.first { $0.at >= start })
    #expect(first.frame.isKeyFrame)
  }
}
