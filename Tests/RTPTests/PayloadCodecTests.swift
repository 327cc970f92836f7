import RTP
import Testing

/// Where a frame's encrypted bytes begin (protocol section 5, "Clear bytes").
struct PayloadCodecTests {
  private func start(_ codec: PayloadCodec, _ payload: [UInt8]) -> PayloadCodec.FrameStart {
    payload.withUnsafeBytes { payload in
      codec.frameStart(in: payload.bytes, vp8: codec == .vp8 ? VP8Descriptor(parsing: payload.bytes) : nil)
    }
  }

  @Test(arguments: [
    ("opus", PayloadCodec.opus), ("VP8", .vp8), ("vp9", .vp9), ("H264", .h264), ("AV1", .av1), ("PCMU", .other),
  ])
  func namesAreKnown(name: String, codec: PayloadCodec) { #expect(PayloadCodec(name: name) == codec) }

  @Test(arguments: [PayloadCodec.opus, .vp8, .vp9, .h264, .av1, .other])
  func anEmptyPayloadBeginsNothing(codec: PayloadCodec) { #expect(start(codec, []) == .none) }

  @Test func opusIsEncryptedFromItsFirstByte() { #expect(start(.opus, [1, 2, 3]) == .encrypted(0..<3)) }

  @Test func vp8KeepsTenBytesOfAKeyFrameClearAndThreeOfAnother() {
    let key: [UInt8] = [0x10, 0x10, 0, 0, 0x9d, 1, 0x2a, 0, 0, 0, 0]
    #expect(start(.vp8, key) == .unreadable)
    #expect(start(.vp8, key + [7]) == .encrypted(11..<12))
    #expect(start(.vp8, [0x10, 0x11, 0, 0, 7]) == .encrypted(4..<5))
    #expect(start(.vp8, [0x10, 0x11, 0, 0]) == .unreadable)
    // Another partition, the middle of a frame, a truncated descriptor.
    #expect(start(.vp8, [0x11, 0x11, 0, 0, 7]) == .none)
    #expect(start(.vp8, [0x00, 0x11, 0, 0, 7]) == .none)
    #expect(start(.vp8, [0x90]) == .unreadable)
    #expect(start(.vp8, [0x10]) == .unreadable)
  }

  @Test(arguments: [
    ([0x08, 7] as [UInt8], 1..<2), ([0x88, 0x05, 7], 2..<3), ([0x88, 0x85, 1, 7], 3..<4),
    // Layers: with TL0PICIDX, and in flexible mode without.
    ([0x28, 1, 2, 7], 3..<4), ([0x38, 1, 7], 2..<3),
    // One and three reference indices.
    ([0x58, 2, 7], 2..<3), ([0x58, 3, 5, 6, 7], 4..<5),
    // A scalability structure with two sizes and a group of two pictures with one reference each.
    ([0x0a, 0x38, 1, 2, 3, 4, 5, 6, 7, 8, 2, 4, 9, 4, 9, 7], 15..<16),
  ])
  func vp9IsEncryptedBehindItsDescriptor(payload: [UInt8], range: Range<Int>) {
    #expect(start(.vp9, payload) == .encrypted(range))
    for count in 1..<payload.count { #expect(start(.vp9, Array(payload[..<count])) == .unreadable) }
    var later = payload
    later[0] &= ~0x08
    #expect(start(.vp9, later) == .none)
  }

  @Test func h264IsEncryptedBehindTheFirstSlicesHeaderAndThreeBytes() {
    #expect(start(.h264, [0x65, 1, 2, 3, 7, 8]) == .encrypted(4..<6))
    #expect(start(.h264, [0x41, 1, 2, 3]) == .unreadable)
    #expect(start(.h264, [0x67, 1, 2, 3, 7]) == .none, "a parameter set")
    #expect(start(.h264, [0x7c, 0x85, 1, 2, 3, 7]) == .encrypted(5..<6))
    #expect(start(.h264, [0x7c, 0x05, 1, 2, 3, 7]) == .none, "a later fragment")
    #expect(start(.h264, [0x7c, 0x87, 1, 2, 3, 7]) == .none, "a fragmented parameter set")
    #expect(start(.h264, [0x7c]) == .unreadable)
    // STAP-A of a parameter set and a slice.
    #expect(start(.h264, [0x78, 0, 2, 0x67, 1, 0, 6, 0x65, 1, 2, 3, 7, 8]) == .encrypted(11..<13))
    #expect(start(.h264, [0x78, 0, 2, 0x67, 1]) == .none)
    #expect(start(.h264, [0x78, 0, 9, 0x67, 1]) == .unreadable)
    #expect(start(.h264, [0x78, 0, 0]) == .unreadable)
    #expect(start(.h264, [0x7b, 0]) == .unreadable, "another kind of aggregation")
  }

  @Test func av1IsEncryptedBehindTheHeaderOfItsFirstFrameOBU() {
    #expect(start(.av1, [0x10, 0x30, 7, 8]) == .encrypted(2..<4))
    #expect(start(.av1, [0x10, 0x32, 2, 7, 8]) == .encrypted(3..<5), "with a size")
    #expect(start(.av1, [0x10, 0x34, 0, 7]) == .encrypted(3..<4), "with an extension")
    #expect(start(.av1, [0x90, 0x30, 7, 8]) == .none, "goes on with the OBU of the packet before")
    // After a sequence header: two elements, and with the lengths of all.
    #expect(start(.av1, [0x20, 2, 0x0a, 0, 0x30, 7]) == .encrypted(5..<6))
    #expect(start(.av1, [0x00, 2, 0x0a, 0, 2, 0x30, 7]) == .encrypted(6..<7))
    #expect(start(.av1, [0x10, 0x0a, 0]) == .unreadable, "no frame")
    #expect(start(.av1, [0x10, 0x30]) == .unreadable)
    #expect(start(.av1, [0x00, 9, 0x30, 7]) == .unreadable)
    #expect(start(.av1, [0x00, 0x80, 0x80, 0x80, 0x80, 1, 0x30]) == .unreadable)
  }

  /// Any bytes: no trap, and no range beyond the payload.
  @Test func noiseIsReadWithoutATrap() {
    let seed: UInt64 = 0x5eed
    var state = seed
    func next() -> UInt8 {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return UInt8(truncatingIfNeeded: state >> 56)
    }
    var begun = 0
    for round in 0..<200_000 {
      let payload = (0..<Int(next() % 40)).map { _ in next() }
      for codec in [PayloadCodec.opus, .vp8, .vp9, .h264, .av1] {
        guard case .encrypted(let range) = start(codec, payload) else { continue }
        begun += 1
        guard !range.isEmpty, range.upperBound <= payload.count else {
          Issue.record("seed \(seed), round \(round): \(codec) \(range) of \(payload)")
          return
        }
      }
    }
    #expect(begun > 10_000)
  }
}
