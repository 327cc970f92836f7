import Contract
import Crypto
import MediaModel
import Testing

@testable import ConclaveClient

/// What is hashed and derived, against values computed by Python's hashlib from the words of protocol section 5.
struct LayoutTests {
  static let list = try! EpochList([
    ListEntry(
      user: UserID("bob")!, device: DeviceID("laptop")!, participant: 0, joinId: nil, joinKey: nil,
      fingerprint: Base64Bytes([UInt8](repeating: 2, count: 32))),
    ListEntry(
      user: UserID("alice")!, device: DeviceID("phone")!, participant: 1, joinId: Base64Bytes(Array(0..<16)),
      joinKey: JoinKey(alg: "x", publicKey: Base64Bytes(Array(0..<50)), at: Timestamp(milliseconds: 0), signature: Base64Bytes([])),
      fingerprint: Base64Bytes([UInt8](repeating: 1, count: 32))),
  ])

  @Test func fingerprint() throws {
    let keys = try #require(
      DeviceKeys(
        Device(user: UserID("bob")!, device: DeviceID("phone")!),
        keys: [
          DeviceKey(use: .sign, alg: "ES256", publicKey: Base64Bytes(Array(100..<191))),
          DeviceKey(use: .wrap, alg: "HPKE-P256-SHA256-AES256GCM", publicKey: Base64Bytes(Array(0..<91))),
        ]))
    #expect(hex(keys.fingerprint) == "26b8a0dc2f2f3cfe408550d2f5daeedc775746f6848884a172f23bc8b38acb63")
  }

  @Test func listHashOfAListInOrder() {
    #expect(Self.list.entries.map(\.user.text) == ["alice", "bob"])
    #expect(hex(Self.list.hash) == "1b2ef6e5c0389bd1ec4e67497a1035b1b24821c174756ead1e778269e2e678ae")
  }

  @Test func callCode() {
    #expect(
      CallCode.digits(call: CallID("6f0c")!, list: Self.list) == "8182251269961240104789877415325654607959")
  }

  @Test func senderBaseKey() throws {
    let epoch = Epoch(
      number: 3, mode: .fresh, list: Self.list, secret: SymmetricKey(data: [UInt8](repeating: 7, count: 32)))
    let keys = try #require(epoch.keys(call: CallID("6f0c")!))
    // Who has only been rung has no participant number, and so no key of its own.
    #expect(Array(keys.baseKeys.keys) == [1])
    #expect(
      try hex(#require(keys.baseKeys[1]).withUnsafeBytes { Array($0) })
        == "1e86e4c8a385156bfcf422af7c60cde3fd749316fbef24675e3564571e4ba8259ef9214051dff84fdc9dd1ba0c1bc709e56b0729ad2a2ef703e42a8eee52a539"
    )
    #expect(
      try hex(#require(epoch.ratcheted).withUnsafeBytes { Array($0) })
        == "3f60b51d840361cf50cf1a5006537e51c002186f9e2811403c9717d2ac0a49e6")
  }

  @Test func keyIDLayout() {
    let id = FrameKeyID(participant: 2, track: 3, epoch: 0x105)
    #expect(id.rawValue == 0x20305)
    #expect(FrameKeyID(rawValue: 0x20305) == id)
    #expect(FrameKeyID(rawValue: 0xffff) == nil)
    #expect(FrameKeyID(rawValue: 1 << 48) == nil)
  }

  @Test func aListRefusesTwoOfOneAndBadSizes() {
    let entry = Self.list.entries[0]
    #expect(throws: KeyRefusal.malformedList) { try EpochList([entry, entry]) }
    var sameNumber = Self.list.entries[1]
    sameNumber.participant = 1
    #expect(throws: KeyRefusal.malformedList) { try EpochList([entry, sameNumber]) }
    var short = entry
    short.fingerprint = Base64Bytes([1])
    #expect(throws: KeyRefusal.malformedList) { try EpochList([short]) }
    short = entry
    short.joinId = Base64Bytes([1])
    #expect(throws: KeyRefusal.malformedList) { try EpochList([short]) }
  }
}
