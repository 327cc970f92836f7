import RTP
import Testing

@testable import Forwarding

struct PacketHistoryTests {
  private let memory: UnsafeMutableRawBufferPointer = .allocate(byteCount: 100, alignment: 16)
  private let history = PacketHistory(capacity: 64, limit: 1_024, span: 90_000)

  /// Keeps packets with these numbers, of which the last four bytes are their number.
  private func insert(_ indices: Range<UInt64>, perSecond: UInt32) {
    for index in indices {
      let timestamp = perSecond == 0 ? 7 : UInt32(truncatingIfNeeded: index) &* (90_000 / perSecond)
      RTPHeader.write(
        marker: false, payloadType: 96, sequenceNumber: UInt16(truncatingIfNeeded: index), timestamp: timestamp,
        ssrc: 1,
        into: memory)
      memory.storeBytes(of: UInt32(index), toByteOffset: 96, as: UInt32.self)
      guard let base = memory.baseAddress, let header = RTPHeader(parsing: memory.bytes) else { return }
      history.insert(Packet(base: base, length: memory.count, header: header, index: index))
    }
  }

  private func isKept(_ index: UInt64) -> Bool {
    guard let packet = history.packet(index) else { return false }
    return packet.base.loadUnaligned(fromByteOffset: 96, as: UInt32.self) == UInt32(index)
  }

  @Test(arguments: [(20, 64), (60, 64), (100, 128), (300, 512), (1_000, 1_024), (3_000, 1_024)])
  func aSecondIsKept(perSecond: UInt32, capacity: Int) {
    defer { memory.deallocate() }
    insert(1_000..<11_000, perSecond: perSecond)
    #expect(history.capacity == capacity)
    let kept = min(UInt64(perSecond), UInt64(capacity))
    #expect((11_000 - kept..<11_000).allSatisfy { isKept($0) })
    #expect(!isKept(11_000 - UInt64(capacity) - 1))
    #expect(!isKept(11_000))
  }

  /// A key frame of a shared screen: hundreds of packets with one time.
  @Test func aBurstIsKeptWhole() {
    defer { memory.deallocate() }
    insert(0..<50, perSecond: 10)
    insert(50..<550, perSecond: 0)
    #expect((50..<550).allSatisfy { isKept($0) })
  }

  @Test func earlierPacketsAreKeptWhenItGrows() {
    defer { memory.deallocate() }
    insert(0..<65, perSecond: 100)
    #expect(history.capacity == 128)
    #expect((0..<65).allSatisfy { isKept($0) })
    history.removeAll()
    #expect((0..<65).allSatisfy { !isKept($0) })
  }
}
