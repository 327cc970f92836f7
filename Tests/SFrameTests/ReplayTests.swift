import Crypto
import Testing

@testable import SFrame

struct ReplayTests {
  @Test func aFrameIsDeliveredOnce() throws {
    let key = SymmetricKey(size: .bits256)
    var sender = SenderContext(suite: .aes256GCMSHA512, keyID: 1, baseKey: key)
    var receiver = ReceiverContext(suite: .aes256GCMSHA512, keyID: 1, baseKey: key)
    let frames = try (0..<3).map { try sender.encrypt([UInt8($0)]) }
    for index in [2, 0, 1] { #expect(try receiver.decrypt(frames[index]) == [UInt8(index)]) }
    for frame in frames { #expect(throws: SFrameError.replayed) { try receiver.decrypt(frame) } }
  }

  /// A receiver that expects the next frames soon accepts none from far ahead, and none moves its window.
  @Test func aWindowCanBeKeptFromMovingFar() throws {
    let key = SymmetricKey(size: .bits256)
    var receiver = ReceiverContext(suite: .aes256GCMSHA512, keyID: 1, baseKey: key)
    func frame(_ counter: UInt64) throws -> [UInt8] {
      var sender = SenderContext(suite: .aes256GCMSHA512, keyID: 1, baseKey: key, startingAt: counter)
      return try sender.encrypt([1, 2, 3])
    }
    func opens(_ counter: UInt64, limit: UInt64) throws -> Bool {
      var plain = [UInt8](repeating: 0, count: 3)
      return try frame(counter).withUnsafeBytes { frame in
        try plain.withUnsafeMutableBytes { plain in
          do {
            return try receiver.decrypt(
              frame, metadata: .init(start: nil, count: 0), movingWindowAtMost: limit, into: plain)
              == 3
          } catch SFrameError.replayed { return false }
        }
      }
    }
    #expect(try !opens(65, limit: 64))
    #expect(try opens(64, limit: 64))
    #expect(try opens(1_000, limit: .max))
    #expect(try !opens(1_065, limit: 64))
    #expect(try opens(999, limit: 0))
    #expect(try !opens(1_000, limit: .max))
    #expect(try opens(1_064, limit: 64))
  }
}
