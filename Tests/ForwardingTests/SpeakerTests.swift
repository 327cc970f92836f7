import MediaModel
import Testing

@testable import Forwarding

struct SpeakerTests {
  private func entries(_ loudness: Int...) -> [Speakers.Entry] {
    loudness.enumerated().map { .init(participant: UInt32($0.offset + 1), loudness: $0.element * 1000) }
  }

  @Test func theLoudestComesFirst() {
    var speakers = Speakers()
    #expect(speakers.update(entries(80, 100, 20)) == true)
    #expect(speakers.current == [2, 1])
  }

  @Test func aSmallLeadDoesNotChangeTheOrder() {
    var speakers = Speakers()
    _ = speakers.update(entries(90, 80))
    #expect(speakers.update(entries(90, 95)) == false)
    #expect(speakers.update(entries(90, 97)) == true)
    #expect(speakers.current == [2, 1])
  }

  @Test func silenceEmptiesTheList() {
    var speakers = Speakers()
    _ = speakers.update(entries(90))
    #expect(speakers.update(entries(60)) == true)
    #expect(speakers.current.isEmpty)
  }

  @Test func loudnessRisesInSomePacketsAndFallsSlowly() {
    var loudness = Loudness()
    loudness.heard(level: 7, now: instant(1000))
    #expect(loudness.value(at: instant(1000)) < Speakers.threshold, "one click is no speech")
    for i in 1...6 as ClosedRange<UInt64> { loudness.heard(level: 7, now: instant(1000 + 20 * i)) }
    #expect(loudness.value(at: instant(1120)) > Speakers.threshold)
    #expect(loudness.value(at: instant(1500)) > Speakers.threshold, "a pause between words")
    #expect(loudness.value(at: instant(4000)) < Speakers.threshold)
  }

  @Test func eventsComeOnChangeAtMostEvery300Milliseconds() throws {
    let call = SimulatedCall()
    for _ in 0..<3 { call.join([.microphone]) }
    try call.connect()
    call.run(milliseconds: 500)
    #expect(call.speakers.isEmpty)
    call.peers[1].tracks[0].level = 25
    call.run(milliseconds: 1000)
    #expect(call.speakers == [[2]])
    call.peers[2].tracks[0].level = 10
    call.run(milliseconds: 1000)
    #expect(call.speakers.last == [3, 2])
    #expect(call.speakers.count <= 3)
    // Muted: its levels count no more, and no packet need come to say so.
    for i in 1...2 { call.mute(call.peers[i], 0, true) }
    call.run(milliseconds: 4000)
    #expect(call.speakers.last == [])
  }
}
