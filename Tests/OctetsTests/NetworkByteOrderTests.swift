import Octets
import Testing

struct NetworkByteOrderTests {
  private static let bytes: [UInt8] = [1, 2, 3, 4, 5, 6, 7, 8, 9]

  @Test func numbersAreReadAtAnyOffset() {
    let span = Self.bytes.span.bytes
    #expect(span[8] == 9)
    #expect(span.uint16(at: 7) == 0x0809)
    #expect(span.uint24(at: 6) == 0x07_0809)
    #expect(span.uint32(at: 5) == 0x0607_0809)
    #expect(span.uint64(at: 1) == 0x0203_0405_0607_0809)
  }

  @Test func numbersAreWrittenAsTheyAreRead() {
    var bytes = [UInt8](repeating: 0xff, count: 9)
    bytes.withUnsafeMutableBytes { $0.store(0x0102_0304 as UInt32, at: 5) }
    #expect(bytes == [0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3, 4])
    bytes.withUnsafeMutableBytes {
      var span = $0.mutableBytes
      span.store(0xabcd as UInt16, at: 1)
    }
    #expect(bytes == [0xff, 0xab, 0xcd, 0xff, 0xff, 1, 2, 3, 4])
    #expect((0x0102_0304 as UInt32).networkOrderBytes == [1, 2, 3, 4])
    #expect(UInt64(networkOrder: Self.bytes.prefix(3)) == 0x01_0203)
    #expect(Int64(networkOrder: (-2 as Int64).networkOrderBytes) == -2)
  }

  // This holds in release builds, too: a parser that forgets a check must not read on.

  @Test func aByteBehindTheEndTraps() async {
    await #expect(processExitsWith: .failure) { _ = ([1, 2] as [UInt8]).span.bytes[2] }
    await #expect(processExitsWith: .failure) { _ = ([1, 2] as [UInt8]).span.bytes[-1] }
  }

  @Test func aNumberThatReachesBehindTheEndTraps() async {
    await #expect(processExitsWith: .failure) { _ = ([1, 2] as [UInt8]).span.bytes.uint16(at: 1) }
    await #expect(processExitsWith: .failure) { _ = ([1, 2] as [UInt8]).span.bytes.uint24(at: 0) }
    await #expect(processExitsWith: .failure) { _ = ([1, 2, 3] as [UInt8]).span.bytes.uint32(at: 0) }
    await #expect(processExitsWith: .failure) { _ = ([1, 2, 3, 4] as [UInt8]).span.bytes.uint64(at: 0) }
  }

  @Test func aWriteBehindTheEndTraps() async {
    await #expect(processExitsWith: .failure) {
      var bytes: [UInt8] = [0, 0, 0]
      bytes.withUnsafeMutableBytes { $0.store(1 as UInt16, at: 2) }
    }
    await #expect(processExitsWith: .failure) {
      var bytes: [UInt8] = [0, 0, 0]
      bytes.withUnsafeMutableBytes {
        var span = $0.mutableBytes
        span.store(1 as UInt16, at: 2)
      }
    }
  }
}
