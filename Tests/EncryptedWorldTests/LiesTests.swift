import Foundation
import Testing

/// The table of lies (`Tests/Vectors/lies.json`): each row is tested with our client, and none is left out.
struct LiesTests {
  private struct Table: Decodable {
    struct Row: Decodable {
      var n: Int
      var warns: Bool
      /// The only client for which the row is; nil for both.
      var only: String?
    }
    var rows: [Row]
  }

  private static let table: Table = {
    let url = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "Vectors/lies.json")
    var table = try! JSONDecoder().decode(Table.self, from: Data(contentsOf: url))
    table.rows.removeAll { $0.only == "web" }
    return table
  }()

  /// Rows for the server instead of clients (`CallsTests`).
  private static let serversRows: Set<Int> = [47]

  /// Rows about names, which only the page keeps and shows (`Tests/WebTests/world/lies-hearing.mjs`).
  private static let pagesRows: Set<Int> = [332, 336]

  @Test func everyRowIsPlayed() {
    #expect(Set(Self.table.rows.map(\.n)).subtracting(Lies.rows.keys) == Self.serversRows.union(Self.pagesRows))
  }

  @Test(arguments: Lies.rows.keys.sorted()) func aClientHolds(_ row: Int) throws {
    let play = try #require(Lies.rows[row])
    let warns = Self.table.rows.first { $0.n == row }?.warns ?? false
    for seed: UInt64 in 1...2 {
      let stage = try play(seed)
      if warns { #expect(stage.isWarned, "row \(row), seed \(seed): nobody was told") }
      #expect(stage.world?.audit.failure == nil, "row \(row), seed \(seed)")
    }
  }
}

/// The outcome of a row.
struct Aftermath {
  var world: World?
  var isWarned: Bool

  init(_ scene: Scene, warned: [SimDevice]) {
    world = scene.world
    isWarned = warned.contains(where: scene.isWarned)
  }

  init(isWarned: Bool = false) { self.isWarned = isWarned }
}

/// The function for each row.
enum Lies {
  static let rows: [Int: @Sendable (UInt64) throws -> Aftermath] = lists.merging(keys) { first, _ in first }
    .merging(rules) { first, _ in first }.merging(frames) { first, _ in first }.merging(hearing) { first, _ in first }
    .merging(lettingIn) { first, _ in first }
}
