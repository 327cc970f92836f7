import MediaModel
import RTP
import Testing

@testable import Forwarding

struct SpeakerTests {
  private func entries(_ loudness: Int...) -> [SpeakerSelection.Entry] {
    loudness.enumerated().map { .init(participant: UInt32($0.offset + 1), loudness: $0.element * 1000) }
  }

  @Test func theLoudestComesFirst() {
    var speakers = SpeakerSelection()
    #expect(speakers.update(entries(80, 100, 20), most: 8, now: instant(1000), scores: { _ in .none }) == true)
    #expect(speakers.current == [2, 1])
  }

  @Test func aSmallLeadDoesNotChangeTheOrderBehindTheFirst() {
    var speakers = SpeakerSelection()
    let none = { (_: Int) in SpeechScores.none }
    _ = speakers.update(entries(100, 90, 80), most: 8, now: instant(1000), scores: none)
    #expect(speakers.update(entries(100, 90, 95), most: 8, now: instant(1000), scores: none) == false)
    #expect(speakers.update(entries(100, 90, 97), most: 8, now: instant(1000), scores: none) == true)
    #expect(speakers.current == [1, 3, 2])
  }

  @Test func theFirstStaysUntilAnotherSpeaksInstead() {
    var speakers = SpeakerSelection()
    let paused = SpeechScores(immediate: 0, medium: 0, long: 3)
    let speaking = SpeechScores(immediate: 9, medium: 5, long: 8)
    _ = speakers.update(entries(90, 80), most: 8, now: instant(1000), scores: { _ in .none })
    #expect(
      speakers.update(entries(80, 110), most: 8, now: instant(1000), scores: { _ in speaking }) == false, "both speak")
    #expect(
      speakers.update(entries(80, 110), most: 8, now: instant(1000), scores: { $0 == 0 ? paused : speaking }) == true)
    #expect(speakers.current == [2, 1])
    #expect(speakers.update(entries(110, 20), most: 8, now: instant(1000), scores: { _ in .none }) == true)
    #expect(speakers.current == [1], "the dominant one is silent")
  }

  @Test func silenceEmptiesTheList() {
    var speakers = SpeakerSelection()
    _ = speakers.update(entries(90), most: 8, now: instant(1000), scores: { _ in .none })
    #expect(speakers.update(entries(60), most: 8, now: instant(1000), scores: { _ in .none }) == true)
    #expect(speakers.current.isEmpty)
  }

  @Test func loudnessRisesInSomePacketsAndFallsSlowly() {
    var loudness = Loudness()
    loudness.heard(level: 7, now: instant(1000))
    #expect(loudness.value(at: instant(1000)) < SpeakerSelection.threshold, "one click is no speech")
    for i in 1...6 as ClosedRange<UInt64> { loudness.heard(level: 7, now: instant(1000 + 20 * i)) }
    #expect(loudness.value(at: instant(1120)) > SpeakerSelection.threshold)
    #expect(loudness.value(at: instant(1500)) > SpeakerSelection.threshold, "a pause between words")
    #expect(loudness.value(at: instant(4000)) < SpeakerSelection.threshold)
  }

  @Test(arguments: workerCounts) func eventsComeOnChangeAtMostEvery300Milliseconds(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    for _ in 0..<3 { call.join([.microphone]) }
    try call.connect()
    call.run(milliseconds: 500)
    #expect(call.speakers.isEmpty)
    call.peers[1].tracks[0].level = 25
    call.run(milliseconds: 1000)
    #expect(call.speakers == [[2]])
    call.peers[2].tracks[0].level = 10
    call.run(milliseconds: 1000)
    #expect(call.speakers.last == [2, 3], "both speak, and the first stays")
    #expect(call.speakers.count <= 3)
    // After a mute its levels no longer count, even without a packet that says so.
    for i in 1...2 { call.mute(call.peers[i], 0, true) }
    call.run(milliseconds: 4000)
    #expect(call.speakers.last == [])
  }

  /// The two-byte form (RFC 8285 section 4.3) has empty elements. It is followed by the payload, or the end of the
  /// packet.
  @Test(arguments: [0, 40]) func aLevelElementWithoutALevelIsIgnored(payload: Int) throws {
    let call = SimulatedCall()
    let a = call.join([.microphone])
    call.join([])
    try call.connect()
    let track = a.tracks[0]
    track.isSending = false
    call.run(milliseconds: 100)
    let before = call.sfu.counters.forwarded
    for _ in 0..<50 {
      track.sequenceNumber &+= 1
      track.timestamp &+= 960
      var packet = [UInt8](repeating: 0, count: 12)
      packet.withUnsafeMutableBytes {
        RTPHeader.write(
          marker: false, payloadType: 120, sequenceNumber: track.sequenceNumber, timestamp: track.timestamp,
          ssrc: track.ssrc, into: $0)
      }
      packet[0] |= 0x10
      packet += [0x10, 0x00, 0, 1, 0, 0, a.configuration.extensions.audioLevel, 0]
      // Read as a level: 0, the loudest.
      packet += [UInt8](repeating: 0, count: payload)
      call.receive(try #require(a.protect(packet)), from: a.address)
      call.run(milliseconds: 20)
    }
    #expect(call.sfu.counters.forwarded == before + (payload > 0 ? 50 : 0), "an empty packet is left out")
    let loudness = try #require(call.sfu.peersByID[a.configuration.peer]).voice.loudness.value(at: call.now)
    #expect(loudness <= 78_000, "what such a client is presumed to have, not the 127 dB that were read")
  }

  @Test func thereAreNoMoreSpeakersThanAsked() {
    var speakers = SpeakerSelection()
    #expect(speakers.update(entries(80, 100, 90, 95), most: 2, now: instant(1000), scores: { _ in .none }) == true)
    #expect(speakers.current == [2, 4])
    // A newcomer has to be clearly louder to take the last place.
    #expect(speakers.update(entries(80, 100, 100, 95), most: 2, now: instant(1000), scores: { _ in .none }) == false)
    #expect(speakers.update(entries(80, 100, 102, 95), most: 2, now: instant(1000), scores: { _ in .none }) == true)
    #expect(speakers.current == [2, 3])
  }

  @Test(arguments: workerCounts) func speakersAreAsManyAsTheMostVoicesThatAnybodyReceives(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    for i in 0..<4 { call.join([.microphone], audioSlots: i == 0 ? 2 : 1) }
    try call.connect()
    for peer in call.peers { peer.tracks[0].level = 20 }
    call.run(milliseconds: 1000)
    #expect(call.speakers.last?.count == 2)
  }
}
