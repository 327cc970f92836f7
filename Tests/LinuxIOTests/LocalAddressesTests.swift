import MediaModel
import Testing

@testable import LinuxIO

struct LocalAddressesTests {
  @Test func eachAddressKeepsItsNumberAndNoNumberIsForMoreThanTheTableHolds() {
    var table = LocalAddresses()
    let addresses = (1...UInt64(LocalAddresses.capacity)).map { SocketAddress(high: 1, low: $0, port: 0) }
    #expect(table[0] == nil && table[1] == nil)
    #expect(addresses.map { table.number(of: $0) } == Array(1...UInt16(LocalAddresses.capacity)))
    #expect(
      addresses.reversed().map { table.number(of: $0) } == Array((1...UInt16(LocalAddresses.capacity)).reversed()))
    #expect(table[3]?.low == 3 && table[UInt16(LocalAddresses.capacity) + 1] == nil && table[.max] == nil)

    #expect(table.number(of: SocketAddress(high: 2, low: 9, port: 0)) == 0)
    #expect(table.number(of: SocketAddress(high: 0, low: 0, port: 0)) == 0)
  }
}
