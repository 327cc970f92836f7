import MediaModel
import Testing
import Transport

struct ConnectivityCheckerTests {
  private let checker: ConnectivityChecker

  init() throws {
    checker = try #require(
      ConnectivityChecker(
        local: ICECredentials(fragment: "evtj", password: "unused"),
        remote: ICECredentials(fragment: "h6vY", password: STUNVectors.password), tieBreaker: 1))
  }

  private func check(_ transaction: (UInt64, UInt32) = STUNVectors.transaction) {
    withUnsafeTemporaryAllocation(byteCount: ConnectivityChecker.checkCapacity, alignment: 8) { buffer in
      #expect(checker.makeCheck(transaction: transaction, into: buffer) > 0)
    }
  }

  @Test(arguments: [
    (STUNVectors.responseIPv4, STUNVectors.mappedIPv4), (STUNVectors.responseIPv6, STUNVectors.mappedIPv6),
  ])
  func readsTheMappedAddress(response: [UInt8], mapped: SocketAddress) {
    check()
    #expect(response.withUnsafeBytes(checker.handle) == .succeeded(mapped: mapped))
    #expect(response.withUnsafeBytes(checker.handle) == .dropped(.replayed), "an answer counts once")
  }

  @Test func takesNoAnswerToAnotherCheck() {
    check((1, 2))
    #expect(STUNVectors.responseIPv4.withUnsafeBytes(checker.handle) == .dropped(.replayed))
  }

  @Test func takesNoFlippedByte() {
    check()
    for i in STUNVectors.responseIPv4.indices {
      var response = STUNVectors.responseIPv4
      response[i] ^= 0x10
      guard case .dropped = response.withUnsafeBytes(checker.handle) else {
        Issue.record("byte \(i) flipped, and taken")
        continue
      }
    }
    #expect(
      STUNVectors.responseIPv4.withUnsafeBytes(checker.handle) == .succeeded(mapped: STUNVectors.mappedIPv4),
      "forgeries must not use up the check")
  }

  @Test(arguments: [("h6vY", ""), (String(repeating: "f", count: 257), "password")])
  func isNotMadeForCredentialsThatNoServerMayHave(fragment: String, password: String) {
    let remote = ICECredentials(fragment: fragment, password: password)
    let local = ICECredentials(fragment: "evtj", password: "unused")
    #expect(ConnectivityChecker(local: local, remote: remote, tieBreaker: 1) == nil)
  }

  @Test func forgetsTheOldestCheckFirst() {
    check()
    for i in 0..<15 { check((UInt64(i), 0)) }
    #expect(STUNVectors.responseIPv4.withUnsafeBytes(checker.handle) == .succeeded(mapped: STUNVectors.mappedIPv4))
    check()
    for i in 0..<1000 { check((UInt64(i), 1)) }
    #expect(STUNVectors.responseIPv4.withUnsafeBytes(checker.handle) == .dropped(.replayed))
  }
}
