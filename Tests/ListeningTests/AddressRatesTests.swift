import NIOCore
import Testing

@testable import Listening

/// The rates that source addresses are allowed.
struct AddressRatesTests {
  private static let second: UInt64 = 1_000_000_000

  private func block(_ text: String) throws -> AddressBlock {
    try #require(AddressBlock(SocketAddress(ipAddress: text, port: 1)))
  }

  /// How many of `count` requests pass at once, each from the address that `address` makes.
  private func passed(
    _ rates: inout AddressRates, _ count: Int, now: UInt64 = 0, _ address: (Int) -> String
  ) throws -> Int {
    try (0..<count).count { rates.take(from: try block(address($0)), now: now) == nil }
  }

  @Test func anAddressHasItsBurstAndThenItsRate() throws {
    var rates = AddressRates(perSecond: 2, burst: 20)
    #expect(try passed(&rates, 100) { _ in "192.0.2.1" } == 20)
    #expect(try passed(&rates, 100) { _ in "192.0.2.2" } == 20, "a neighbour has its own")
    #expect(try passed(&rates, 100, now: Self.second) { _ in "192.0.2.1" } == 2)
  }

  /// A subscriber with a /56 uses a new /64 for each request, and one with a /48 a new /56.
  @Test func aWideBlockOfIPv6DoesNotMultiplyItsRequests() throws {
    var rates = AddressRates(perSecond: 1, burst: 20)
    #expect(try passed(&rates, 5_120) { "2001:db8:1:\(String($0 % 256, radix: 16))::1" } == 80)
    #expect(try passed(&rates, 65_536) { "2001:db8:2:\(String($0, radix: 16))::1" } == 320)
    #expect(try passed(&rates, 100) { _ in "2001:db8:3:4::1" } == 20, "another line has its own")
    #expect(try passed(&rates, 100) { "2001:db8:3:4::\(String($0, radix: 16))" } == 0, "a /64 is one address")
  }

  @Test func oneLineInAWideBlockDoesNotUseItUp() throws {
    var rates = AddressRates(perSecond: 1, burst: 20)
    #expect(try passed(&rates, 1_000) { _ in "2001:db8:1:1::1" } == 20)
    #expect(try passed(&rates, 20) { _ in "2001:db8:1:2::1" } == 20)
  }

  @Test func lookingTakesNothing() throws {
    var rates = AddressRates(perSecond: 1, burst: 1)
    for _ in 0..<10 { #expect(rates.wait(from: try block("192.0.2.1"), now: 0) == nil) }
    #expect(rates.count == 0)
    #expect(rates.take(from: try block("192.0.2.1"), now: 0) == nil)
    #expect(rates.wait(from: try block("192.0.2.1"), now: 0) != nil)
  }

  /// With a whole network, an attacker has 2^16 and more /48s.
  @Test func moreAddressesThanAreRememberedShareOneBucket() throws {
    var rates = AddressRates(perSecond: 1, burst: 2)
    let passed = try passed(&rates, 100_000) {
      "2001:\(String($0 >> 16, radix: 16)):\(String($0 & 0xffff, radix: 16))::1"
    }
    #expect(rates.count <= AddressRates.capacity)
    #expect(passed <= AddressRates.capacity / 3 + 2 * 64)
    let late = try block("192.0.2.1")
    #expect(rates.take(from: late, now: 0) != nil)
    #expect(rates.take(from: late, now: 2 * Self.second) == nil)
    #expect(rates.count < 10, "those that are full again are forgotten")
  }
}
