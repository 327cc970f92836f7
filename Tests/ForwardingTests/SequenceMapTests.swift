import Octets
import Testing

@testable import Forwarding

struct SequenceMapTests {
  @Test func omittedPacketsLeaveNoGap() {
    var map = SequenceMap(first: 100, output: 7)
    var outputs: [UInt64] = []
    for index in 100..<140 as Range<UInt64> {
      if index % 3 == 0 { map.omit(index) } else if let output = map.map(index) { outputs.append(output) }
    }
    #expect(outputs == Array(7..<7 + UInt64(outputs.count)))
    #expect(outputs.count == 27)
  }

  @Test func anOmittedPacketIsNotSentAgain() {
    var map = SequenceMap(first: 100, output: 7)
    #expect(map.map(100) == 7)
    map.omit(101)
    #expect(map.map(102) == 8)
    #expect(map.output(of: 101) == nil)
    #expect(map.map(101) == nil)
    #expect(map.index(of: 7) == 100)
    #expect(map.index(of: 8) == 102)
    #expect(map.index(of: 9) == nil)
    #expect(map.index(of: 6) == nil)
  }

  @Test func aLatePacketHasItsPlace() {
    var map = SequenceMap(first: 100, output: 7)
    #expect(map.map(100) == 7)
    #expect(map.map(103) == 10)
    map.omit(104)
    #expect(map.map(105) == 11)
    #expect(map.map(101) == 8)
    #expect(map.index(of: 8) == 101)
  }

  /// Its number is used up: the receiver may ask for it and gets nothing.
  @Test func aPacketOmittedLateLeavesItsNumberUnused() {
    var map = SequenceMap(first: 100, output: 7)
    #expect(map.map(100) == 7)
    #expect(map.map(102) == 9)
    #expect(map.index(of: 8) == 101)
    map.omit(101)
    #expect(map.output(of: 101) == nil)
    #expect(map.map(101) == nil)
    #expect(map.index(of: 8) == nil)
    #expect(map.map(103) == 10)
  }

  @Test func theFirstPacketsMayBeOmitted() {
    var map = SequenceMap(first: 100, output: 7)
    map.omit(100)
    map.omit(101)
    #expect(map.index(of: 6) == nil)
    #expect(map.index(of: 7) == nil)
    #expect(map.map(102) == 7)
    #expect(map.map(99) == nil)
    #expect(map.index(of: 7) == 102)
    #expect(map.index(of: 6) == nil)
  }

  @Test func aJumpOverTheWindowForgetsWhatWasOmitted() {
    var map = SequenceMap(first: 100, output: 7)
    map.omit(100)
    #expect(map.map(100 + 5000) == 5006)
    #expect(map.map(100 + 5000 - 1023) == 3983)
    #expect(map.output(of: 100 + 5000 - 1024) == nil)
    #expect(map.index(of: 7 + 4999 - 1023) == 4077)
    #expect(map.index(of: 7 + 4999 - 1024) == nil)
  }

  /// Loss, reordering, packets omitted in time and late, across several wraps of 16 bits, compared with a counting
  /// model.
  @Test(arguments: 1...(isRelease ? 6 : 1) as ClosedRange<UInt64>)
  func agreesWithAModel(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    let first: UInt64 = 65_536 + .random(in: 0..<65_536, using: &random)
    var map = SequenceMap(first: first, output: 131_000)
    var model = Model(first: first, output: 131_000)
    let omission = [0, 2, 30, 60, 95, 100][Int(seed) - 1]
    let arrivals = order(from: first, count: 150_000, &random)
    #expect(arrivals.count > 130_000)
    var given: Set<UInt64> = []
    for (turn, index) in arrivals.enumerated() {
      if Int.random(in: 0..<100, using: &random) < omission {
        map.omit(index)
        model.omit(index)
      } else {
        let output = map.map(index)
        try #require(output == model.map(index), "seed \(seed), packet \(index)")
        if let output { try #require(given.insert(output).inserted, "seed \(seed): \(output) was given twice") }
      }
      // Besides the newest, one in the window, and sometimes every number in it.
      let back = UInt64.random(in: 0...1100, using: &random)
      for back in turn % 10_000 == 0 ? Array(0...1100) : [0, back] {
        let other = model.newest - min(back, model.newest)
        try #require(map.output(of: other) == model.output(of: other), "seed \(seed), packet \(other) of \(index)")
        let number = model.last - min(back, model.last)
        try #require(map.index(of: number) == model.index(of: number), "seed \(seed), number \(number)")
      }
    }
    #expect(given.count > 0 || omission == 100)
    #expect(model.last > 131_000 + 65_536 || omission > 30)
  }

  /// Without loss, sent packets have consecutive 16-bit numbers across every wrap, however many packets are omitted.
  @Test(arguments: [7, 8] as [UInt64])
  func numbersRunOnOverWraps(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    var map = SequenceMap(first: 70_000, output: 100_000)
    var next = UInt16(truncatingIfNeeded: 100_000)
    var (sent, wrong) = (0, 0)
    for index in 70_000..<470_000 as Range<UInt64> {
      if Int.random(in: 0..<4, using: &random) == 0 {
        map.omit(index)
        continue
      }
      if map.map(index).map(UInt16.init(truncatingIfNeeded:)) != next { wrong += 1 }
      next &+= 1
      sent += 1
    }
    #expect(sent > 4 * 65_536)
    #expect(wrong == 0)
  }

  /// The indices in an order in which a network may deliver them: some lost, some up to 40 places late, a few over a window late.
  private func order(from first: UInt64, count: UInt64, _ random: inout SplitMix64) -> [UInt64] {
    (first..<first + count).compactMap { index -> (UInt64, UInt64)? in
      switch UInt64.random(in: 0..<1000, using: &random) {
      case 0..<50: nil
      case 50..<150: (index + .random(in: 1...40, using: &random), index)
      case 150: (index + 1500, index)
      default: (index, index)
      }
    }
    .sorted { ($0.0, $0.1) < ($1.0, $1.1) }.map(\.1)
  }

  /// The counting model: which packets have no number, and which have an unused number.
  private struct Model {
    let first: UInt64
    let output: UInt64
    var newest: UInt64
    /// For each index from the first on, the number of earlier ones without a number.
    private var before: [UInt64] = [0]
    private var omitted: Set<UInt64> = []
    private var withheld: Set<UInt64> = []
    private var indexByOutput: [UInt64: UInt64] = [:]

    init(first: UInt64, output: UInt64) {
      (self.first, self.output) = (first, output)
      newest = first - 1
    }

    /// The newest number.
    var last: UInt64 { output + (newest + 1 - first) - before[Int(newest + 1 - first)] - 1 }

    mutating func map(_ index: UInt64) -> UInt64? {
      while newest < index { advance(isOmitted: false) }
      return output(of: index)
    }

    mutating func omit(_ index: UInt64) {
      if index > newest {
        while newest + 1 < index { advance(isOmitted: false) }
        advance(isOmitted: true)
      } else if newest - index < 1024, !omitted.contains(index) {
        withheld.insert(index)
      }
    }

    func output(of index: UInt64) -> UInt64? {
      guard index >= first, index <= newest, newest - index < 1024, !omitted.contains(index), !withheld.contains(index)
      else { return nil }
      return number(index)
    }

    func index(of number: UInt64) -> UInt64? {
      guard let index = indexByOutput[number], newest - index < 1024, !withheld.contains(index) else { return nil }
      return index
    }

    private func number(_ index: UInt64) -> UInt64 { output + (index - first) - before[Int(index - first)] }

    private mutating func advance(isOmitted: Bool) {
      newest += 1
      before.append(before[before.count - 1] + (isOmitted ? 1 : 0))
      if isOmitted { omitted.insert(newest) } else { indexByOutput[number(newest)] = newest }
    }
  }
}
