@testable import CongestionControl
import Seeded
import Testing

struct PacerTests {
  private let rate = 1_000_000

  private func packet(
    _ index: UInt64, frame: UInt16, slot: UInt8 = 3, kind: SentKind = .video, isDiscardable: Bool = false,
    isKeyFrame: Bool = false
  ) -> PacedPacket {
    PacedPacket(
      index: index, size: 1_200, frame: frame, slot: slot, kind: kind, isDiscardable: isDiscardable,
      isKeyFrame: isKeyFrame
    )
  }

  @Test func aFramePassesWholeWhileNothingIsOwed() {
    var pacer = Pacer(now: 0)
    // 40 ms of 1 Mbit/s are 5,000 bytes: the frame begins within them and ends beyond.
    for i in 0..<7 as Range<UInt64> {
      #expect(pacer.offer(packet(i, frame: 1), rate: rate, now: 0) == .passes)
      pacer.sent(bytes: 1_200)
    }
    // The next frame waits until the debt is 40 ms.
    #expect(pacer.offer(packet(7, frame: 2), rate: rate, now: 0) == .queued)
    #expect(pacer.next(rate: rate, now: 20 * millisecond) == nil)
    #expect(pacer.next(rate: rate, now: 40 * millisecond)?.index == 7)
    #expect(pacer.isEmpty)
  }

  @Test func pacedPacketsLeaveAtTheRateInOrder() {
    var pacer = Pacer(now: 0)
    pacer.sent(bytes: 5_100)
    for i in 0..<20 as Range<UInt64> {
      #expect(pacer.offer(packet(i, frame: 1, isKeyFrame: true), rate: rate, now: 0) == .queued)
    }
    var left: [UInt64] = []
    var now: Microseconds = 0
    while !pacer.isEmpty {
      now += 5 * millisecond
      while let packet = pacer.next(rate: rate, now: now) {
        left.append(packet.index)
        pacer.sent(bytes: 1_200)
      }
    }
    #expect(left == Array(0..<20))
    // 20 × 1,200 bytes at 1 Mbit/s.
    #expect((180...200).contains(now / millisecond))
  }

  @Test func retransmissionsLeaveFirst() {
    var pacer = Pacer(now: 0)
    pacer.sent(bytes: 10_000)
    _ = pacer.offer(packet(1, frame: 1), rate: rate, now: 0)
    _ = pacer.offer(packet(2, frame: 0, kind: .retransmission), rate: rate, now: 0)
    #expect(pacer.next(rate: rate, now: second)?.index == 2)
    #expect(pacer.next(rate: rate, now: second)?.index == 1)
  }

  @Test func aLongQueueDropsWhatNobodyNeedsThenEverythingUpToAKeyFrame() {
    var pacer = Pacer(now: 0)
    pacer.sent(bytes: 10_000)
    // 250 ms of 1 Mbit/s are 31,250 bytes.
    for i in 0..<27 as Range<UInt64> { #expect(pacer.offer(packet(i, frame: 1), rate: rate, now: 0) == .queued) }
    #expect(pacer.offer(packet(30, frame: 2, isDiscardable: true), rate: rate, now: 0) == .dropped)
    #expect(pacer.offer(packet(31, frame: 2, isDiscardable: true), rate: rate, now: 0) == .dropped)
    #expect(!pacer.needsKeyFrame(slot: 3))
    for i in 40..<66 as Range<UInt64> { #expect(pacer.offer(packet(i, frame: 3), rate: rate, now: 0) == .queued) }
    #expect(pacer.offer(packet(70, frame: 4), rate: rate, now: 0) == .dropped)
    #expect(pacer.needsKeyFrame(slot: 3))
    #expect(pacer.offer(packet(71, frame: 5), rate: rate, now: 0) == .dropped)
    // The key frame replaces the waiting packets.
    #expect(pacer.offer(packet(80, frame: 6, isKeyFrame: true), rate: rate, now: 0) == .queued)
    #expect(pacer.queuedBytes == 1_200)
    #expect(!pacer.needsKeyFrame(slot: 3))
  }

  @Test func aKeyFrameTakesThePlaceOfItsOwnSlotsPacketsAlone() {
    var pacer = Pacer(now: 0)
    pacer.sent(bytes: 10_000)
    for i in 0..<12 as Range<UInt64> {
      #expect(pacer.offer(packet(i, frame: 1, slot: UInt8(i % 3)), rate: rate, now: 0) == .queued)
    }
    // The key frame's second packet arrived before its first.
    #expect(pacer.offer(packet(20, frame: 2, slot: 1), rate: rate, now: 0) == .queued)
    for i in 21..<24 as Range<UInt64> {
      #expect(pacer.offer(packet(i, frame: 2, slot: 1, isKeyFrame: true), rate: rate, now: 0) == .queued)
    }
    #expect(pacer.queuedBytes == 12 * 1_200)
    // An older packet that arrives late does not make it new again.
    #expect(pacer.offer(packet(24, frame: 1, slot: 1), rate: rate, now: 0) == .queued)
    #expect(pacer.offer(packet(25, frame: 2, slot: 1, isKeyFrame: true), rate: rate, now: 0) == .queued)
    var left: [UInt64] = []
    while let packet = pacer.next(rate: rate, now: second) { left.append(packet.index) }
    #expect(left == [0, 2, 3, 5, 6, 8, 9, 11, 20, 21, 22, 23, 24, 25])
    #expect(pacer.isEmpty && pacer.queuedBytes == 0)
  }

  /// The lists compared with an array, with slots that are emptied at random.
  @Test(arguments: [81, 82, 83] as [UInt64])
  func theQueueKeepsItsOrder(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var queue = PacketQueue(capacity: 32)
    var model: [PacedPacket] = []
    var removed = 0
    for i in 0..<20_000 as Range<UInt64> {
      switch random.next() % 8 {
      case 0..<4:
        let packet = packet(i, frame: UInt16(random.next() % 3), slot: UInt8(random.next() % 4))
        #expect(queue.append(packet) == (model.count < 32))
        if model.count < 32 { model.append(packet) }
      case 4..<7: #expect(queue.removeFirst() == (model.isEmpty ? nil : model.removeFirst()))
      default:
        let (slot, frame) = (UInt8(random.next() % 4), UInt16(random.next() % 3))
        let before = model.count
        queue.remove(slot: Int(slot), except: frame)
        model.removeAll { $0.slot == slot && $0.frame != frame }
        removed += before - model.count
      }
      #expect(queue.bytes == model.count * 1_200 && queue.isEmpty == model.isEmpty)
    }
    #expect(removed > 1_000)
  }

  @Test func theQueueIsBounded() {
    var pacer = Pacer(capacity: 64, now: 0)
    pacer.sent(bytes: 1_000_000)
    var queued = 0
    for i in 0..<1_000 as Range<UInt64> {
      if pacer.offer(packet(i, frame: 1, isKeyFrame: true), rate: 100_000_000, now: 0) == .queued { queued += 1 }
    }
    #expect(queued == 64)
  }
}
