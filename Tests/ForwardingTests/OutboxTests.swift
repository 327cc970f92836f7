import MediaModel
import Testing

@testable import Forwarding

struct OutboxTests {
  private let destination = SocketAddress(ipv4: 1, port: 1)

  private func put(_ outbox: Outbox, _ cursor: inout Outbox.Cursor, _ length: Int, to: SocketAddress? = nil) -> Bool {
    guard outbox.reserve(length, &cursor) != nil else { return false }
    outbox.commit(length, &cursor, to: to ?? destination, isUrgent: false)
    return true
  }

  private func check(_ isRight: Bool, _ comment: Comment? = nil) { #expect(isRight, comment) }

  private func lengths(_ outbox: Outbox) -> [[Int]] { outbox.runs.map { [$0.segment, $0.length] } }

  @Test func equalLengthsAreOneRunThatAShorterOneEnds() {
    let outbox = Outbox(chunks: 2)
    var cursor = Outbox.Cursor()
    for length in [100, 100, 60, 60, 61] { check(put(outbox, &cursor, length)) }
    #expect(lengths(outbox) == [[100, 260], [60, 60], [61, 61]])
  }

  @Test func aRunHas64SegmentsAtMost() {
    let outbox = Outbox(chunks: 2)
    var cursor = Outbox.Cursor()
    for _ in 0..<130 { check(put(outbox, &cursor, 10)) }
    #expect(outbox.runs.map(\.count) == [64, 64, 2])
  }

  @Test func receiversDoNotMix() {
    let outbox = Outbox(chunks: 4)
    var (a, b) = (Outbox.Cursor(), Outbox.Cursor())
    let other = SocketAddress(ipv4: 2, port: 1)
    for _ in 0..<3 {
      check(put(outbox, &a, 10))
      check(put(outbox, &b, 10, to: other))
    }
    #expect(outbox.runs.map(\.count) == [3, 3])
    check(put(outbox, &a, 10, to: other), "the receiver moved")
    #expect(outbox.runs.map(\.count) == [3, 3, 1])
  }

  @Test func runsStayUnder65000Bytes() {
    let outbox = Outbox(chunks: 3)
    var cursor = Outbox.Cursor()
    for _ in 0..<100 { check(put(outbox, &cursor, 1400)) }
    #expect(outbox.runs.allSatisfy { $0.length < 65_000 })
    #expect(outbox.runs.reduce(0) { $0 + $1.count } == 100)
  }

  @Test func aFullPoolRefusesAndAResetFreesIt() {
    let outbox = Outbox(chunks: 1)
    var (a, b) = (Outbox.Cursor(), Outbox.Cursor())
    check(put(outbox, &a, 1000))
    check(!put(outbox, &b, 1000))
    #expect(outbox.isNearlyFull)
    outbox.reset()
    #expect(outbox.isEmpty && !outbox.isUrgent)
    check(put(outbox, &b, 1000))
    check(!put(outbox, &a, 1000))
  }

  @Test func aCallOf1000HasRoomForRunsOfSeveralPackets() {
    let outbox = Outbox()
    var cursors = [Outbox.Cursor](repeating: Outbox.Cursor(), count: 1_000)
    for _ in 0..<3 {
      for index in cursors.indices {
        check(put(outbox, &cursors[index], 137, to: SocketAddress(ipv4: UInt32(index), port: 1)))
      }
      #expect(!outbox.isNearlyFull, "otherwise each packet is sent separately")
    }
    #expect(outbox.runs.count == 1_000)
    #expect(outbox.runs.allSatisfy { $0.count == 3 })
  }
}
