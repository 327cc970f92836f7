import MediaModel
import Testing

@testable import loadtest

struct FrameScannerTests {
  private static let frames = [
    "CONNECTED\nversion:1.2\n\n", "MESSAGE\nsubscription:1\n\nbody", "RECEIPT\nreceipt-id:1\n\n",
  ]

  @Test(arguments: [1, 2, 3, 7, 30, 1_000]) func framesAreFoundHoweverTheyAreCut(length: Int) {
    // There are line ends between frames: heart-beats.
    let bytes = Self.frames.flatMap { Array("\n\r\n\($0)\0".utf8) }
    var scanner = FrameScanner()
    var found: [String] = []
    for start in stride(from: 0, to: bytes.count, by: length) {
      let isTaken = Array(bytes[start..<min(bytes.count, start + length)]).withUnsafeBytes { part in
        scanner.scan(part) { found.append(String(decoding: $0, as: UTF8.self)) }
      }
      #expect(isTaken)
    }
    #expect(found == Self.frames)
  }

  @Test func aFrameWithoutEndIsRefused() {
    var scanner = FrameScanner()
    let part = [UInt8](repeating: UInt8(ascii: "x"), count: 40_000)
    #expect(part.withUnsafeBytes { scanner.scan($0) { _ in } })
    #expect(!part.withUnsafeBytes { scanner.scan($0) { _ in } })
  }

  @Test func theTimeOfAMessageIsInItsBody() {
    let time = Instant(nanoseconds: 0x0123_4567_89ab_cdef)
    let frame = StampedBody.frame(to: "/topic/load", at: time).dropLast()
    let body = Array(frame.suffix(StampedBody.length))
    #expect(body.count == 256 && frame.dropLast(256).suffix(2) == [10, 10])
    let message = Array("MESSAGE\ndestination:/topic/load\n\n".utf8) + body
    #expect(message.withUnsafeBytes { StampedBody.time(of: $0) } == time)
    let other = Array("MESSAGE\n\n".utf8) + [UInt8](repeating: UInt8(ascii: "?"), count: 256)
    #expect(other.withUnsafeBytes { StampedBody.time(of: $0) } == nil)
  }
}
