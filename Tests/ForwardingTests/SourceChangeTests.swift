import MediaModel
import Testing

@testable import Forwarding

struct SourceChangeTests {
  @Test(arguments: workerCounts) func aSlotRunsOnWhenItsSourceChanges(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let first = call.join([.camera])
    let watcher = call.join([], audioSlots: 0, videoSlots: 1)
    let second = call.join([.camera])
    try call.connect()
    call.run(milliseconds: 1000)
    #expect(call.assignment(of: watcher).values.map(\.participant) == [1])
    #expect(watcher.serials(of: second.tracks[0]).isEmpty)
    call.command(.remove(first.configuration.peer))
    first.isPresent = false
    call.run(milliseconds: 1000)
    #expect(call.assignment(of: watcher).values.map(\.participant) == [3])
    let packets = watcher.streams.values.first { $0.slot.kind == .video }!.ordered
    expectContinuous(packets, jump: 0...60)
    let change = try #require(packets.firstIndex { $0.serial >> 40 == 3 })
    #expect(packets[change].body[0] == 0, "begins with a key frame")
    #expect(packets[change].keyIndex != packets[change - 1].keyIndex)
    #expect(packets[change...].allSatisfy { $0.serial >> 40 == 3 })
    #expect(watcher.streams.values.allSatisfy { $0.missing.isEmpty })
  }

  @Test(arguments: workerCounts) func aSlotRunsOnAfterAMuteGap(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let sender = call.join([.camera, .microphone])
    let watcher = call.join([])
    try call.connect()
    call.run(milliseconds: 1000)
    let start = call.now
    for i in 0...1 { call.mute(sender, i, true) }
    call.run(milliseconds: 2000)
    let requests = sender.tracks[0].keyFrameRequests.count
    for i in 0...1 { call.mute(sender, i, false) }
    call.run(milliseconds: 1000)
    #expect(sender.tracks[0].keyFrameRequests.count == requests + 1)
    for stream in watcher.streams.values where !stream.packets.isEmpty {
      let packets = stream.ordered
      #expect(stream.missing.isEmpty)
      let silence = packets.filter {
        $0.arrival > start.advanced(by: .milliseconds(10)) && $0.arrival < start.advanced(by: .seconds(2))
      }
      #expect(silence.isEmpty)
      let resumed = try #require(packets.first { $0.arrival > start.advanced(by: .seconds(2)) })
      if stream.slot.kind == .video {
        #expect(resumed.body[0] == 0)
        expectContinuous(packets, jump: 1900...2200)
      }
    }
  }

  @Test(arguments: workerCounts) func aMutedTrackIsNotForwardedFromTheStart(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let sender = call.join(muted: true)
    let watcher = call.join([])
    try call.connect()
    call.run(milliseconds: 500)
    #expect(sender.tracks.allSatisfy { watcher.serials(of: $0).isEmpty })
    #expect(call.counters { $0.drops(.muted) } > 0)
  }

  @Test(arguments: workerCounts) func videoWithoutVisibleKeyFramesIsForwardedWhole(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let sender = call.join([.camera], codec: "AV1")
    try call.connect()
    sender.tracks[0].wantsKeyFrame = false
    call.run(milliseconds: 500)
    let watcher = call.join([], codec: "AV1")
    sender.tracks[0].isSending = true
    try call.connect()
    call.run(milliseconds: 200)
    #expect(watcher.serials(of: sender.tracks[0]).count > 10)
    #expect(sender.tracks[0].keyFrameRequests.count >= 1)
  }

  /// A sender without RTX fills its bit rate with empty packets.
  @Test(arguments: workerCounts) func packetsWithoutPayloadLeaveNoGap(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let sender = call.join([.camera])
    let watcher = call.join([])
    try call.connect()
    call.run(milliseconds: 300)
    let track = sender.tracks[0]
    track.sequenceNumber &+= 1
    var empty: [UInt8] = [0xa0, track.description.formats[0].payloadType]
    for shift in [8, 0] { empty.append(UInt8(truncatingIfNeeded: track.sequenceNumber >> UInt16(shift))) }
    for value in [track.timestamp, track.ssrc] {
      for shift in [24, 16, 8, 0] { empty.append(UInt8(truncatingIfNeeded: value >> UInt32(shift))) }
    }
    sender.send(empty + [0, 0, 0, 4])
    call.run(milliseconds: 300)
    let stream = try #require(watcher.streams.values.first { !$0.packets.isEmpty })
    #expect(stream.missing.isEmpty && stream.ordered.allSatisfy { !$0.body.isEmpty })
    #expect(call.counters { $0.drops(.padding) } == UInt64(workers), "each worker leaves it out")
  }

  @Test(arguments: workerCounts) func aRestartedSenderIsTakenUnderItsNewSSRC(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let sender = call.join([.camera])
    let watcher = call.join([])
    try call.connect()
    call.run(milliseconds: 500)
    let again = TestTrack(sender.tracks[0].description, ssrc: 77, rtxSSRC: 78)
    again.pictureID = 9000
    sender.tracks[0].isSending = false
    call.run(milliseconds: 600)
    let old = sender.tracks[0]
    sender.tracks[0] = again
    call.run(milliseconds: 500)
    let packets = watcher.streams.values.first { !$0.packets.isEmpty }!.ordered
    #expect(packets.count > old.sent.count)
    expectContinuous(packets, jump: 400...700)
  }

  /// A restarted encoder or a replaced track: the same mid and source, another a=ssrc.
  @Test(arguments: workerCounts, [true, false])
  func theSSRCsOfALaterOfferReplaceThoseBefore(workers: Int, isMidSent: Bool) throws {
    let call = SimulatedCall(workers: workers)
    let sender = call.join([.camera])
    let watcher = call.join([])
    sender.tracks[0].isMidSent = isMidSent
    try call.connect()
    call.run(milliseconds: 500)
    var description = sender.tracks[0].description
    description.ssrcs = [77]
    description.rtx = [77: 78]
    let again = TestTrack(description, ssrc: 77, rtxSSRC: 78)
    again.isMidSent = isMidSent
    again.serial += 1 << 20
    again.pictureID = 9000
    sender.configuration.tracks = [description]
    sender.tracks[0] = again
    call.configure(sender)
    call.run(milliseconds: 500)
    #expect(again.sent.count > 40)
    #expect(Set(watcher.serials(of: again)).isSuperset(of: again.sent.keys), "every packet of the new stream arrives")
    #expect(call.counters { $0.drops(.unknownStream) } == 0)
    // Its retransmissions are known, too.
    call.run(milliseconds: 100)
    sender.send(try #require(again.retransmission(of: again.sequenceNumber)))
    call.run(milliseconds: 50)
    #expect(call.counters { $0.drops(.unknownStream) } == 0)
  }

  @Test(arguments: workerCounts) func streamsWithoutSSRCAndMidAreToldApartByPayloadType(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    let sender = call.join([.microphone, .camera], announcesSSRCs: false)
    sender.configuration.extensions.mid = 0
    call.configure(sender)
    for track in sender.tracks { track.isMidSent = false }
    let watcher = call.join([])
    try call.connect()
    call.run(milliseconds: 500)
    for track in sender.tracks { #expect(watcher.serials(of: track).count > 10) }
    // Nothing but the payload type says whose retransmission this is.
    let camera = sender.tracks[1]
    sender.send(try #require(camera.retransmission(of: camera.sequenceNumber)))
    call.run(milliseconds: 100)
    #expect(call.counters { $0.drops(.unknownStream) } == 0)
  }

  @Test func aPayloadTypeOfTwoTracksNamesNeither() throws {
    let call = SimulatedCall()
    let sender = call.join([.camera, .screen], announcesSSRCs: false)
    for track in sender.tracks { track.isMidSent = false }
    let watcher = call.join([])
    try call.connect()
    call.run(milliseconds: 500)
    for track in sender.tracks { #expect(watcher.serials(of: track).isEmpty) }
    #expect(call.counters { $0.drops(.unknownStream) } > 0)
  }

  /// Asserts consecutive picture ids for consecutive frames, and timestamps that rise by 33 ms, or by up to `jump`
  /// milliseconds more.
  private func expectContinuous(_ packets: [ReceivedStream.Packet], jump: ClosedRange<Int>) {
    for (a, b) in zip(packets, packets.dropFirst()) {
      let step = Int(b.timestamp &- a.timestamp) / 90
      let pictures = (b.pictureID ?? 0) &- (a.pictureID ?? 0)
      #expect(pictures <= 1)
      #expect((b.tl0PictureIndex ?? 0) &- (a.tl0PictureIndex ?? 0) == UInt8(pictures))
      if pictures == 1 {
        #expect(step == 33 || jump.contains(step - 33) || jump.contains(step))
      } else {
        #expect(step == 0)
      }
    }
  }
}
