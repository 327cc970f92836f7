import MediaModel
import RTP
import Testing

@testable import Forwarding

struct KeyFrameTests {
  @Test(arguments: workerCounts) func requestsAreMergedAndThrottled(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let sender = call.join([.camera])
    for _ in 0..<3 { call.join([]) }
    try call.connect()
    call.run(milliseconds: 1500)
    sender.tracks[0].keyFrameRequests = []
    for _ in 0..<200 {
      for watcher in call.peers[1...] {
        let slot = watcher.configuration.slots.first { $0.kind == .video }!
        watcher.sendRTCP { $0.pictureLoss(sender: 1, media: slot.ssrc) }
        watcher.sendRTCP { $0.fullIntraRequest(sender: 1, media: slot.ssrc, sequence: 1) }
      }
      call.run(milliseconds: 10)
    }
    let times = sender.tracks[0].keyFrameRequests
    #expect((5...7).contains(times.count))
    for (a, b) in zip(times, times.dropFirst()) { #expect(a.duration(to: b) >= .milliseconds(330)) }
  }

  @Test(arguments: workerCounts) func aNewSlotGetsAKeyFrameAtOnce(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let sender = call.join([.camera])
    call.join([])
    try call.connect()
    call.run(milliseconds: 1000)
    let watcher = call.join([])
    try call.connect()
    call.run(milliseconds: 100)
    let first = try #require(watcher.streams.values.compactMap(\.ordered.first).first)
    #expect(first.body[0] == 0)
    #expect(watcher.serials(of: sender.tracks[0]).first == first.serial)
  }

  /// RFC 5104 section 4.3.1: a new number for each request.
  @Test(arguments: workerCounts) func aSenderWithoutPLIIsAskedByFIR(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let sender = call.join([.camera])
    sender.configuration.tracks[0].formats[0].pli = false
    sender.configuration.tracks[0].formats[0].fir = true
    call.configure(sender)
    try call.connect()
    call.run(milliseconds: 1000)
    for _ in 0..<2 {
      let before = sender.tracks[0].fullIntraRequests.count
      let watcher = call.join([])
      try call.connect()
      call.run(milliseconds: 500)
      #expect(sender.tracks[0].fullIntraRequests.count > before)
      #expect(watcher.serials(of: sender.tracks[0]).count > 10)
    }
    #expect(sender.tracks[0].keyFrameRequests.isEmpty)
  }

  @Test func anUnansweredRequestIsRepeatedWhileASlotWaits() {
    var requester = KeyFrameRequester(interval: .milliseconds(500))
    let near = Duration.milliseconds(50)
    requester.request(instant(0))
    #expect(requester.takeDue(instant(0), isAwaited: true, roundTrip: near) == true)
    requester.request(instant(100))
    #expect(requester.takeDue(instant(499), isAwaited: true, roundTrip: near) == false)
    #expect(requester.takeDue(instant(500), isAwaited: true, roundTrip: near) == true)
    requester.keyFrameArrived()
    #expect(requester.deadline == nil)
    requester.request(instant(510))
    #expect(requester.deadline == instant(1000))
    #expect(requester.takeDue(instant(1000), isAwaited: false, roundTrip: near) == true)
    #expect(requester.deadline == nil)
  }

  /// The answer cannot come before a round trip, and a second request in between would cost the sender another key frame.
  @Test func onALongPathARequestIsRepeatedAfterTwoRoundTrips() {
    var requester = KeyFrameRequester(interval: .milliseconds(334))
    requester.request(instant(0))
    #expect(requester.takeDue(instant(0), isAwaited: true, roundTrip: .milliseconds(400)) == true)
    requester.request(instant(10))
    #expect(requester.deadline == instant(800))
    requester.keyFrameArrived()
    requester.request(instant(500))
    #expect(requester.deadline == instant(500))
  }

  /// Scenario 15 of the engineering note on rates: browsers ignore requests that come too soon, and each key frame costs all receivers.
  @Test func manyWhoJoinAtOnceShareKeyFrames() throws {
    var conditions = NetworkConditions()
    conditions.delay = 25...25
    let call = SimulatedCall(conditions, receivers: 256)
    let sender = call.joinCamera()
    try call.connect()
    call.run(milliseconds: 1_000)
    for track in sender.tracks { track.keyFrameRequests = [] }
    var waiting: [TestPeer] = []
    var connections: [(viewer: TestPeer, at: Instant)] = []
    let count = isRelease ? 200 : 20
    for step in 0..<350 {
      if step < 200, step % (200 / count) == 0 { waiting.append(call.joinViewer()) }
      call.run(milliseconds: 10)
      connections += waiting.filter(\.isConnected).map { ($0, call.now) }
      waiting.removeAll(where: \.isConnected)
    }
    #expect(connections.count == count)
    for track in sender.tracks {
      let times = track.keyFrameRequests
      for (a, b) in zip(times, times.dropFirst(3)) { #expect(a.duration(to: b) >= .seconds(1), "three a second") }
    }
    #expect(sender.tracks.contains { !$0.keyFrameRequests.isEmpty })
    for (viewer, at) in connections {
      let first = try #require(call.decode(viewer, from: [sender]).decoded.first)
      #expect(at.duration(to: first.at) <= .milliseconds(600))
    }
  }

  /// Connects all and skips a number of the sender's camera once it runs.
  private func makeHole(by sender: TestPeer, in call: SimulatedCall) throws -> TestTrack {
    try call.connect()
    call.run(milliseconds: 1500)
    let track = sender.tracks[0]
    track.keyFrameRequests = []
    track.sequenceNumber &+= 1
    return track
  }

  /// A packet that the sender cannot send again: NACKs, then one PLI.
  @Test func aHoleThatStaysLeadsToAKeyFrame() throws {
    let call = SimulatedCall()
    let sender = call.join([.camera])
    let watcher = call.join([])
    let track = try makeHole(by: sender, in: call)
    let asked = call.sfu.counters.nacksSent
    call.run(milliseconds: 400)
    #expect(track.keyFrameRequests.isEmpty)
    call.run(milliseconds: 2000)
    #expect((5...10).contains(call.sfu.counters.nacksSent - asked))
    #expect(track.keyFrameRequests.count == 1)
    #expect(watcher.serials(of: track).last ?? 0 > track.keyFrames.last ?? .max)
  }

  /// Receivers are already past the hole, or there are none.
  @Test(arguments: [true, false]) func aHoleBeforeAKeyFrameOrForNobodyLeadsToNone(isWatched: Bool) throws {
    let call = SimulatedCall()
    let sender = call.join([.camera])
    if isWatched { call.join([]) }
    let track = try makeHole(by: sender, in: call)
    let asked = call.sfu.counters.nacksSent
    call.run(milliseconds: 100)
    if isWatched { track.wantsKeyFrame = true }
    call.run(milliseconds: 3000)
    #expect((5...10).contains(call.sfu.counters.nacksSent - asked))
    #expect(track.keyFrameRequests.isEmpty)
  }

  @Test func aTrackIsAwaitedUntilItsKeyFrameHasGoneOut() throws {
    let call = SimulatedCall()
    let sender = call.join([.camera])
    let watcher = call.join([], videoSlots: 1)
    try call.connect()
    let track = call.sfu.peers[0].upTracks[0]
    call.run(milliseconds: 500)
    #expect(!track.encodings[0].isAwaited)
    sender.tracks[0].isSending = false
    call.join([], videoSlots: 1)
    try call.connect()
    #expect(track.encodings[0].isAwaited)
    sender.tracks[0].isSending = true
    call.run(milliseconds: 500)
    #expect(!track.encodings[0].isAwaited)
    #expect(sender.tracks[0].keyFrameRequests.count >= 2)
    call.mute(sender, 0, true)
    #expect(track.encodings[0].isAwaited)
    for peer in call.peers.dropFirst() { call.command(.remove(peer.configuration.peer)) }
    #expect(!track.encodings[0].isAwaited, "by nobody")
    #expect(watcher.serials(of: sender.tracks[0]).count > 10)
  }

  @Test func packetsAreKeptOnlyWhileSomebodyReceivesThem() throws {
    let call = SimulatedCall()
    let sender = call.join([.camera])
    try call.connect()
    call.run(milliseconds: 500)
    let track = call.sfu.peers[0].upTracks[0]
    let alone = try #require(track.encodings[0].reception.pointee.unwrapper.highest)
    #expect(track.encodings[0].history?.packet(alone) == nil)
    call.join([], videoSlots: 1)
    call.run(milliseconds: 100)
    let received = try #require(track.encodings[0].reception.pointee.unwrapper.highest)
    #expect(received > alone)
    #expect(track.encodings[0].history?.packet(received) != nil)
    #expect(sender.isConnected)
  }
}
