import MediaModel
import Octets
import Testing

@testable import Forwarding

/// The sizes are those of libopus 1.3 for recorded words of 2 s in a room's noise, with pauses of 1.5 s: from the tenth to the ninetieth percentile.
struct SoundGuessTests {
  struct Encoder: CustomTestStringConvertible {
    var testDescription: String
    var quiet: ClosedRange<Int>
    var speech: ClosedRange<Int>
    var overhead = 0
  }

  static let variable = [
    Encoder(testDescription: "32 kbit/s, VoIP", quiet: 61...70, speech: 74...90),
    Encoder(testDescription: "24 kbit/s, VoIP, unconstrained", quiet: 42...48, speech: 56...70),
    Encoder(testDescription: "the library's own rate", quiet: 107...114, speech: 124...142),
    Encoder(testDescription: "32 kbit/s, encrypted", quiet: 61...70, speech: 74...90, overhead: 24),
  ]

  /// The shares of packets of speech and of silence that count as speech, in the second half of `seconds`.
  private func shares(_ encoder: Encoder, seconds: Int = 60) -> (speech: Double, quiet: Double, differs: Bool) {
    var guess = SoundGuess()
    var random = SplitMix64(seed: 7)
    var counts = (speech: 0, quiet: 0, taken: (speech: 0, quiet: 0))
    for packet in 0..<seconds * 50 {
      let speaks = packet % 175 >= 75
      let length = Int.random(in: speaks ? encoder.speech : encoder.quiet, using: &random) + encoder.overhead
      let sound = guess.heard(
        length, isEncrypted: encoder.overhead > 0, now: instant(1000 + 20 * UInt64(packet)))
      guard packet >= seconds * 25 else { continue }
      if speaks {
        counts.speech += 1
        if sound != .quiet { counts.taken.speech += 1 }
      } else {
        counts.quiet += 1
        if sound != .quiet { counts.taken.quiet += 1 }
      }
    }
    return (
      Double(counts.taken.speech) / Double(counts.speech), Double(counts.taken.quiet) / Double(counts.quiet),
      guess.differs
    )
  }

  @Test(arguments: variable) func speechIsToldFromNoiseByTheLengthOfItsPackets(encoder: Encoder) {
    let shares = shares(encoder)
    #expect(shares.differs)
    #expect(shares.speech > 0.7, "\(shares)")
    #expect(shares.quiet < 0.3, "\(shares)")
  }

  @Test(arguments: [Encoder(testDescription: "constant", quiet: 80...80, speech: 80...80)])
  func aConstantRateSaysNothing(encoder: Encoder) {
    let shares = shares(encoder)
    #expect(!shares.differs && shares.speech == 1 && shares.quiet == 1)
  }

  @Test(arguments: [0, 24]) func withDTXSilenceIsSilence(overhead: Int) {
    let shares = shares(Encoder(testDescription: "", quiet: 1...3, speech: 60...95, overhead: overhead))
    #expect(shares.quiet == 0 && shares.speech > 0.9, "\(shares)")
  }

  @Test func nothingIsPresumedOfAClientThatHasPaused() {
    var guess = SoundGuess()
    #expect(guess.heard(80, isEncrypted: false, now: instant(1000)) == .presumed)
    #expect(guess.heard(2, isEncrypted: false, now: instant(1020)) == .quiet)
    #expect(guess.heard(80, isEncrypted: false, now: instant(1040)) == .speech)
  }

  /// The encoder got a lower or a higher rate: it is not ignored forever.
  @Test(arguments: [0.5, 2]) func anotherRateIsLearned(factor: Double) {
    var guess = SoundGuess()
    var random = SplitMix64(seed: 9)
    var heard = 0
    for packet in 0..<6000 {
      let speaks = packet % 175 >= 75
      let scale = packet < 3000 ? 1 : factor
      let length = Double(Int.random(in: speaks ? 74...90 : 61...70, using: &random)) * scale
      let sound = guess.heard(Int(length), isEncrypted: false, now: instant(1000 + 20 * UInt64(packet)))
      if packet >= 5000, speaks, sound == .speech { heard += 1 }
    }
    #expect(heard > 400, "of about 570: \(heard)")
  }
}
