import Testing
import Transport

struct DatagramKindTests {
  static let firstBytes: [(UInt8, UInt8, DatagramKind)] = [
    (0, 1, .stun), (3, 0, .stun), (4, 0, .unknown), (19, 0, .unknown), (20, 0xfe, .dtls), (22, 0xfe, .dtls),
    (63, 0, .dtls), (64, 0, .unknown), (127, 0, .unknown), (128, 0, .rtp), (191, 127, .rtp), (128, 191, .rtp),
    (128, 192, .rtcp), (128, 200, .rtcp), (128, 223, .rtcp), (128, 224, .rtp), (192, 0, .unknown), (255, 255, .unknown),
  ]

  @Test(arguments: firstBytes)
  func followsTheFirstTwoBytes(first: UInt8, second: UInt8, kind: DatagramKind) {
    let datagram = [first, second] + [UInt8](repeating: 0, count: 38)
    #expect(datagram.withUnsafeBytes { DatagramKind.classify($0.bytes) } == kind)
  }

  @Test func isUnknownWhenShorterThanTheFixedHeader() {
    let minimum: [DatagramKind: Int] = [.stun: 20, .dtls: 13, .rtp: 12, .rtcp: 8]
    for (bytes, kind) in [([0, 1], .stun), ([22, 0], .dtls), ([128, 0], .rtp), ([128, 200], .rtcp)]
      as [([UInt8], DatagramKind)]
    {
      for count in 0...24 {
        let datagram = Array((bytes + [UInt8](repeating: 0, count: 22)).prefix(count))
        let expected = count >= minimum[kind] ?? 0 ? kind : .unknown
        #expect(datagram.withUnsafeBytes { DatagramKind.classify($0.bytes) } == expected, "\(kind), \(count) bytes")
      }
    }
  }
}
