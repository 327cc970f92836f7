import RTP
import Testing

struct VP8DescriptorTests {
  @Test func readsShortestForm() throws {
    let payload = bytes("10 02 00 00 9d012a")
    let descriptor = try #require(parse(payload))
    #expect(descriptor.length == 1)
    #expect(descriptor.startsFrame)
    #expect(descriptor.pictureID == nil)
    #expect(payload.withUnsafeBytes { descriptor.isKeyFrame($0.bytes) })
  }

  @Test func readsAllFields() throws {
    let descriptor = try #require(parse(bytes("b0 f0 8123 45 a7 01")))
    #expect(descriptor.length == 6)
    #expect(descriptor.hasLongPictureID)
    #expect(descriptor.pictureID == 0x0123)
    #expect(descriptor.tl0PictureIndex == 0x45)
    #expect(descriptor.temporalLayer == 2)
    #expect(descriptor.keyIndex == 7)
  }

  @Test func readsSevenBitPictureID() throws {
    let descriptor = try #require(parse(bytes("90 80 7f 01")))
    #expect(descriptor.length == 3)
    #expect(descriptor.pictureID == 0x7f)
    #expect(!descriptor.hasLongPictureID)
  }

  @Test func onlyTheFirstPacketOfAFrameCanBeAKeyFrame() throws {
    for (hex, isKeyFrame) in [("10 00", true), ("10 01", false), ("00 00", false), ("11 00", false), ("10", false)] {
      let payload = bytes(hex)
      let descriptor = try #require(parse(payload))
      #expect(payload.withUnsafeBytes { descriptor.isKeyFrame($0.bytes) } == isKeyFrame)
    }
  }

  @Test(arguments: ["", "80", "80 80", "80 80 81", "80 40", "80 20", "80 f0 8123 45"])
  func refusesDescriptorBeyondTheEnd(_ hex: String) {
    #expect(parse(bytes(hex)) == nil)
  }

  static let rewrites: [(String, String)] = [
    ("b0 f0 8123 45 a7 01", "b0 f0 fabc 99 b1 01"),
    ("90 80 7f 01", "90 80 3c 01"),
    ("90 20 e7 01", "90 20 e7 01"),
    ("10 01", "10 01"),
  ]

  @Test(arguments: rewrites)
  func rewritesTheFieldsThatAreThere(_ before: String, _ after: String) throws {
    var payload = bytes(before)
    let descriptor = try #require(parse(payload))
    payload.withUnsafeMutableBytes {
      descriptor.rewrite(pictureID: 0x7abc, tl0PictureIndex: 0x99, keyIndex: 0x11, in: $0)
    }
    #expect(payload == bytes(after))
  }

  private func parse(_ payload: [UInt8]) -> VP8Descriptor? {
    payload.withUnsafeBytes { VP8Descriptor(parsing: $0.bytes) }
  }
}
