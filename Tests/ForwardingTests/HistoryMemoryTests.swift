import MediaModel
import Testing

@testable import Forwarding

/// Which tracks' packets are kept, and for how long.
struct HistoryMemoryTests {
  /// A viewer and a camera whose packets are kept.
  private func watched() throws -> (call: SimulatedCall, camera: TestPeer, viewer: TestPeer) {
    let call = SimulatedCall()
    let camera = call.join([.camera], audioSlots: 0, videoSlots: 0)
    let viewer = call.join([], audioSlots: 0, videoSlots: 1)
    try call.connect()
    call.run(milliseconds: 2000)
    #expect(call.sfu.counters.historyBytes >= 256 << 10)
    return (call, camera, viewer)
  }

  /// A track that is gone, or whose packets go to no receiver, needs no memory.
  @Test(arguments: ["held", "muted", "removed", "shown to nobody", "gone"])
  func theMemoryOfATrackComesBack(because: String) throws {
    let (call, camera, viewer) = try watched()
    let (peer, track) = (camera.configuration.peer, camera.configuration.tracks[0].track)
    let isAtOnce = because == "removed" || because == "gone"
    switch because {
    case "held": call.command(.hold(peer, true))
    case "muted": call.command(.mute(peer, track, true))
    case "removed": call.command(.removeTrack(peer, track))
    case "gone": call.command(.remove(peer))
    default: call.wish(viewer, [track: Wishes.Video(isPaused: true)])
    }
    // The sender ignores that, and keeps sending.
    call.run(milliseconds: isAtOnce ? 500 : 11_500)
    #expect(call.sfu.counters.historyBytes == 0)
    guard !isAtOnce else { return }
    let retransmitted = call.sfu.counters.retransmitted
    switch because {
    case "held": call.command(.hold(peer, false))
    case "muted": call.command(.mute(peer, track, false))
    default: call.wish(viewer, [:])
    }
    call.network.conditions = NetworkConditions(loss: 0.05)
    call.run(milliseconds: 3000)
    #expect(call.sfu.counters.historyBytes > 0 && call.sfu.counters.retransmitted > retransmitted)
  }

  @Test func aTrackThatNobodySeesIsNotKept() throws {
    let call = SimulatedCall()
    call.join([.camera, .camera, .camera], audioSlots: 0, videoSlots: 0)
    call.join([], audioSlots: 0, videoSlots: 1)
    try call.connect()
    call.run(milliseconds: 2000)
    #expect(call.sfu.histories.count == 1)
  }

  /// A publisher with 64 tracks, or layers of tracks, that sends as fast as it can: the memory is about what it sent,
  /// and at most the bound.
  @Test(arguments: [16 << 20, 256 << 20]) func memoryIsBoundedByWhatWasSentAndByTheBudget(limit: Int) {
    let budget = HistoryBudget(limit: limit)
    let histories = (0..<192).map { _ in
      PacketHistory(first: 16 << 10, limit: 2 << 20, span: .milliseconds(2500), budget: budget)
    }
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: 1200, alignment: 16)
    defer { memory.deallocate() }
    var sent = 0
    for index in 0..<150 as Range<UInt64> {
      for history in histories {
        let packet = packet(index, in: memory)
        history.insert(packet, now: instant(1000 + index))
        sent += packet.length
      }
    }
    #expect(budget.used <= limit)
    let ratio = Double(budget.used) / Double(sent)
    print("memory for each byte sent: \(ratio)")
    #expect(ratio <= 2.1)
    #expect(budget.used == histories.reduce(0) { $0 + $1.capacity })
    // All have an equal right to it.
    #expect(histories.allSatisfy { $0.capacity >= 32 << 10 })
  }
}
