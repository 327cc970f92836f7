import NIOCore
import Seeded
import Testing

@testable import Listening

/// Which connections are admitted, tested without sockets.
struct AdmissionTests {
  private static func block(_ text: String) -> AddressBlock? {
    AddressBlock(try? SocketAddress(ipAddress: text, port: 1))
  }

  private let stranger = block("192.0.2.1")
  private let other = block("192.0.2.2")

  private func table(_ connections: Int = 10, address: Int = 10, beforeLogin: Int = 10) -> AdmissionTable {
    AdmissionTable(
      limits: AdmissionTable.Limits(
        connections: connections, fromAddress: address, fromAddressBeforeLogin: beforeLogin))
  }

  @Test func silentConnectionsOfAStrangerMakeRoomForAnybody() {
    var table = table(40)
    for id in 1...40 { #expect(table.admit(UInt64(id), from: nil) == .admitted(evicting: nil, nil)) }
    #expect(table.admit(41, from: other) == .admitted(evicting: 1, .connectionsFull))
    #expect(table.logIn(41) && !table.logIn(1), "who was evicted does not log in")
    for id in 42...200 { _ = table.admit(UInt64(id), from: stranger) }
    #expect(table.logIn(41) && table.count == 40, "who has logged in stays")
  }

  @Test func aFullTableOfThoseWhoLoggedInRefuses() {
    var table = table(2)
    for id in 1...2 {
      _ = table.admit(UInt64(id), from: nil)
      #expect(table.logIn(UInt64(id)) == true)
    }
    #expect(table.admit(3, from: other) == .refused(.connectionsFull))
    table.remove(1)
    #expect(table.admit(4, from: other) == .admitted(evicting: nil, nil))
  }

  @Test func oneAddressHasItsOwnBounds() {
    var table = table(100, address: 4, beforeLogin: 2)
    _ = table.admit(1, from: other)
    for id in 2...3 { _ = table.admit(UInt64(id), from: stranger) }
    #expect(table.admit(4, from: stranger) == .admitted(evicting: 2, .addressConnectionsFull), "not another's")
    #expect(table.logIn(3) && table.logIn(4))
    for id in 5...6 { #expect(table.admit(UInt64(id), from: stranger) == .admitted(evicting: nil, nil)) }
    #expect(table.logIn(5) && table.logIn(6))
    #expect(table.admit(7, from: stranger) == .refused(.addressConnectionsFull))
    #expect(table.admit(8, from: other) == .admitted(evicting: nil, nil))
    for id in 1...8 { table.remove(UInt64(id)) }
    #expect(table.count == 0 && table.addressCount == 0, "nothing is left behind")
  }

  @Test func proxiesHaveNoBoundOfTheirOwn() {
    var table = table(100, address: 1, beforeLogin: 1)
    for id in 1...50 { #expect(table.admit(UInt64(id), from: nil) == .admitted(evicting: nil, nil)) }
  }

  @Test func anIPv6LineIsItsNetworkOf64Bits() {
    #expect(Self.block("2001:db8:1:2::1") == Self.block("2001:db8:1:2:ffff::9"))
    #expect(Self.block("2001:db8:1:2::1") != Self.block("2001:db8:1:3::1"))
    #expect(Self.block("192.0.2.1") == Self.block("::ffff:192.0.2.1") && stranger != other)
    #expect(stranger.map { "\($0)" } == "address", "it does not print")
  }

  @Test(arguments: [
    ("10.0.0.0/8", "10.255.0.1", true), ("10.0.0.0/8", "11.0.0.1", false), ("10.0.0.7", "10.0.0.7", true),
    ("10.0.0.7", "10.0.0.8", false), ("10.0.0.0/8", "::ffff:10.1.2.3", true), ("2001:db8::/32", "2001:db8:9::1", true),
    ("2001:db8::/32", "2001:db9::1", false), ("::1", "::1", true), ("0.0.0.0/0", "192.0.2.1", true),
    ("0.0.0.0/0", "2001:db8::1", false), ("2001:db8::/96", "2001:db8::1:0:0", false),
  ])
  func proxiesAreAddressesAndNetworks(list: String, address: String, isIn: Bool) throws {
    let proxies = try #require(AddressList([list]))
    #expect(try proxies.contains(SocketAddress(ipAddress: address, port: 1)) == isIn)
  }

  @Test(arguments: ["", "proxy", "10.0.0.0/33", "10.0.0.0/-1", "::/129", "10.0.0.0/8/8", "/8", "10.0.0.0/"])
  func otherTextsAreRefused(text: String) { #expect(AddressList([text]) == nil) }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func theBooksAgreeWhateverHappens(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    var table = table(20, address: 8, beforeLogin: 4)
    var open: [UInt64: (line: Int, isLoggedIn: Bool)] = [:]
    for id in UInt64(1)...3_000 {
      switch Int.random(in: 0..<4, using: &random) {
      case 0:
        guard let id = open.keys.sorted().randomElement(using: &random) else { continue }
        #expect(table.logIn(id) == true, "seed \(seed)")
        open[id]?.isLoggedIn = true
      case 1:
        guard let id = open.keys.sorted().randomElement(using: &random) else { continue }
        table.remove(id)
        open[id] = nil
      default:
        let line = Int.random(in: 1...6, using: &random)
        switch table.admit(id, from: Self.block("192.0.2.\(line)")) {
        case .admitted(let evicted, let reason):
          if let evicted {
            let candidates = open.filter {
              !$0.value.isLoggedIn && (reason == .connectionsFull || $0.value.line == line)
            }
            #expect(evicted == candidates.keys.min(), "the oldest, seed \(seed)")
            open[evicted] = nil
          }
          open[id] = (line, false)
        case .refused(let reason):
          let isFree = open.contains { !$0.value.isLoggedIn && (reason == .connectionsFull || $0.value.line == line) }
          #expect(!isFree, "seed \(seed)")
        }
      }
      #expect(table.count == open.count && open.count <= 20, "seed \(seed)")
      #expect(Dictionary(grouping: open.values, by: \.line).values.allSatisfy { $0.count <= 8 }, "seed \(seed)")
    }
    for id in open.keys { table.remove(id) }
    #expect(table.count == 0 && table.addressCount == 0)
  }
}
