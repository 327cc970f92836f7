import Testing

@testable import ConclaveServer

struct OpenFilesTests {
  @Test(arguments: [
    (65_536, 4, true, 20_000), (8_192, 2, true, 6_033), (1_024, 1, true, 665), (1_024, 1, false, 886),
    (256, 2, true, 81),
    (10, 1, true, 1), (.max, 256, true, 20_000),
  ])
  func connectionsLeaveFilesForMediaAndTheDatabase(limit: Int, workers: Int, tcp: Bool, connections: Int) {
    #expect(OpenFiles(limit: limit).connections(wanted: 20_000, workers: workers, tcp: tcp) == connections)
  }

  @Test func connectionsAreNoMoreThanWanted() {
    #expect(OpenFiles(limit: 65_536).connections(wanted: 40, workers: 1, tcp: true) == 40)
  }

  @Test func theLimitIsThatOfTheProcess() { #expect(OpenFiles.raised().limit >= 64) }
}
