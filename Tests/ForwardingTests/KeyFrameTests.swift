import MediaModel
import RTP
import Testing

@testable import Forwarding

struct KeyFrameTests {
  @Test func requestsAreMergedAndThrottled() throws {
    let call = SimulatedCall()
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
    #expect((3...5).contains(times.count))
    for (a, b) in zip(times, times.dropFirst()) { #expect(a.duration(to: b) >= .milliseconds(495)) }
  }

  @Test func aNewSlotGetsAKeyFrameAtOnce() throws {
    let call = SimulatedCall()
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

  @Test func anUnansweredRequestIsRepeatedWhileASlotWaits() {
    var requester = KeyFrameRequester(interval: .milliseconds(500))
    requester.request(instant(0), isNewSource: true)
    #expect(requester.takeDue(instant(0), isAwaited: true) == true)
    requester.request(instant(100), isNewSource: true)
    #expect(requester.takeDue(instant(499), isAwaited: true) == false)
    #expect(requester.takeDue(instant(500), isAwaited: true) == true)
    requester.keyFrameArrived()
    #expect(requester.deadline == nil)
    requester.request(instant(510), isNewSource: false)
    #expect(requester.deadline == instant(1000))
    requester.request(instant(520), isNewSource: true)
    #expect(requester.takeDue(instant(520), isAwaited: false) == true)
    #expect(requester.deadline == nil)
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
