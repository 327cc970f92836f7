import Octets
import Testing

struct SplitMix64Tests {
  /// The output of the authors' C code for this seed.
  @Test func aSeedGivesTheNumbersOfTheReferenceCode() {
    var generator = SplitMix64(seed: 1_234_567)
    #expect(
      (0..<5).map { _ in generator.next() } == [
        6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423, 4_593_380_528_125_082_431,
        16_408_922_859_458_223_821,
      ])
  }

  @Test func uniformNumbersLieBetweenZeroAndOneAndFillTheRange() {
    var generator = SplitMix64(seed: 1)
    let numbers = (0..<10_000).map { _ in generator.uniform() }
    #expect(numbers.allSatisfy { 0 <= $0 && $0 < 1 })
    #expect(numbers.min()! < 0.01 && numbers.max()! > 0.99)
    #expect(abs(numbers.reduce(0, +) / 10_000 - 0.5) < 0.02)
  }
}
