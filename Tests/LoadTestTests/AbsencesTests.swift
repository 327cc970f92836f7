import MediaModel
import Testing

@testable import loadtest

struct AbsencesTests {
  private func at(_ seconds: UInt64) -> Instant { Instant(nanoseconds: seconds * 1_000_000_000) }

  @Test func theFirstArrivalIsNoGap() {
    var absences = Absences()
    #expect(!absences.isBack)
    #expect(absences.back(at: at(1)) == nil)
    #expect(absences.isBack && absences.gaps.isEmpty)
  }

  @Test func aLossWhileOneLastsBelongsToIt() {
    var absences = Absences()
    _ = absences.back(at: at(1))
    absences.lost(at: at(10))
    absences.lost(at: at(12))
    #expect(!absences.isBack)
    #expect(absences.back(at: at(13)) == .seconds(3))
    absences.lost(at: at(20))
    #expect(absences.back(at: at(21)) == .seconds(1))
    #expect(absences.gaps == [.seconds(3), .seconds(1)])
  }
}
