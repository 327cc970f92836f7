import MediaModel
import Octets
import RTP
import Testing

@testable import Forwarding

/// The ring of packets, and the memory shared by all rings of a worker.
struct PacketHistoryTests {
  /// A history with the numbers of the packets that it should have, and specific bytes for each.
  private final class Kept {
    let history: PacketHistory
    private let memory: UnsafeMutableRawBufferPointer = .allocate(byteCount: 1500, alignment: 16)
    private(set) var bytes = 0

    init(limit: Int = 1 << 20, span: Duration = .seconds(2), budget: HistoryBudget = HistoryBudget(limit: .max)) {
      history = PacketHistory(first: 16 << 10, limit: limit, span: span, budget: budget)
    }

    deinit { memory.deallocate() }

    /// The sender's timestamps are all the same.
    func insert(_ index: UInt64, length: Int, at now: Instant, padding: UInt8 = 0) {
      let packet = UnsafeMutableRawBufferPointer(rebasing: memory[..<(length + Int(padding))])
      for i in 0..<packet.count { packet[i] = UInt8(truncatingIfNeeded: index &+ UInt64(i)) }
      RTPHeader.write(
        marker: false, payloadType: 96, sequenceNumber: UInt16(truncatingIfNeeded: index), timestamp: 7, ssrc: 1,
        into: packet)
      if padding > 0 {
        RTPHeader.setPadding(true, in: packet)
        packet[packet.count - 1] = padding
      }
      guard let base = packet.baseAddress, let header = RTPHeader(parsing: packet.bytes) else { return }
      history.insert(Packet(base: base, length: length, header: header, index: index), now: now)
      bytes += length
    }

    /// Whether it has the packet with exactly its bytes.
    func has(_ index: UInt64, length: Int) -> Bool {
      guard let packet = history.packet(index) else { return false }
      return packet.length == length && packet.header.sequenceNumber == UInt16(truncatingIfNeeded: index)
        && packet.header.paddingLength == 0
        && (12..<length).allSatisfy { packet.bytes[$0] == UInt8(truncatingIfNeeded: index &+ UInt64($0)) }
    }
  }

  private func at(_ milliseconds: Int) -> Instant { instant(1_000_000 + UInt64(milliseconds)) }

  @Test func aHistoryHasNoMemoryBeforeItsFirstPacket() {
    let budget = HistoryBudget(limit: 1 << 20)
    let kept = Kept(budget: budget)
    #expect(kept.history.capacity == 0 && kept.history.packet(0) == nil && budget.used == 0)
    kept.insert(5, length: 100, at: at(0))
    #expect(kept.has(5, length: 100) && kept.history.packet(4) == nil && budget.used == 16 << 10)
    kept.history.removeAll()
    #expect(kept.history.packet(5) == nil && budget.used == 0 && budget.deadline == nil)
  }

  /// Packets a second and their length, and the memory that two seconds of them take.
  @Test(arguments: [(50, 100, 16 << 10), (60, 1000, 128 << 10), (2000, 1200, 8 << 20), (50, 20, 16 << 10)])
  func packetsOfTheSpanAreKept(perSecond: Int, length: Int, capacity: Int) {
    let kept = Kept(limit: 8 << 20)
    let last = UInt64(10 * perSecond)
    for index in 0...last { kept.insert(index, length: length, at: at(Int(index) * 1000 / perSecond)) }
    #expect(kept.history.capacity == capacity)
    #expect((last - UInt64(2 * perSecond) + 1...last).allSatisfy { kept.has($0, length: length) })
    #expect(kept.history.packet(last + 1) == nil)
  }

  /// A shared screen at 20 Mbit/s: a packet that is requested after a round trip of two seconds.
  @Test func aScreenOf20MbitsIsKeptForARoundTripOfTwoSeconds() {
    let configuration = SFUConfiguration()
    let kept = Kept(
      limit: configuration.videoHistory, span: configuration.historySpan,
      budget: HistoryBudget(limit: configuration.historyBudget))
    for index in 0..<12_000 { kept.insert(UInt64(index), length: 1200, at: at(index * 480 / 1000)) }
    // 2 s are 4,167 packets.
    #expect((12_000 - 4_300..<12_000).allSatisfy { kept.has(UInt64($0), length: 1200) })
  }

  @Test func theLimitHoldsWhateverArrives() {
    let kept = Kept(limit: 64 << 10)
    for index in 0..<10_000 as Range<UInt64> { kept.insert(index, length: 1200, at: at(0)) }
    #expect(kept.history.capacity == 64 << 10)
    #expect((9_950..<10_000).allSatisfy { kept.has($0, length: 1200) })
    #expect(kept.history.packet(9_900) == nil)
  }

  /// The sender's numbers may jump arbitrarily without using memory.
  @Test func jumpsOfTheNumbersTakeNoMemory() {
    let kept = Kept(limit: 8 << 20)
    for i in 0..<100 as Range<UInt64> { kept.insert(i << 20, length: 40, at: at(0)) }
    #expect(kept.history.capacity == 16 << 10)
    #expect(kept.has(99 << 20, length: 40))
  }

  @Test func paddingIsNotKept() {
    let kept = Kept()
    kept.insert(1, length: 200, at: at(0), padding: 90)
    #expect(kept.has(1, length: 200))
  }

  /// Every packet that is found is intact, and the newest are found, whatever the lengths and orders.
  @Test(arguments: 1...20 as ClosedRange<UInt64>) func randomPacketsAreWholeOrGone(seed: UInt64) {
    var random = SplitMix64(seed: seed)
    let budget = HistoryBudget(limit: 192 << 10)
    let all = [Kept(budget: budget), Kept(budget: budget)]
    var lengths: [[UInt64: Int]] = [[:], [:]]
    var now = 0
    for index in 0..<3000 as Range<UInt64> {
      now += Int.random(in: 0...20, using: &random)
      for (i, kept) in all.enumerated() {
        let length = Int.random(in: 12...(index % 7 == 0 ? 1440 : 300), using: &random)
        // Some come late.
        let number = index ^ UInt64.random(in: 0...3, using: &random)
        guard lengths[i][number] == nil else { continue }
        lengths[i][number] = length
        kept.insert(number, length: length, at: at(now))
        #expect(kept.has(number, length: length), "seed \(seed)")
        if Int.random(in: 0..<500, using: &random) == 0 { kept.history.removeAll() }
      }
      #expect(budget.used <= budget.limit && budget.used == all.reduce(0) { $0 + $1.history.capacity })
    }
    for (i, kept) in all.enumerated() {
      let found = lengths[i].filter { kept.history.packet($0.key) != nil }
      #expect(found.allSatisfy { kept.has($0.key, length: $0.value) }, "seed \(seed)")
    }
  }

  /// The memory of one worker: an attacker's histories do not displace others.
  @Test func theLargestGiveToThoseThatHaveLess() {
    let budget = HistoryBudget(limit: 4 << 20)
    let greedy = (0..<4).map { _ in Kept(budget: budget) }
    for kept in greedy {
      for index in 0..<5000 as Range<UInt64> { kept.insert(index, length: 1200, at: at(0)) }
    }
    #expect(budget.used == 4 << 20 && greedy.allSatisfy { $0.history.capacity == 1 << 20 })
    let honest = (0..<10).map { _ in Kept(budget: budget) }
    for index in 0..<120 as Range<UInt64> {
      for kept in honest { kept.insert(index, length: 1000, at: at(Int(index) * 16)) }
      for kept in greedy { kept.insert(5000 + index, length: 1200, at: at(Int(index) * 16)) }
    }
    #expect(budget.used <= budget.limit && budget.taken > 0)
    #expect(honest.allSatisfy { kept in (0..<120).allSatisfy { kept.has($0, length: 1000) } })
    // Only the newest packets are left.
    #expect(greedy.allSatisfy { kept in (5000..<5120).allSatisfy { kept.has($0, length: 1200) } })
    let moves = budget.taken
    for index in 5120..<8000 as Range<UInt64> { for kept in greedy { kept.insert(index, length: 1200, at: at(1904)) } }
    #expect(budget.taken - moves <= 8, "they do not take turns")
  }

  @Test func withoutAnyMemoryNothingIsKept() {
    let budget = HistoryBudget(limit: 16 << 10)
    let (first, second) = (Kept(budget: budget), Kept(budget: budget))
    first.insert(1, length: 100, at: at(0))
    second.insert(1, length: 100, at: at(0))
    #expect(first.has(1, length: 100) && second.history.packet(1) == nil)
    first.history.removeAll()
    second.insert(2, length: 100, at: at(0))
    #expect(second.has(2, length: 100))
  }

  @Test func theMemoryOfIdleOnesComesBack() {
    let budget = HistoryBudget(limit: .max)
    var all = (0..<1000).map { _ in Kept(budget: budget) }
    for kept in all { kept.insert(1, length: 100, at: at(0)) }
    func sweep(_ from: Int, _ to: Int) {
      for now in from..<to { if let due = budget.deadline, due <= at(now) { _ = budget.sweep(at(now)) } }
    }
    sweep(0, 9_900)
    #expect(budget.count == 1000)
    for kept in all[..<10] { kept.insert(2, length: 100, at: at(9_000)) }
    sweep(9_900, 14_000)
    #expect(budget.count == 10 && budget.used == 160 << 10)
    #expect(all[..<10].allSatisfy { $0.has(2, length: 100) } && all[10].history.packet(1) == nil)
    all.removeAll()
    #expect(budget.used == 0 && budget.deadline == nil)
  }
}
