import RTP
import Seeded
import Testing

struct VP9DescriptorTests {
  private func read(_ payload: [UInt8]) -> VP9Descriptor? { VP9Descriptor(parsing: payload.span.bytes) }

  @Test func theFlagsAreRead() throws {
    // I with 15 bits, P, L, B, E; non-flexible mode.
    let descriptor = try #require(read([0xec | 0x80, 0x81, 0x02, 0b010_0_001_0, 0x07, 0xaa, 0xbb]))
    #expect(descriptor.length == 5 && descriptor.startsFrame && descriptor.endsFrame && !descriptor.isKeyFrame)
    #expect(descriptor.temporalLayer == 2 && descriptor.spatialLayer == 1)
    let plain = try #require(read([0x08, 0x55]))
    #expect(plain.length == 1 && plain.startsFrame && !plain.endsFrame && plain.isKeyFrame)
    #expect(read([0x08]) == nil, "nothing behind it")
    #expect(read([]) == nil)
  }

  /// The encrypted bytes of a frame's first packet begin behind the descriptor.
  @Test func itEndsWhereTheFrameBegins() {
    var random = SeededGenerator(seed: 41)
    var compared = 0
    for _ in 0..<20_000 {
      let payload = random.bytes(1 + random.below(40))
      let descriptor = read(payload)
      guard payload[0] & 0x08 != 0 else { continue }
      switch PayloadCodec.vp9.frameStart(in: payload.span.bytes, vp8: nil) {
      case .encrypted(let range):
        compared += 1
        #expect(descriptor?.length == range.lowerBound)
        let isKeyFrame = PayloadCodec.vp9.startsKeyFrame(payload.span.bytes, vp8: nil)
        #expect(descriptor?.isKeyFrame == isKeyFrame)
      case .unreadable: #expect(descriptor == nil)
      case .none: Issue.record("it begins a frame")
      }
    }
    #expect(compared > 1_000)
  }
}
