import MediaModel
import Testing

@testable import Forwarding

struct LayerClockTests {
  @Test func layersOfOnePictureGiveTheDifferenceTheSecondTime() {
    var clock = LayerClock()
    clock.began(1, timestamp: 1000, of: 0, at: instant(100))
    clock.began(2, timestamp: 50_000, of: 1, at: instant(101))
    #expect(clock.difference(from: 0, to: 1) == nil)
    clock.began(3, timestamp: .max - 100, of: 2, at: instant(102))
    clock.began(4, timestamp: 4000, of: 0, at: instant(133))
    clock.began(5, timestamp: 53_000, of: 1, at: instant(134))
    clock.began(6, timestamp: 2899, of: 2, at: instant(135))
    #expect(clock.difference(from: 0, to: 1) == 49_000)
    #expect(clock.difference(from: 1, to: 0) == 0 &- 49_000)
    // The middle layer connects them, across the wrap.
    #expect(clock.difference(from: 0, to: 2) == 2899 &- 4000)
  }

  @Test func framesOfTwoPicturesAreNotCompared() {
    var clock = LayerClock()
    for picture in 0..<20 as Range<UInt64> {
      // The last layer of a picture and the first of the next also have consecutive numbers.
      clock.began(2 * picture, timestamp: UInt32(3000 * picture), of: 0, at: instant(33 * picture))
      clock.began(2 * picture + 1, timestamp: 7 + UInt32(3000 * picture), of: 1, at: instant(33 * picture + 20))
    }
    #expect(clock.difference(from: 0, to: 1) == nil)
  }

  @Test func aLayerThatBeginsAnewIsLearnedAgain() {
    var clock = LayerClock()
    for picture in 0..<4 as Range<UInt64> {
      let jump: UInt32 = picture < 3 ? 0 : 555
      clock.began(2 * picture, timestamp: UInt32(3000 * picture), of: 0, at: instant(33 * picture))
      clock.began(2 * picture + 1, timestamp: jump + UInt32(3000 * picture), of: 1, at: instant(33 * picture))
      #expect(clock.difference(from: 0, to: 1) == (picture == 0 || picture == 3 ? nil : 0))
    }
  }
}
