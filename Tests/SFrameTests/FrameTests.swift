import Crypto
import Octets
import Seeded
import Testing

@testable import SFrame

struct FrameTests {
  static let vectors = Vectors.all.sframe.filter { CipherSuite(rawValue: $0.cipherSuite) != nil }

  @Test func theVectorsHoldBothSuites() { #expect(Self.vectors.map(\.cipherSuite) == [4, 5]) }

  @Test(arguments: [0, 1])
  func aVectorsFrameIsEncryptedAndDecrypted(_ index: Int) throws {
    let vector = Self.vectors[index]
    let suite = try #require(CipherSuite(rawValue: vector.cipherSuite))
    let baseKey = SymmetricKey(data: bytes(vector.baseKey))
    #expect(
      try Array(FrameKey(suite: suite, keyID: vector.kid, baseKey: baseKey).nonce(vector.ctr)) == bytes(vector.nonce))
    var sender = SenderContext(suite: suite, keyID: vector.kid, baseKey: baseKey, startingAt: vector.ctr)
    #expect(try sender.encrypt(bytes(vector.pt), metadata: bytes(vector.metadata)) == bytes(vector.ct))
    var receiver = ReceiverContext(suite: suite, keyID: vector.kid, baseKey: baseKey)
    #expect(try receiver.decrypt(bytes(vector.ct), metadata: bytes(vector.metadata)) == bytes(vector.pt))
  }

  @Test(arguments: [0, 1])
  func aFlippedBitAnywhereIsRefused(_ index: Int) throws {
    let vector = Self.vectors[index]
    var receiver = receiver(of: vector)
    for bit in 0..<8 * bytes(vector.ct).count {
      var frame = bytes(vector.ct)
      frame[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(throws: SFrameError.self) { try receiver.decrypt(frame, metadata: bytes(vector.metadata)) }
    }
    for bit in 0..<8 * bytes(vector.metadata).count {
      var metadata = bytes(vector.metadata)
      metadata[bit / 8] ^= 1 << UInt8(bit % 8)
      #expect(throws: SFrameError.authenticationFailed) { try receiver.decrypt(bytes(vector.ct), metadata: metadata) }
    }
    // None of these forgeries has moved the window.
    #expect(try receiver.decrypt(bytes(vector.ct), metadata: bytes(vector.metadata)) == bytes(vector.pt))
  }

  @Test(arguments: [0, 1])
  func everyTruncationIsRefused(_ index: Int) {
    let vector = Self.vectors[index]
    var receiver = receiver(of: vector)
    for count in 0..<bytes(vector.ct).count {
      #expect(throws: SFrameError.self) {
        try receiver.decrypt(Array(bytes(vector.ct).prefix(count)), metadata: bytes(vector.metadata))
      }
    }
  }

  @Test func aFrameUnderAnotherKeyOrSuiteIsRefused() throws {
    let key = SymmetricKey(size: .bits256)
    var sender = SenderContext(suite: .aes256GCMSHA512, keyID: 9, baseKey: key)
    let frame = try sender.encrypt([1, 2, 3])
    var stranger = ReceiverContext(suite: .aes256GCMSHA512, keyID: 9, baseKey: SymmetricKey(size: .bits256))
    #expect(throws: SFrameError.authenticationFailed) { try stranger.decrypt(frame) }
    var downgraded = ReceiverContext(suite: .aes128GCMSHA256, keyID: 9, baseKey: key)
    #expect(throws: SFrameError.authenticationFailed) { try downgraded.decrypt(frame) }
    var other = ReceiverContext(suite: .aes256GCMSHA512, keyID: 8, baseKey: key)
    #expect(throws: SFrameError.wrongKeyID) { try other.decrypt(frame) }
  }

  @Test func eachFrameTakesTheNextCounterUntilTheLast() throws {
    let key = SymmetricKey(size: .bits256)
    var sender = SenderContext(suite: .aes256GCMSHA512, keyID: 1, baseKey: key, startingAt: (1 << 48) - 2)
    for counter: UInt64 in [(1 << 48) - 2, (1 << 48) - 1] {
      let frame = try sender.encrypt([7])
      #expect(try frame.withUnsafeBytes { try SFrameHeader(parsing: $0.bytes) }.counter == counter)
    }
    #expect(throws: SFrameError.counterExhausted) { try sender.encrypt([7]) }
  }

  @Test func aShortBufferIsRefusedWithoutSpendingACounter() throws {
    var sender = SenderContext(suite: .aes256GCMSHA512, keyID: 1, baseKey: SymmetricKey(size: .bits256))
    var small = [UInt8](repeating: 0, count: 19)
    #expect(throws: SFrameError.noSpace) {
      try small.withUnsafeMutableBytes { output in
        try [UInt8](repeating: 1, count: 3).withUnsafeBytes {
          try sender.encrypt($0, metadata: UnsafeRawBufferPointer(start: nil, count: 0), into: output)
        }
      }
    }
    #expect(try sender.encrypt([1]).first == 0x10)
  }

  @Test func anEmptyFrameTravels() throws {
    let key = SymmetricKey(size: .bits256)
    var sender = SenderContext(suite: .aes256GCMSHA512, keyID: 1, baseKey: key)
    var receiver = ReceiverContext(suite: .aes256GCMSHA512, keyID: 1, baseKey: key)
    let frame = try sender.encrypt([])
    #expect(frame.count == 17)
    #expect(try receiver.decrypt(frame) == [])
  }

  /// Frames with a few bytes changed, cut or added: all refused, none traps.
  @Test func mutatedFramesAreRefused() throws {
    let seed: UInt64 = 0xc0de
    var random = SeededGenerator(seed: seed)
    let key = SymmetricKey(size: .bits256)
    var sender = SenderContext(suite: .aes256GCMSHA512, keyID: 0x12345, baseKey: key)
    var receiver = ReceiverContext(suite: .aes256GCMSHA512, keyID: 0x12345, baseKey: key)
    for round in 0..<5_000 {
      let original = try sender.encrypt(
        Array(repeating: UInt8(round & 0xff), count: Int.random(in: 0...60, using: &random)))
      var frame = original
      for _ in 0...Int.random(in: 0..<4, using: &random) where !frame.isEmpty {
        switch Int.random(in: 0..<3, using: &random) {
        case 0: frame[Int.random(in: frame.indices, using: &random)] ^= UInt8.random(in: 1...255, using: &random)
        case 1: frame.remove(at: Int.random(in: frame.indices, using: &random))
        default:
          frame.insert(UInt8.random(in: 0...255, using: &random), at: Int.random(in: 0...frame.count, using: &random))
        }
      }
      guard frame != original else { continue }
      #expect(throws: SFrameError.self, "seed \(seed), round \(round)") { try receiver.decrypt(frame) }
    }
  }

  private func receiver(of vector: Vectors.Frame) -> ReceiverContext {
    ReceiverContext(
      suite: CipherSuite(rawValue: vector.cipherSuite)!, keyID: vector.kid,
      baseKey: SymmetricKey(data: bytes(vector.baseKey)))
  }
}
