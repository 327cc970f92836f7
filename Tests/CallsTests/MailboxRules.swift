@testable import PeopleMachine
import Contract
import LinuxIO
import MediaModel
import Seeded
import Simulation
import Testing

import CallMessages

struct MailboxRules {
  private static let limits = Mailbox.Limits(lifetime: .seconds(300), count: 100_000, bytes: .max)
  private let now = Timestamp(milliseconds: 1)

  private func message(_ number: Int) -> Message {
    Message(
      id: Message.unshared,
      event: EventMessage(at: now, call: CallID("c")!, body: .switchKeys(SwitchKeys(epoch: UInt32(number)))))
  }

  /// Compared with the protocol's rule: a single acknowledgement covers its number, a cumulative one all numbers up to
  /// its own.
  @Test(arguments: 1...20 as ClosedRange<UInt64>) func anAcknowledgementCoversItsNumbers(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var mailbox = Mailbox(lastSeq: 0)
    var held: [UInt64] = []
    for step in 0..<1_000 {
      if Int.random(in: 0..<3, using: &random) < 2 {
        held.append(mailbox.write(message(step), mode: .client, limits: Self.limits, now: now).seq)
        continue
      }
      let seq = UInt64.random(in: 0...(mailbox.lastSeq + 1), using: &random)
      let all = Int.random(in: 0..<10, using: &random) == 0
      let covered = held.filter { all ? $0 <= seq : $0 == seq }
      held.removeAll { all ? $0 <= seq : $0 == seq }
      #expect(mailbox.acknowledge(seq, all: all).count == covered.count, "seed \(seed), step \(step)")
      #expect(mailbox.kept.count == held.count, "seed \(seed), step \(step)")
    }
  }

  /// With ten times as many outstanding events each acknowledgement may be a little slower, but not ten times. It
  /// measures the thread's CPU time, which other threads do not affect.
  @Test func manyOutstandingEventsAreAcknowledgedInLinearTime() {
    func time(_ count: Int) -> UInt64 {
      (0..<5).map { _ in
        var mailbox = Mailbox(lastSeq: 0)
        for number in 0..<count { _ = mailbox.write(message(number), mode: .individual, limits: Self.limits, now: now) }
        let start = ThreadClock.now()
        // From the end, so that nothing has to move.
        for seq in stride(from: UInt64(count), to: 0, by: -1) { _ = mailbox.acknowledge(seq, all: false) }
        return ThreadClock.now() - start
      }.min()!
    }
    let (small, large) = (time(500), time(5_000))
    #expect(large < small * 40)
  }
}
