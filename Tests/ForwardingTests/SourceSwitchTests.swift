import MediaModel
import Octets
import RTP
import Testing

@testable import Forwarding

/// The numbers of a slot across sources, mutes and omitted packets, packet by packet.
struct SourceSwitchTests {
  private let memory = Memory()

  @Test func aSourceFollowsWithTheNextNumberAndTheTimePassed() throws {
    var slot = SourceSwitch(first: 65_534)
    slot.start(packet(70_000, timestamp: 5_000), as: .newSource, clockRate: 90_000, now: instant(0))
    let first = try #require(send(packet(70_000, timestamp: 5_000), &slot, at: 0))
    #expect(first.sequenceNumber == 65_534)
    let second = try #require(send(packet(70_001, timestamp: 8_000), &slot, at: 33))
    #expect(second.timestamp &- first.timestamp == 3_000)
    // An audio source's clock, and numbers far below those of the first.
    slot.start(packet(66_000, timestamp: 4_000_000_000), as: .newSource, clockRate: 48_000, now: instant(133))
    let third = try #require(send(packet(66_000, timestamp: 4_000_000_000), &slot, at: 133))
    #expect(third.sequenceNumber == 0)
    #expect(third.timestamp &- second.timestamp == 4_800)
    #expect(slot.numbers(of: packet(65_999, timestamp: 1)) == nil)
  }

  @Test func aSourceThatFollowsAtOnceIsLaterAllTheSame() throws {
    var slot = SourceSwitch(first: 1)
    slot.start(packet(70_000, timestamp: 50), as: .newSource, clockRate: 90_000, now: instant(9))
    let first = try #require(send(packet(70_000, timestamp: 50), &slot, at: 9))
    slot.start(packet(80_000, timestamp: 77), as: .newSource, clockRate: 90_000, now: instant(9))
    #expect(try #require(send(packet(80_000, timestamp: 77), &slot, at: 9)).timestamp == first.timestamp &+ 1)
  }

  /// The sender's clock continues while it is muted.
  @Test func aMuteLeavesNoGapInNumbersAndItsTimeInTimestamps() throws {
    var slot = SourceSwitch(first: 10)
    slot.start(packet(70_000, timestamp: 900), as: .newSource, clockRate: 90_000, now: instant(0))
    let first = try #require(send(packet(70_000, timestamp: 900), &slot, at: 0))
    slot.start(packet(70_500, timestamp: 900 + 450_000), as: .resumed, clockRate: 90_000, now: instant(5_200))
    let second = try #require(send(packet(70_500, timestamp: 900 + 450_000), &slot, at: 5_200))
    #expect(second.sequenceNumber == 11)
    #expect(second.timestamp &- first.timestamp == 450_000)
    #expect(slot.sourceIndex(11) == 70_500)
    #expect(slot.sourceIndex(10) == nil)
  }

  @Test func anOmittedPacketIsNeitherMissedNorSentAgain() throws {
    var slot = SourceSwitch(first: 10)
    slot.start(packet(70_000, timestamp: 0), as: .newSource, clockRate: 90_000, now: instant(0))
    _ = send(packet(70_000, timestamp: 0), &slot, at: 0)
    slot.omit(70_001)
    let next = try #require(send(packet(70_002, timestamp: 0), &slot, at: 1))
    #expect(next.sequenceNumber == 11)
    #expect(slot.numbers(of: packet(70_001, timestamp: 0)) == nil)
    #expect(slot.sourceIndex(11) == 70_002)
    #expect(slot.sourceIndex(12) == nil)
  }

  @Test func aPacketSentAgainHasTheSameNumbers() throws {
    var slot = SourceSwitch(first: 10)
    slot.start(packet(70_000, timestamp: 0), as: .newSource, clockRate: 90_000, now: instant(0))
    var sent: [(UInt64, SourceSwitch.Numbers)] = []
    for index in 70_000..<70_400 as Range<UInt64> {
      if index > 70_000, index % 5 == 0 {
        slot.omit(index)
      } else {
        sent.append((index, try #require(send(packet(index, timestamp: UInt32(index)), &slot, at: index))))
      }
    }
    for (index, numbers) in sent {
      #expect(slot.numbers(of: packet(index, timestamp: UInt32(index))) == numbers)
      #expect(slot.sourceIndex(numbers.sequenceNumber) == index)
    }
  }

  /// Many sources, pauses, losses and omissions: different packets never share a number, and only lost packets are
  /// missing.
  @Test(arguments: [1, 2, 3] as [UInt64])
  func noNumberIsUsedTwice(seed: UInt64) throws {
    var random = SplitMix64(seed: seed)
    var slot = SourceSwitch(first: UInt16(random.next() & 0x7fff))
    var (index, timestamp): (UInt64, UInt32) = (70_000, 0)
    var previous: SourceSwitch.Numbers?
    var (sent, lost, time) = (0, UInt64(0), UInt64(0))
    for _ in 0..<400 {
      let isNew = Bool.random(using: &random)
      if isNew {
        index = .random(in: 65_536..<200_000, using: &random)
        timestamp = UInt32(truncatingIfNeeded: random.next())
      } else {
        index += .random(in: 1...3000, using: &random)
        timestamp &+= 90_000
      }
      time += .random(in: 1...2_000, using: &random)
      slot.start(
        packet(index, timestamp: timestamp), as: isNew ? .newSource : .resumed, clockRate: 90_000, now: instant(time))
      lost = 0
      for step in 0..<Int.random(in: 1...900, using: &random) {
        switch step == 0 ? 9 : Int.random(in: 0..<10, using: &random) {
        case 0: lost += 1
        case 1, 2: slot.omit(index)
        default:
          let numbers = try #require(send(packet(index, timestamp: timestamp), &slot, at: time))
          if let previous {
            try #require(numbers.index == previous.index + 1 + lost, "seed \(seed)")
            try #require(numbers.sequenceNumber == previous.sequenceNumber &+ 1 &+ UInt16(lost))
          }
          previous = numbers
          lost = 0
          sent += 1
        }
        index += 1
        timestamp &+= 300
        time += 3
      }
      // Packets lost after the last one of a source have no number.
      lost = 0
    }
    #expect(sent > 65_536)
  }

  private func send(
    _ packet: Packet, _ slot: inout SourceSwitch, at milliseconds: UInt64
  ) -> SourceSwitch.Numbers? {
    guard let numbers = slot.map(packet) else { return nil }
    slot.sent(numbers, now: instant(milliseconds))
    return numbers
  }

  private func packet(_ index: UInt64, timestamp: UInt32) -> Packet {
    var header = memory.header
    header.sequenceNumber = UInt16(truncatingIfNeeded: index)
    header.timestamp = timestamp
    return Packet(base: memory.bytes.baseAddress!, length: memory.bytes.count, header: header, index: index)
  }

  /// The bytes of the packets; only their headers matter here.
  private final class Memory {
    let bytes = UnsafeMutableRawBufferPointer.allocate(byteCount: 20, alignment: 8)
    let header: RTPHeader

    init() {
      bytes.initializeMemory(as: UInt8.self, repeating: 0)
      RTPHeader.write(marker: false, payloadType: 96, sequenceNumber: 0, timestamp: 0, ssrc: 1, into: bytes)
      header = RTPHeader(parsing: bytes.bytes)!
    }

    deinit { bytes.deallocate() }
  }
}
