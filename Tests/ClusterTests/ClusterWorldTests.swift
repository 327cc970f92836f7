import Foundation
import Testing

struct ClusterWorldTests {
  static let batches = 8
  /// `deploy/test` runs a few hundred worlds, the group `worlds` 2,000.
  static let worlds = ProcessInfo.processInfo.environment["CONCLAVE_CLUSTER_WORLDS"].flatMap(Int.init) ?? 240

  /// One in a line, with what it was.
  static let kept: [UInt64] = {
    let file = URL(fileURLWithPath: #filePath).deletingLastPathComponent().appendingPathComponent("kept-seeds")
    let text = (try? String(contentsOf: file, encoding: .utf8)) ?? ""
    return text.split(separator: "\n").compactMap { line in line.split(separator: " ").first.flatMap { UInt64($0) } }
  }()

  /// A seed that fails is printed. It goes into `kept-seeds`.
  @Test(arguments: 0..<batches) func theGuaranteesHoldWhateverHappens(batch: Int) {
    var counts: [String: Int] = [:]
    var ends = 0
    for seed in stride(from: batch, to: Self.worlds, by: Self.batches) {
      let world = ClusterWorld(seed: UInt64(seed))
      if let failure = world.run() {
        Issue.record("\(failure)")
        return
      }
      counts.merge(world.counts, uniquingKeysWith: +)
      ends += world.deaths
    }
    // Worlds in which nothing happens prove nothing. Each batch has one kind of trouble, because a seed's remainder by 8 chooses it.
    #expect(counts["answers", default: 0] > 100 && counts["parcels", default: 0] > 1_000)
    if ClusterWorld.Trouble(rawValue: batch) == .pauses { #expect(ends > 0 && counts["declared", default: 0] > 0) }
  }

  @Test func thereAreKeptSeeds() { #expect(Self.kept.count >= 10) }

  @Test(arguments: kept) func keptSeedsHold(seed: UInt64) {
    if let failure = ClusterWorld(seed: seed).run() { Issue.record("\(failure)") }
  }

  /// A world that does not notice a mistake proves nothing either.
  @Test(arguments: Mutation.allCases) func eachMistakeIsNoticed(mutation: Mutation) {
    let isNoticed = (0..<200).contains { ClusterWorld(seed: $0, mutation: mutation).run() != nil }
    #expect(isNoticed, "no world of 200 notices it")
  }
}
