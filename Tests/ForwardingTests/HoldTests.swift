import MediaModel
import RTP
import Testing

@testable import Forwarding

struct HoldTests {
  private func hold(_ peer: TestPeer, _ isHeld: Bool, in call: SimulatedCall) {
    call.command(.hold(peer.configuration.peer, isHeld))
  }

  private func received(_ peer: TestPeer) -> Int { peer.streams.values.reduce(0) { $0 + $1.packets.count } }

  @Test(arguments: workerCounts) func nothingIsForwardedToOrFromAHeldParticipant(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let (a, b, c) = (call.join(), call.join(), call.join())
    try call.connect()
    call.run(milliseconds: 1000)
    hold(b, true, in: call)
    #expect(call.assignment(of: b).isEmpty)
    #expect(Set(call.assignment(of: a).values.map(\.participant)) == [3])
    call.run(milliseconds: 100)
    let (heard, sent) = (received(b), b.tracks.flatMap { a.serials(of: $0) + c.serials(of: $0) }.count)
    let others = a.serials(of: c.tracks[1]).count
    call.run(milliseconds: 2000)
    #expect(received(b) == heard)
    #expect(b.tracks.flatMap { a.serials(of: $0) + c.serials(of: $0) }.count == sent)
    #expect(a.serials(of: c.tracks[1]).count > others + 50)
  }

  @Test func aHeldParticipantStaysConnected() throws {
    let call = SimulatedCall()
    call.join()
    let b = call.join()
    try call.connect()
    hold(b, true, in: call)
    call.run(milliseconds: 15_000)
    #expect(call.sfu.counters.connected == 2)
  }

  @Test(arguments: workerCounts) func itsSlotsGoToOthersMeanwhile(workers: Int) {
    let call = SimulatedCall(workers: workers)
    let watcher = call.join([], audioSlots: 0, videoSlots: 1)
    let a = call.join([.camera])
    call.join([.camera])
    #expect(call.assignment(of: watcher).values.map(\.participant) == [2])
    hold(a, true, in: call)
    #expect(call.assignment(of: watcher).values.map(\.participant) == [3])
  }

  @Test(arguments: workerCounts) func itComesBackWithAKeyFrameInBothDirections(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let (a, b) = (call.join([.camera]), call.join([.camera]))
    try call.connect()
    call.run(milliseconds: 2000)
    hold(b, true, in: call)
    call.run(milliseconds: 2000)
    let asked = (a.tracks[0].keyFrameRequests.count, b.tracks[0].keyFrameRequests.count)
    hold(b, false, in: call)
    call.run(milliseconds: 500)
    #expect(a.tracks[0].keyFrameRequests.count > asked.0 && b.tracks[0].keyFrameRequests.count > asked.1)
    #expect(a.serials(of: b.tracks[0]).contains(try #require(b.tracks[0].keyFrames.last)))
    #expect(b.serials(of: a.tracks[0]).contains(try #require(a.tracks[0].keyFrames.last)))
  }

  @Test(arguments: workerCounts) func noKeyFrameIsAskedOfAHeldParticipant(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let (a, b) = (call.join([.camera]), call.join([.camera]))
    try call.connect()
    call.run(milliseconds: 1000)
    hold(b, true, in: call)
    let asked = b.tracks[0].keyFrameRequests.count
    a.sendRTCP { $0.pictureLoss(sender: 1, media: a.configuration.slots[4].ssrc) }
    call.mute(b, 0, true)
    call.mute(b, 0, false)
    call.run(milliseconds: 2000)
    #expect(b.tracks[0].keyFrameRequests.count == asked)
  }

  @Test(arguments: workerCounts) func speakersLeaveOutWhoIsHeld(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    call.join()
    let b = call.join()
    try call.connect()
    b.tracks[0].level = 20
    call.run(milliseconds: 1000)
    #expect(call.speakers.last == [2])
    hold(b, true, in: call)
    call.run(milliseconds: 1000)
    #expect(call.speakers.last == [])
  }

  @Test(arguments: workerCounts) func aCommandBeforeTheConfigurationIsIgnoredAndALaterConfigurationChangesNothing(
    workers: Int
  ) {
    let call = SimulatedCall(workers: workers)
    call.command(.hold(PeerID(rawValue: 2), true))
    call.command(.receive(PeerID(rawValue: 2), Wishes(lastN: 0)))
    let a = call.join()
    let b = call.join()
    #expect(call.assignment(of: b).count == 2)
    hold(b, true, in: call)
    b.configuration.tracks.append(TestPeer.trackDescription(2, 2, .screen))
    call.configure(b)
    #expect(call.assignment(of: a).isEmpty && call.assignment(of: b).isEmpty)
    hold(b, false, in: call)
    #expect(call.assignment(of: a).count == 3 && call.assignment(of: b).count == 2)
  }

  @Test func aMutedTrackStaysMutedAfterAHold() throws {
    let call = SimulatedCall()
    let (a, b) = (call.join([.camera]), call.join([.camera]))
    try call.connect()
    call.mute(b, 0, true)
    hold(b, true, in: call)
    hold(b, false, in: call)
    call.run(milliseconds: 200)
    let before = a.serials(of: b.tracks[0]).count
    call.run(milliseconds: 1000)
    #expect(a.serials(of: b.tracks[0]).count == before)
  }
}
