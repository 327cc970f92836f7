import MediaModel
import Octets
import Testing

@testable import Forwarding

/// Claiming to speak costs nothing. Attackers who claim it all the time, in turns, or under new numbers cannot prevent
/// honest speakers from being heard.
struct VoiceFairnessTests {
  /// The level that a liar gives its microphone every 20 ms, in dB above silence; nil for no packet.
  enum Lie: String, CaseIterable {
    case loudest, floorKeptDown, leastSound, speechWithGaps, talksFor9900Milliseconds, comesAgain, mutesAndUnmutes

    func level(_ packet: Int, _ number: Int, _ random: inout SplitMix64) -> Int? {
      switch self {
      case .loudest, .comesAgain, .mutesAndUnmutes: 127
      // One packet of level 126 every 3 s.
      case .floorKeptDown: packet % 150 == number ? 1 : 127
      // Three loud packets every 780 ms, and nothing in between.
      case .leastSound: packet % 39 < 3 ? 127 : nil
      case .speechWithGaps: packet % 50 < 45 ? Int.random(in: 100...127, using: &random) : 50
      case .talksFor9900Milliseconds: packet % 540 < 495 ? 127 : 50
      }
    }
  }

  /// A call in which liars speak from the start, and honest people from `delay` on.
  private final class Stage {
    let crowd = Crowd()
    var random: SplitMix64
    private(set) var packet = 0
    /// For each number the steps of 20 ms in which it was a voice, and the first one.
    private(set) var held: [UInt32: Int] = [:]
    private(set) var firstHeld: [UInt32: Int] = [:]
    private var numbers: [UInt32: UInt32] = [:]
    private var last: UInt32

    init(_ count: UInt32, guests: ClosedRange<UInt32>? = nil, seed: UInt64) {
      random = SplitMix64(seed: seed)
      last = count
      for number in 1...count { crowd.join(number, [.microphone], isGuest: guests?.contains(number) ?? false) }
      crowd.run(milliseconds: 500)
    }

    /// - Parameter honest: the participants who speak word by word.
    func run(seconds: Int, liars: ClosedRange<UInt32>, _ lie: Lie, honest: [UInt32]) {
      for _ in 0..<seconds * 50 {
        for liar in liars { tell(lie, liar) }
        for (i, number) in honest.enumerated() {
          let level = (packet + 7 * i) % 23 < 18 ? Int.random(in: 90...108, using: &random) : 55
          hear(number, level)
        }
        crowd.run(milliseconds: 20)
        for (liar, number) in numbers where isVoice(number) { held[liar, default: 0] += 1 }
        for number in liars where numbers[number] == nil && isVoice(number) { held[number, default: 0] += 1 }
        for number in honest where isVoice(number) {
          held[number, default: 0] += 1
          if firstHeld[number] == nil { firstHeld[number] = packet }
        }
        packet += 1
      }
    }

    private func tell(_ lie: Lie, _ liar: UInt32) {
      // Each at a different moment, all within a second.
      let step = packet + 5 * Int(liar)
      if lie == .comesAgain, step % 200 == 199 {
        crowd.handle(.remove(PeerID(rawValue: UInt64(numbers[liar] ?? liar))))
        last += 1
        numbers[liar] = last
        crowd.join(last, [.microphone], member: Int(liar))
      }
      let number = numbers[liar] ?? liar
      if lie == .mutesAndUnmutes, step % 100 >= 98 {
        crowd.handle(.mute(PeerID(rawValue: UInt64(number)), TrackID(participant: number, index: 1), step % 100 == 98))
      }
      if let level = lie.level(step, Int(liar), &random) { hear(number, level) }
    }

    private func hear(_ number: UInt32, _ level: Int) {
      let peer = crowd.peer(number)
      guard !peer.upTracks[0].isSilent else { return }
      crowd.hear(level: UInt8(127 - level), of: peer)
    }

    func isVoice(_ number: UInt32) -> Bool { crowd.peer(number).voice.since != nil }

    /// The share of the time, from `packets` on, in which this participant was a voice.
    func share(_ number: UInt32, of packets: Int) -> Double { Double(held[number] ?? 0) / Double(packets) }
  }

  /// Eight liars have all places when the ninth person begins to speak.
  @Test(arguments: Lie.allCases, [0, 6, 20])
  func theNinthIsHeardWithin2SecondsAndHasItsShare(lie: Lie, delay: Int) throws {
    let stage = Stage(9, seed: 7)
    stage.run(seconds: delay, liars: 1...8, lie, honest: [])
    let before = stage.packet
    stage.run(seconds: 60, liars: 1...8, lie, honest: [9])
    let first = try #require(stage.firstHeld[9])
    print(
      "\(lie) after \(delay) s: heard after \((first - before) * 20) ms, for \(stage.share(9, of: 3000)) of a minute")
    // Three packets tell speech from a click.
    #expect((first - before) * 20 <= 2060)
    // Eight places for nine.
    #expect(stage.share(9, of: 3000) >= 0.8)
  }

  /// As many liars are waiting as have places.
  @Test(arguments: Lie.allCases) func amongSixteenEachHasItsShare(lie: Lie) throws {
    let stage = Stage(18, seed: 3)
    stage.run(seconds: 30, liars: 1...16, lie, honest: [])
    let before = stage.packet
    stage.run(seconds: 120, liars: 1...16, lie, honest: [17, 18])
    let firsts = try [17, 18].map { try #require(stage.firstHeld[$0]) - before }
    let shares = [17, 18].map { stage.share($0, of: 6000) }
    print("\(lie), 16 liars: heard after \(firsts.map { $0 * 20 }) ms, for \(shares) of the time")
    #expect(firsts.allSatisfy { $0 * 20 <= 4000 })
    // 8 of 18 have a place.
    #expect(shares.allSatisfy { $0 >= 0.3 })
  }

  @Test func aMemberWaitsForNoGuest() throws {
    let stage = Stage(40, guests: 1...32, seed: 5)
    stage.run(seconds: 20, liars: 1...32, .floorKeptDown, honest: [])
    let before = stage.packet
    stage.run(seconds: 60, liars: 1...32, .floorKeptDown, honest: [33, 34, 35, 36])
    for member in 33...36 as ClosedRange<UInt32> {
      #expect((try #require(stage.firstHeld[member]) - before) * 20 <= 2100)
      #expect(stage.share(member, of: 3000) >= 0.95)
    }
    // Eight members at once: all guests together have at most one place.
    stage.run(seconds: 30, liars: 1...32, .floorKeptDown, honest: Array(33...40))
    #expect((1...32).count { stage.isVoice($0) } <= 1)
    let members = (33...40).count { stage.isVoice($0) }
    #expect(members >= 7)
  }

  /// A guest who speaks is heard where eight members speak all the time.
  @Test func aGuestIsHeardAmongMembers() throws {
    let stage = Stage(9, guests: 9...9, seed: 2)
    stage.run(seconds: 20, liars: 1...8, .floorKeptDown, honest: [])
    let before = stage.packet
    stage.run(seconds: 60, liars: 1...8, .floorKeptDown, honest: [9])
    #expect((try #require(stage.firstHeld[9]) - before) * 20 <= 2060)
    #expect(stage.share(9, of: 3000) >= 0.3)
  }

  /// If there are enough places for everybody who speaks, nobody loses one, and a cough takes none.
  @Test func eightHonestSpeakersKeepTheirPlaces() {
    let stage = Stage(12, seed: 4)
    stage.run(seconds: 10, liars: 1...1, .speechWithGaps, honest: Array(2...8))
    let before = stage.crowd.call.speakers.voices.peers.map(\.id)
    for second in 0..<60 {
      // The four others cough for 300 ms, each in a different second.
      let number = UInt32(9 + second % 4)
      for i in 0..<15 {
        stage.crowd.hear(
          level: 10, of: stage.crowd.peer(number), now: stage.crowd.now.advanced(by: .milliseconds(20 * i)))
      }
      stage.run(seconds: 1, liars: 1...1, .speechWithGaps, honest: Array(2...8))
    }
    #expect(stage.crowd.call.speakers.voices.peers.map(\.id) == before)
  }

  @Test(arguments: [1, 2]) func levelsThatNeverChangeAreNoiseThoughOnePacketIsQuiet(quiet: Int) {
    var activity = SpeechActivity()
    var last = 0
    for packet in 0..<9000 {
      activity.heard(level: packet % 150 < quiet ? 126 : 0, now: instant(1000 + 20 * UInt64(packet)))
      if activity.isSpeaking { last = packet }
    }
    #expect(last > 0 && last < 120 * 50, "\(last)")
  }

  /// The case that was found: eight who claim to speak, and a ninth who does, with real transports.
  @Test(arguments: workerCounts, [false, true]) func theNinthIsHeard(workers: Int, areGuests: Bool) throws {
    let call = SimulatedCall(workers: workers)
    for number in 1...10 {
      let peer = call.join([.microphone], audioSlots: 8, videoSlots: 0)
      peer.configuration.isGuest = areGuests && number <= 8
      call.configure(peer)
    }
    try call.connect()
    for liar in call.peers.prefix(8) { liar.tracks[0].level = 0 }
    for peer in call.peers { peer.tracks[0].payloadLength = 100 }
    let (honest, listener) = (call.peers[8], call.peers[9])
    call.run(milliseconds: 12_000)
    let before = honest.tracks[0].serial
    for packet in 0..<600 {
      honest.tracks[0].level = packet % 23 < 18 ? 22 : 70
      for liar in call.peers.prefix(8) { liar.tracks[0].level = packet % 150 == 0 ? 126 : 0 }
      call.run(milliseconds: 20)
    }
    let heard = listener.streams.values.flatMap(\.serials).filter { $0 >> 40 == 9 && $0 > before }
    let sent = honest.tracks[0].serial - before
    print("the ninth of nine speakers: \(heard.count) of \(sent) packets were heard")
    #expect(heard.count * 10 >= Int(sent) * 7)
    let first = try #require(heard.min())
    #expect(first - before <= 100, "within 2 s")
  }

  /// A receiver may have fewer slots than the call has voices. A liar that always claims to speak does not keep its
  /// slot.
  @Test(arguments: workerCounts, [1, 2]) func aReceiverWithFewSlotsHearsEverybodyInTurn(workers: Int, slots: Int) throws
  {
    let call = SimulatedCall(workers: workers)
    for _ in 1...slots + 1 { call.join([.microphone], audioSlots: 8, videoSlots: 0) }
    let listener = call.join([], audioSlots: slots, videoSlots: 0)
    try call.connect()
    let (liars, honest) = (call.peers.prefix(slots), call.peers[slots])
    for liar in liars { liar.tracks[0].level = 0 }
    for peer in call.peers.prefix(slots + 1) { peer.tracks[0].payloadLength = 100 }
    call.run(milliseconds: 3_000)
    let before = call.peers.prefix(slots + 1).map { $0.tracks[0].serial }
    for packet in 0..<2_000 {
      honest.tracks[0].level = packet % 23 < 18 ? 22 : 70
      for liar in liars { liar.tracks[0].level = packet % 150 == 0 ? 126 : 0 }
      call.run(milliseconds: 20)
    }
    let heard = listener.streams.values.flatMap(\.serials)
    let counts = before.map { before in heard.count { $0 >> 40 == before >> 40 && $0 > before } }
    print(
      "\(slots + 1) speakers in \(slots) slots: heard were \(counts) of \(honest.tracks[0].serial - before[slots]) packets"
    )
    #expect(counts[slots] >= 1_600 * slots / (slots + 1))
    #expect(counts[0] >= 200, "the other speaks, too")
  }

  // MARK: The first place

  /// Runs with this liar and a speaker, and returns the share of the time in which the speaker is dominant.
  private func dominance(_ levels: (Int) -> [Int], honest: UInt32, liars: Int, guests: ClosedRange<UInt32>? = nil)
    -> Double
  {
    let crowd = Crowd()
    for number in 1...UInt32(liars + 1) {
      crowd.join(number, [.microphone], isGuest: guests?.contains(number) ?? false)
    }
    crowd.run(milliseconds: 500)
    var first = 0
    for packet in 0..<6000 {
      for (i, level) in levels(packet).enumerated() {
        crowd.hear(level: UInt8(127 - level), of: crowd.peer(UInt32(i + 1)))
      }
      let level = packet % 23 < 18 ? 100 : 55
      crowd.hear(level: UInt8(127 - level), of: crowd.peer(honest))
      crowd.run(milliseconds: 20)
      if crowd.call.speakers.current.first == honest { first += 1 }
    }
    return Double(first) / 6000
  }

  @Test func aLiarSharesTheFirstPlace() {
    let one = dominance({ [$0 % 25 < 20 ? 127 : 50] }, honest: 2, liars: 1)
    #expect(one >= 0.35, "\(one)")
    let floor = dominance({ [$0 % 150 == 0 ? 1 : 127] }, honest: 2, liars: 1)
    #expect(floor >= 0.35, "\(floor)")
    // Two alternate, each for 3 s, so that neither is dominant for long.
    let two = dominance({ $0 % 300 < 150 ? [127, 50] : [50, 127] }, honest: 3, liars: 2)
    #expect(two >= 0.2, "\(two)")
  }

  @Test func guestsDoNotTakeTheFirstPlaceFromAMember() {
    let one = dominance({ [$0 % 25 < 20 ? 127 : 50] }, honest: 2, liars: 1, guests: 1...1)
    #expect(one >= 0.9, "\(one)")
    let two = dominance({ $0 % 300 < 150 ? [127, 50] : [50, 127] }, honest: 3, liars: 2, guests: 1...2)
    #expect(two >= 0.9, "\(two)")
  }

  // MARK: A receiver's own choice

  @Test(arguments: workerCounts) func aMutedParticipantHasNoSlotOfThatReceiver(workers: Int) throws {
    let call = SimulatedCall(workers: workers)
    for _ in 0..<11 { call.join([.microphone], audioSlots: 8, videoSlots: 0) }
    try call.connect()
    for liar in call.peers.prefix(8) { liar.tracks[0].level = 0 }
    call.run(milliseconds: 3000)
    let (listener, other) = (call.peers[10], call.peers[9])
    func heard(_ peer: TestPeer) -> Set<UInt32> { Set(call.assignment(of: peer).values.map(\.participant)) }
    #expect(heard(listener) == Set(1...8))
    let before = call.events.count
    call.command(.receive(listener.configuration.peer, Wishes(muted: [1, 2, 3])))
    call.run(milliseconds: 150)
    #expect(heard(listener) == Set(4...10))
    #expect(heard(other) == Set(1...8), "others hear them")
    let told = call.events.dropFirst(before).compactMap { if case .slots(let peer, _) = $0 { peer } else { nil } }
    #expect(Set(told) == [listener.configuration.peer], "nobody else is told")
    call.command(.receive(listener.configuration.peer, Wishes(muted: Set(1...9))))
    call.run(milliseconds: 150)
    #expect(heard(listener) == [10])
    // Neither a later offer nor newcomers change it.
    call.configure(listener)
    let late = call.join([.microphone], audioSlots: 8, videoSlots: 0)
    call.run(milliseconds: 1000)
    #expect(heard(listener) == [10, late.configuration.participant])
    call.command(.receive(listener.configuration.peer, Wishes()))
    call.run(milliseconds: 2500)
    #expect(heard(listener).isSuperset(of: 1...7))
  }

  /// Many tracks of muted participants come before the others: the slots still follow joins and leaves.
  @Test func slotsFollowTheTracksBehindMutedOnes() {
    let crowd = Crowd()
    for number in 1...3 as ClosedRange<UInt32> { crowd.join(number, Array(repeating: .screenAudio, count: 40)) }
    for number in 4...8 as ClosedRange<UInt32> { crowd.join(number, [.microphone]) }
    crowd.handle(.receive(PeerID(rawValue: 8), Wishes(muted: [1, 2, 3])))
    crowd.run(milliseconds: 200)
    func heard() -> Set<UInt32> { Set(crowd.peer(8).audioSlots.compactMap { $0.source?.track.participant }) }
    #expect(heard() == [4, 5, 6, 7])
    crowd.join(9, [.microphone])
    crowd.handle(.remove(PeerID(rawValue: 4)))
    crowd.run(milliseconds: 200)
    #expect(heard() == [5, 6, 7, 9])
  }
}
