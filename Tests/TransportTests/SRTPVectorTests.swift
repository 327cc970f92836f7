import Octets
import Testing

@testable import Transport

/// RFC 7714 sections 16 and 17. The vectors have session keys, so they bypass the key derivation, which
/// `SRTPOracleTests` compares with libsrtp2.
struct SRTPVectorTests {
  static let rtp = hex(
    """
    8040f17b 8041f8d3 5501a0b2 47616c6c 69612065 7374206f 6d6e6973 20646976 69736120 696e2070 61727465 73207472 6573
    """)
  static let rtcp = hex(
    """
    81c8000d 4d617273 4e545031 4e545032 52545020 0000042a 0000e930 4c756e61 deadbeef deadbeef deadbeef deadbeef deadbeef
    """)

  struct Vector: Sendable {
    var keyLength: UInt8
    var rtp: [UInt8]
    var rtcp: [UInt8]

    var keys: SessionKeys {
      let salt = Array("Quid pro quo".utf8)
      return SessionKeys(
        rtpKey: Array(0..<keyLength), rtpSalt: salt, rtcpKey: Array(0..<keyLength), rtcpSalt: salt)
    }
  }

  static let vectors = [
    Vector(
      keyLength: 16,
      rtp: hex(
        """
        8040f17b 8041f8d3 5501a0b2 f24de3a3 fb34de6c acba861c 9d7e4bca be633bd5 0d294e6f 42a5f47a 51c7d19b 36de3adf
        8833899d 7f27beb1 6a9152cf 765ee439 0cce
        """),
      rtcp: hex(
        """
        81c8000d 4d617273 63e94885 dcdab67c a727d766 2f6b7e99 7ff5c0f7 6c06f32d c676a5f1 730d6fda 4ce09b46 86303ded
        0bb9275b c84aa458 96cf4d2f c5abf872 45d9eade 800005d4
        """)),
    Vector(
      keyLength: 32,
      rtp: hex(
        """
        8040f17b 8041f8d3 5501a0b2 32b1de78 a822fe12 ef9f78fa 332e33aa b1801238 9a58e2f3 b50b2a02 76ffae0f 1ba63799
        b87b7aa3 db36dfff d6b0f9bb 7878d7a7 6c13
        """),
      rtcp: hex(
        """
        81c8000d 4d617273 d50ae4d1 f5ce5d30 4ba297e4 7d470c28 2c3ece5d bffe0a50 a2eaa5c1 110555be 8415f658 c61de047
        6f1b6fad 1d1eb30c 4446839f 57ff6f6c b26ac3be 800005d4
        """)),
  ]

  @Test(arguments: vectors)
  func sealsRTP(vector: Vector) {
    let transform = AEADTransform(keys: vector.keys, direction: .seal)
    var packet = Self.rtp + [UInt8](repeating: 0, count: 16)
    packet.withUnsafeMutableBytes { packet in
      let base = packet.baseAddress.unsafelyUnwrapped
      transform.sealRTP(
        base, RTPLayout(header: 12, prefix: 0, payload: Self.rtp.count - 12, padding: 0), base + 12,
        ssrc: packet.bytes.uint32(at: 8),
        index: 0xf17b)
    }
    #expect(packet == vector.rtp)
  }

  @Test(arguments: vectors)
  func opensRTP(vector: Vector) {
    let transform = AEADTransform(keys: vector.keys, direction: .open)
    for flipped in [nil] + vector.rtp.indices.map(Optional.some) {
      var packet = vector.rtp
      if let flipped { packet[flipped] ^= 4 }
      let opens = packet.withUnsafeMutableBytes {
        transform.openRTP(
          $0.baseAddress.unsafelyUnwrapped, length: $0.count, header: 12, ssrc: $0.bytes.uint32(at: 8), index: 0xf17b)
      }
      #expect(opens == (flipped == nil), "byte \(flipped ?? -1) flipped")
      if flipped == nil { #expect(Array(packet.dropLast(16)) == Self.rtp) }
    }
  }

  @Test(arguments: vectors)
  func sealsRTCP(vector: Vector) {
    let transform = AEADTransform(keys: vector.keys, direction: .seal)
    var packet = Self.rtcp + [UInt8](repeating: 0, count: 20)
    packet.withUnsafeMutableBytes {
      transform.sealRTCP(
        $0.baseAddress.unsafelyUnwrapped, length: Self.rtcp.count, ssrc: $0.bytes.uint32(at: 4), index: 0x5d4)
    }
    #expect(packet == vector.rtcp)
  }

  @Test(arguments: vectors)
  func opensRTCP(vector: Vector) {
    let transform = AEADTransform(keys: vector.keys, direction: .open)
    for flipped in [nil] + vector.rtcp.indices.map(Optional.some) {
      var packet = vector.rtcp
      if let flipped { packet[flipped] ^= 4 }
      let opens = packet.withUnsafeMutableBytes {
        transform.openRTCP(
          $0.baseAddress.unsafelyUnwrapped, length: $0.count, ssrc: $0.bytes.uint32(at: 4), index: 0x5d4)
      }
      #expect(opens == (flipped == nil), "byte \(flipped ?? -1) flipped")
      if flipped == nil { #expect(Array(packet.dropLast(20)) == Self.rtcp) }
    }
  }
}
