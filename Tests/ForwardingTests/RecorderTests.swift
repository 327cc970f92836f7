import MediaModel
import RTP
import Testing

@testable import Forwarding

/// The recorder as an end of the relay: it gets what it wishes, and is believed about nothing.
struct RecorderTests {
  private func give(
    _ call: SimulatedCall, _ body: RelayMessage.Body, about peer: TestPeer, _ track: Int = 0, rank: UInt8 = 0,
    on worker: Int = 0
  ) {
    let message = RelayMessage(
      peer: peer.configuration.peer, track: peer.configuration.tracks[track].track, rank: rank, body: body)
    call.sfus[worker].handle(
      message, UnsafeMutableRawBufferPointer(start: nil, count: 0), from: .recorder, now: call.now, into: call.outbox)
  }

  private func packets(_ call: SimulatedCall) -> Int {
    call.takeRecorded().count { if case .packet = $0.message.body { true } else { false } }
  }

  @Test func itGetsThePacketsThatItWishesAndTheReports() throws {
    let call = SimulatedCall(hasRecorder: true)
    let camera = call.join([.camera])
    call.join([])
    try call.connect()
    call.run(milliseconds: 500)
    #expect(call.takeRecorded().isEmpty)
    give(call, .wish(.wanted), about: camera)
    call.run(milliseconds: 1_500)
    let got = call.takeRecorded()
    let indexes = got.compactMap { relayed -> UInt64? in
      if case .packet(let index, _, _) = relayed.message.body { index } else { nil }
    }
    #expect(indexes.count > 30 && Set(indexes).count == indexes.count)
    #expect(got.allSatisfy { $0.message.peer == camera.configuration.peer })
    #expect(got.contains { if case .report = $0.message.body { true } else { false } })
    give(call, .wish(.nothing), about: camera)
    call.run(milliseconds: 300)
    #expect(packets(call) == 0)
  }

  @Test func itAsksForKeyFrames() throws {
    let call = SimulatedCall(hasRecorder: true)
    let camera = call.join([.camera])
    call.join([])
    try call.connect()
    give(call, .wish(.wanted), about: camera)
    call.run(milliseconds: 1_000)
    let before = camera.tracks[0].keyFrameRequests.count
    give(call, .keyFrame, about: camera)
    call.run(milliseconds: 500)
    #expect(camera.tracks[0].keyFrameRequests.count > before)
  }

  /// Recording never hurts a call: no key frame is asked for because the recorder is slow.
  @Test func aRecorderThatIsFullCostsTheOthersNothing() throws {
    let call = SimulatedCall(hasRecorder: true)
    let camera = call.join([.camera])
    call.join([])
    try call.connect()
    give(call, .wish(.wanted), about: camera)
    call.run(milliseconds: 1_000)
    call.relays.isFull = { _ in true }
    let (before, dropped) = (camera.tracks[0].keyFrameRequests.count, call.counters { $0.drops(.relayFull) })
    call.run(milliseconds: 1_000)
    #expect(camera.tracks[0].keyFrameRequests.count == before)
    #expect(call.counters { $0.drops(.relayFull) } > dropped)
  }

  @Test func itMaySpeakForNobody() throws {
    let call = SimulatedCall(hasRecorder: true)
    let camera = call.join([.camera])
    call.join([])
    try call.connect()
    call.run(milliseconds: 300)
    let before = call.counters { $0.drops(.unexpected) }
    give(call, .packet(index: 1, isRetransmission: false, restarts: 0), about: camera)
    give(call, .report(ntp: 0, rtp: 0, at: 0, clockOffset: 0), about: camera)
    #expect(call.counters { $0.drops(.unexpected) } == before + 2)
  }
}
