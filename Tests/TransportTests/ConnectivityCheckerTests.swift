import MediaModel
import Testing
import Transport

struct ConnectivityCheckerTests {
  private let checker: ConnectivityChecker
  private let address = SocketAddress(ipv4: 0xc000_0201, port: 3478)

  init() throws {
    checker = try #require(
      ConnectivityChecker(
        role: .controlling, local: ICECredentials(fragment: "evtj", password: "unused"),
        remote: ICECredentials(fragment: "h6vY", password: STUNVectors.password), tieBreaker: 1))
  }

  private func handle(_ response: [UInt8], from source: SocketAddress? = nil) -> ConnectivityChecker.Answer {
    response.withUnsafeBytes { checker.handle($0, from: source ?? address) }
  }

  private func check(_ transaction: (UInt64, UInt32) = STUNVectors.transaction) {
    withUnsafeTemporaryAllocation(byteCount: ConnectivityChecker.checkCapacity, alignment: 8) { buffer in
      #expect(checker.makeCheck(of: address, transaction: transaction, into: buffer) > 0)
    }
  }

  @Test(arguments: [
    (STUNVectors.responseIPv4, STUNVectors.mappedIPv4), (STUNVectors.responseIPv6, STUNVectors.mappedIPv6),
  ])
  func readsTheMappedAddress(response: [UInt8], mapped: SocketAddress) {
    check()
    #expect(handle(response) == .succeeded(mapped: mapped))
    #expect(handle(response) == .dropped(.replayed), "an answer counts once")
  }

  @Test func takesNoAnswerToAnotherCheck() {
    check((1, 2))
    #expect(handle(STUNVectors.responseIPv4) == .dropped(.replayed))
  }

  @Test func takesNoAnswerFromAnotherAddress() {
    check()
    let elsewhere = SocketAddress(ipv4: address.ipv4, port: address.port + 1)
    #expect(handle(STUNVectors.responseIPv4, from: elsewhere) == .dropped(.unexpected))
    #expect(handle(STUNVectors.responseIPv4) == .succeeded(mapped: STUNVectors.mappedIPv4))
  }

  @Test func transactionsDoNotRepeat() {
    let transactions = (0..<1_000).map { _ in ConnectivityChecker.randomTransaction() }
    #expect(Set(transactions.map(\.0)).count == 1_000)
    #expect(Set(transactions.map(\.1)).count > 990)
  }

  @Test func takesNoFlippedByte() {
    check()
    for i in STUNVectors.responseIPv4.indices {
      var response = STUNVectors.responseIPv4
      response[i] ^= 0x10
      guard case .dropped = handle(response) else {
        Issue.record("byte \(i) flipped, and taken")
        continue
      }
    }
    #expect(
      handle(STUNVectors.responseIPv4) == .succeeded(mapped: STUNVectors.mappedIPv4),
      "forgeries must not use up the check")
  }

  @Test(arguments: [("h6vY", ""), (String(repeating: "f", count: 257), "password")])
  func isNotMadeForCredentialsThatNoServerMayHave(fragment: String, password: String) {
    let remote = ICECredentials(fragment: fragment, password: password)
    let local = ICECredentials(fragment: "evtj", password: "unused")
    #expect(ConnectivityChecker(role: .controlling, local: local, remote: remote, tieBreaker: 1) == nil)
  }

  @Test func forgetsTheOldestCheckFirst() {
    check()
    for i in 0..<15 { check((UInt64(i), 0)) }
    #expect(handle(STUNVectors.responseIPv4) == .succeeded(mapped: STUNVectors.mappedIPv4))
    check()
    for i in 0..<1000 { check((UInt64(i), 1)) }
    #expect(handle(STUNVectors.responseIPv4) == .dropped(.replayed))
  }
}
