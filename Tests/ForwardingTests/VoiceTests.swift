import Glibc
import MediaModel
import Octets
import Testing

@testable import Forwarding

/// Audio levels decide which peers become voices, and which one is the dominant speaker.
struct VoiceTests {
  /// The sound of a microphone: dB above silence for each packet of 20 ms.
  enum Sound: String, CaseIterable {
    case quietRoom, typing, cough, speech, constant, digitalSilence

    func level(_ packet: Int, _ random: inout SplitMix64) -> Int {
      let room = 55 + Int.random(in: -4...4, using: &random)
      return switch self {
      case .quietRoom: room
      // Two keys a second, each in one or two packets.
      case .typing: packet % 25 < Int.random(in: 1...2, using: &random) ? 95 : room
      case .cough: packet % 500 < 15 ? 110 : room
      // Words of 300 to 400 ms with gaps of 100 ms.
      case .speech: packet % 23 < 18 ? Int.random(in: 92...108, using: &random) : room
      case .constant: 127
      case .digitalSilence: 0
      }
    }
  }

  @Test(
    arguments: [
      (Sound.quietRoom, 0.0...0.02), (.typing, 0.0...0.02), (.cough, 0.01...0.08), (.speech, 0.7...1),
      (.digitalSilence, 0.0...0.0),
    ], [1, 2, 3] as [UInt64])
  func onlySpeechIsTakenForSpeech(sound: (Sound, ClosedRange<Double>), seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var activity = SpeechActivity()
    var speaking = 0
    for packet in 0..<3000 {
      let level = sound.0.level(packet, &random)
      activity.heard(level: UInt8(127 - level), now: instant(1000 + 20 * UInt64(packet)))
      if activity.isSpeaking { speaking += 1 }
    }
    let share = Double(speaking) / 3000
    #expect(sound.1.contains(share), "\(sound.0): \(share), seed \(seed)")
  }

  @Test func aLevelThatNeverChangesIsNoiseWithinAMinute() {
    var activity = SpeechActivity()
    var last = 0
    for packet in 0..<6000 {
      activity.heard(level: 0, now: instant(1000 + 20 * UInt64(packet)))
      if activity.isSpeaking { last = packet }
    }
    #expect(last > 0 && last < 75 * 50, "\(last)")
  }

  @Test func theFirstPacketsOfANewcomerMayBeSpeech() {
    var activity = SpeechActivity()
    for packet in 0..<3 as Range<UInt64> { activity.heard(level: 30, now: instant(1000 + 20 * packet)) }
    #expect(activity.isSpeaking)
  }

  @Test func missingPacketsAreSilence() {
    var activity = SpeechActivity()
    for packet in 0..<50 as Range<UInt64> { activity.heard(level: 20, now: instant(1000 + 20 * packet)) }
    let last: UInt64 = 1980
    let now = activity.scores(at: instant(last))
    let later = activity.scores(at: instant(last + 500))
    #expect(now.immediate > 1 && now.medium > 100 && now.long > 400)
    #expect(activity.scores(at: instant(last + 20)).immediate == now.immediate, "a late packet")
    #expect(later.immediate < 1 && later.medium < 1 && later.long > 1 && later.long < now.long)
    #expect(activity.scores(at: instant(last + 2000)).long < 1)
  }

  /// A packet of 60 ms counts as three steps of 20 ms.
  @Test func longPacketsCountAsLong() {
    var (short, long) = (SpeechActivity(), SpeechActivity())
    for packet in 0..<60 as Range<UInt64> { short.heard(level: 20, now: instant(1000 + 20 * packet)) }
    for packet in 0..<20 as Range<UInt64> { long.heard(level: 20, now: instant(1000 + 60 * packet)) }
    #expect(long.scores(at: instant(2140)).long == short.scores(at: instant(2180)).long)
  }

  @Test func theScoresAreThePapers() {
    func score(_ v: Int, _ n: Int, _ lambda: Double) -> Double {
      let choose = lgamma(Double(n) + 1) - lgamma(Double(v) + 1) - lgamma(Double(n - v) + 1)
      return max(1e-10, choose + Double(n) * log(0.5) - log(lambda) + lambda * Double(v))
    }
    for v in 0...13 { #expect(abs(SpeechScores.immediateScores[v] - score(v, 13, 0.78)) < 1e-5) }
    for v in 0...5 { #expect(abs(SpeechScores.mediumScores[v] - score(v, 5, 24)) < 1e-5) }
    for v in 0...10 { #expect(abs(SpeechScores.longScores[v] - score(v, 10, 47)) < 1e-5) }
  }

  /// A call with the room noise of `count` microphones.
  private func crowded(_ count: Int, voices: Int = 8, workers: Int = 1) throws -> SimulatedCall {
    let call = SimulatedCall(workers: workers)
    for _ in 0..<count { call.join([.microphone], audioSlots: voices, videoSlots: 0) }
    try call.connect()
    for peer in call.peers {
      peer.tracks[0].level = 70
      peer.tracks[0].payloadLength = 100
    }
    call.run(milliseconds: 500)
    return call
  }

  /// Lets these speak, word by word, and calls `body` every 20 ms.
  private func speak(_ call: SimulatedCall, _ numbers: [Int], packets: Int, each body: () -> Void = {}) {
    for packet in 0..<packets {
      for (i, number) in numbers.enumerated() {
        call.peers[number - 1].tracks[0].level = (packet + 5 * i) % 23 < 18 ? 22 : 70
      }
      call.run(milliseconds: 20)
      body()
    }
    for number in numbers { call.peers[number - 1].tracks[0].level = 70 }
  }

  private func hears(_ peer: TestPeer, _ number: Int) -> [UInt64] {
    peer.streams.values.flatMap(\.serials).filter { $0 >> 40 == number }
  }

  @Test(arguments: workerCounts) func aCoughDoesNotTakeTheFirstPlace(workers: Int) throws {
    let call = try crowded(4, workers: workers)
    speak(call, [2], packets: 150)
    #expect(call.speakers.last?.first == 2)
    let before = call.speakers.count
    for packet in 0..<100 {
      call.peers[1].tracks[0].level = packet % 23 < 18 ? 22 : 70
      call.peers[2].tracks[0].level = packet < 15 ? 10 : 70
      call.run(milliseconds: 20)
    }
    #expect(call.speakers.count > before, "the cough was heard")
    #expect(call.speakers.dropFirst(before).allSatisfy { $0.first == 2 })
  }

  @Test(arguments: workerCounts) func theOneWhoSpeaksTakesTheFirstPlaceFromTheOneWhoStopped(workers: Int) throws {
    let call = try crowded(4, workers: workers)
    speak(call, [2], packets: 150)
    speak(call, [3], packets: 100)
    #expect(call.speakers.last?.first == 3)
    let events = call.speakers.count
    // Both speak at once for ten seconds: neither is silent for long.
    speak(call, [2, 3], packets: 500)
    let first = call.speakers.dropFirst(events).compactMap(\.first)
    let changes = zip(first, first.dropFirst()).count { $0 != $1 }
    #expect(changes <= 10, "\(first)")
    call.run(milliseconds: 5000)
    #expect(call.speakers.last == [])
  }

  @Test(.enabled(if: isRelease)) func aSilentCallDoesNoWorkForItsSpeakers() throws {
    let call = try crowded(12)
    call.run(milliseconds: 3000)
    let state = try #require(call.sfu.calls[SimulatedCall.name])
    let next = state.speakers.next
    call.run(milliseconds: 5000)
    #expect(state.speakers.next == next && state.speakers.visits == 0)
    #expect(state.deadline == nil)
  }

  @Test(arguments: workerCounts) func theFirstSyllableIsHeard(workers: Int) throws {
    let call = try crowded(12, workers: workers)
    speak(call, Array(1...8), packets: 150)
    call.run(milliseconds: 2000)
    let (speaker, listener) = (call.peers[11], call.peers[10])
    #expect(hears(listener, 12).isEmpty)
    let first = speaker.tracks[0].serial + 1
    speak(call, [12], packets: 20)
    let heard = hears(listener, 12)
    #expect(heard.first.map { $0 <= first } ?? false, "all packets from the first syllable on")
    #expect(Array(heard.first!...heard.last!) == heard, "none is missing")
    #expect(heard.contains(speaker.tracks[0].serial - 1))
    let stream = try #require(listener.streams.values.first { $0.serials.contains(first) })
    #expect(stream.missing.isEmpty, "consecutive numbers")
    let packets = stream.ordered.drop { $0.serial >> 40 != 12 }
    #expect(packets.first?.marker == true && packets.dropFirst().allSatisfy { !$0.marker })
    for (a, b) in zip(packets, packets.dropFirst()) { #expect(b.timestamp &- a.timestamp == 960) }
    // It took three packets to distinguish speech from a click, and they came at once together with those before.
    let burst = packets.count { $0.arrival == packets.first?.arrival }
    #expect((8...10).contains(burst), "\(burst)")
  }

  @Test(arguments: workerCounts) func aSpeakerIsNotCutOffWithinAWordAndTheNinthTakesTurns(workers: Int) throws {
    let call = try crowded(12, workers: workers)
    let listener = call.peers[9]
    speak(call, Array(1...8), packets: 150)
    let speaking = Array(1...8) + [12]
    var heard = Set(1...8)
    var changes = 0
    func listen() {
      let new = Set(call.assignment(of: listener).values.map { Int($0.participant) })
      if new != heard { changes += 1 }
      heard = new
    }
    speak(call, speaking, packets: 30, each: listen)
    #expect(changes == 0, "a cough would be over")
    speak(call, speaking, packets: 200, each: listen)
    #expect((1...5).contains(changes), "one change in 1.25 s at most: \(changes)")
    // One stops speaking, so that all others are heard.
    speak(call, Array(2...8) + [12], packets: 150)
    #expect(Set(call.assignment(of: listener).values.map { Int($0.participant) }) == Set(Array(2...8) + [12]))
  }

  @Test(arguments: workerCounts) func aLiarTakesOnePlace(workers: Int) throws {
    let call = try crowded(12, workers: workers)
    let listener = call.peers[9]
    call.peers[11].tracks[0].level = 0
    speak(call, Array(1...7), packets: 200)
    let before = call.events.count
    speak(call, Array(1...7), packets: 500)
    #expect(Set(call.assignment(of: listener).values.map { Int($0.participant) }) == Set(Array(1...7) + [12]))
    let maps = call.events.dropFirst(before).count { if case .slots = $0 { true } else { false } }
    #expect(maps == 0, "the others keep their slots")
    #expect(call.speakers.allSatisfy { $0.count <= 8 })
  }

  /// A microphone's last packets are kept only if somebody might not hear it.
  @Test func preRollsAreKeptOnlyInCrowdedCalls() throws {
    let call = try crowded(9)
    func kept() -> Int { call.sfu.peers.count { $0.encodings[0].preRoll != nil } }
    #expect(kept() == 0)
    let tenth = call.join([.microphone], audioSlots: 8, videoSlots: 0)
    call.run(milliseconds: 200)
    #expect(kept() == 10)
    call.mute(call.peers[0], 0, true)
    call.run(milliseconds: 200)
    #expect(kept() == 9, "silent ones have nothing to say")
    call.command(.remove(tenth.configuration.peer))
    #expect(kept() == 0)
  }

  /// Each of 1,000 constantly makes a noise like speech: voices change only as often as the minimum hold time of a
  /// place allows.
  @Test(.enabled(if: isRelease)) func noisyCallsFillTheirSlotsABoundedNumberOfTimes() {
    func visits(_ count: UInt32) -> (visits: UInt64, changes: Int) {
      let crowd = Crowd()
      for number in 1...count { crowd.join(number, [.microphone]) }
      crowd.run(milliseconds: 1000)
      var changes = 0
      let visits = crowd.visits { crowd in
        for step in 0..<250 {
          let before = crowd.call.speakers.voices.peers.map(\.id)
          // They take turns, each loud for 100 ms in 1.5 s.
          for number in 1...count {
            let isLoud = (step + Int(number) * 7) % 75 < 5
            crowd.hear(level: isLoud ? 20 : 70, of: crowd.peer(number))
          }
          crowd.run(milliseconds: 20)
          if crowd.call.speakers.voices.peers.map(\.id) != before { changes += 1 }
        }
      }
      return (visits, changes)
    }
    let (small, large) = (visits(100), visits(1000))
    print("everybody makes noise for 5 s: \(small.visits) visits with 100 peers, \(large.visits) with 1,000")
    #expect(small.visits > 0 && large.visits <= 15 * small.visits)
    // Eight places, each held for 2 s.
    #expect((1...8 * 3 + 1).contains(large.changes), "\(large.changes)")
  }
}
