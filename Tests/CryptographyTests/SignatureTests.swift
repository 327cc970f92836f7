import Cryptography
import Foundation
import Seeded
import Testing

/// A public key with a message and its signature, in which one byte at a time is changed.
private func refusesEachChange(
  _ signature: [UInt8], _ message: [UInt8], _ isSignature: ([UInt8], [UInt8]) -> Bool
) -> Bool {
  for index in signature.indices {
    var changed = signature
    changed[index] ^= 1 << UInt8(index % 8)
    guard !isSignature(changed, message), hasNoErrors else { return false }
  }
  for count in 0..<signature.count {
    guard !isSignature(Array(signature.prefix(count)), message), hasNoErrors else { return false }
  }
  for other in [signature + [0], [0] + signature, signature + signature, [UInt8](repeating: 0, count: 10_000)] {
    guard !isSignature(other, message), hasNoErrors else { return false }
  }
  for same in [UInt8.min, .max] {
    guard !isSignature([UInt8](repeating: same, count: signature.count), message), hasNoErrors else { return false }
  }
  return !isSignature(signature, message + [0]) && !isSignature(signature, []) && hasNoErrors
}

struct RSATests {
  private static let payload =
    "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"

  /// RFC 7515 appendix A.2.
  private static let modulus = bytes(
    base64URL:
      "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yRT-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXBdQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9iaGNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ"
  )
  private static let f4: [UInt8] = [1, 0, 1]

  @Test func aSignatureByPKCS1IsThatOfTheRFC() throws {
    let key = try #require(RSAPublicKey(modulus: Self.modulus, exponent: Self.f4))
    let message = Array(("eyJhbGciOiJSUzI1NiJ9." + Self.payload).utf8)
    let signature = bytes(
      base64URL:
        "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rqVt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
    )
    #expect(key.bitCount == 2_048)
    #expect(key.isSignature(signature, of: message, hash: .sha256, padding: .pkcs1))
    #expect(!key.isSignature(signature, of: message, hash: .sha384, padding: .pkcs1))
    #expect(!key.isSignature(signature, of: message, hash: .sha256, padding: .pss))
    #expect(
      refusesEachChange(signature, message) { key.isSignature($0, of: $1, hash: .sha256, padding: .pkcs1) })
    // A number above the modulus has the same remainder as one below it.
    #expect(!key.isSignature(Self.modulus, of: message, hash: .sha256, padding: .pkcs1) && hasNoErrors)
  }

  /// RFC 7520 section 4.2.
  @Test func aSignatureByPSSIsThatOfTheRFC() throws {
    let key = try #require(
      RSAPublicKey(
        modulus: bytes(
          base64URL:
            "n4EPtAOCc9AlkeQHPzHStgAbgs7bTZLwUBZdR8_KuKPEHLd4rHVTeT-O-XV2jRojdNhxJWTDvNd7nqQ0VEiZQHz_AJmSCpMaJMRBSFKrKb2wqVwGU_NsYOYL-QtiWN2lbzcEe6XC0dApr5ydQLrHqkHHig3RBordaZ6Aj-oBHqFEHYpPe7Tpe-OfVfHd1E6cS6M1FZcD1NNLYD5lFHpPI9bTwJlsde3uhGqC0ZCuEHg8lhzwOHrtIQbS0FVbb9k3-tVTU4fg_3L_vniUFAKwuCLqKnS2BYwdq_mzSnbLY7h_qixoR7jig3__kRhuaxwUkRz5iaiQkqgc5gHdrNP5zw"
        ), exponent: Self.f4))
    let message = Array(
      ("eyJhbGciOiJQUzM4NCIsImtpZCI6ImJpbGJvLmJhZ2dpbnNAaG9iYml0b24uZXhhbXBsZSJ9."
        + "SXTigJlzIGEgZGFuZ2Vyb3VzIGJ1c2luZXNzLCBGcm9kbywgZ29pbmcgb3V0IHlvdXIgZG9vci4gWW91IHN0ZXAgb250byB0aGUgcm9hZCwgYW5kIGlmIHlvdSBkb24ndCBrZWVwIHlvdXIgZmVldCwgdGhlcmXigJlzIG5vIGtub3dpbmcgd2hlcmUgeW91IG1pZ2h0IGJlIHN3ZXB0IG9mZiB0by4")
        .utf8)
    let signature = bytes(
      base64URL:
        "cu22eBqkYDKgIlTpzDXGvaFfz6WGoz7fUDcfT0kkOy42miAh2qyBzk1xEsnk2IpN6-tPid6VrklHkqsGqDqHCdP6O8TTB5dDDItllVo6_1OLPpcbUrhiUSMxbbXUvdvWXzg-UD8biiReQFlfz28zGWVsdiNAUf8ZnyPEgVFn442ZdNqiVJRmBqrYRXe8P_ijQ7p8Vdz0TTrxUeT3lm8d9shnr2lfJT8ImUjvAA2Xez2Mlp8cBE5awDzT0qI0n6uiP1aCN_2_jLAeQTlqRHtfa64QQSUmFAAjVKPbByi7xho0uTOcbH510a6GYmJUAfmWjwZ6oD4ifKo8DYM-X72Eaw"
    )
    #expect(key.isSignature(signature, of: message, hash: .sha384, padding: .pss))
    #expect(!key.isSignature(signature, of: message, hash: .sha256, padding: .pss))
    #expect(!key.isSignature(signature, of: message, hash: .sha384, padding: .pkcs1))
    #expect(refusesEachChange(signature, message) { key.isSignature($0, of: $1, hash: .sha384, padding: .pss) })
  }

  /// A key and signatures of "sample" with SHA-256, made for this test by Python's cryptography.
  private static let other = (
    modulus: bytes(
      base64URL:
        "lsqNOY5ioB8gmJ9mS4jAQrPo4jSU6Q8Q9pmuOIo6tik95M4bnm1Di_qQMUcy8P5pgSuPXxRqjX0qp5oOhVfVSNRCKCKpzoF0yvx4fgKH9YGMUBV86jtlVbq5XYDEdAUBf6vUQFux5kUWzrMMzzCVZHL_A5Es3E5Pta8pp84BiMmtR4gbKsOQUKSfEoJfmukQpKyYnhLJA48fqzQElYNSHGOafnDwWGMBoLa6YwCoTRYOLxV9G4KbXgEXO7LJIgmGpc82-MNLDkuRiybPRF1jKwQRQRbftAan_2iENn9hZXBAxJ5CKQH4bqpzHtSOSe6_C3ZQy3lv3sg9qwowg_2jWw"
    ),
    salt32: bytes(
      base64URL:
        "bRHxd0mdEOIyVcRGC-HKmacWjEmmoaLSCdwHqL3AL5mjD1WSk9WQ4uuuvZZEtjIdFPcy4adjGuvw5G6MBLEY1AgBtLpz0lcmCZGVa7GIKt_HeWdiujOV5_S7m4TtJM_ZWerOAO6owsyIqfl-VmN1ML6wXWQeIRaoqLdYHFF4HgwXHqqSBF16HWP6jNbqPFhTH3te3D-8rBBVDrHcOfkKmdjImvF6axyOPAwZZsGoZyl5h-Q5tW-5p_fEaTd6s-ZvsNmAe-3i705O3dwXiYjQy1HfHiSoHYU4GaG_bEHSGgrNv1JoJ1CP9uLajdywgaGNVtjw_8aQT22Jr289MmgT-A"
    ),
    salt0: bytes(
      base64URL:
        "BhmQIAFQD_pAPbhtM9huGH7LQlrx_JJhUfWAMHjzGVH9cV58nuGTEjiLnU2Kovp4lwPBt8KvWZr2BcTvBJFC9VHQxs7GKnGfGtdF67R2KhE2ck1ZIKUSoj4zQ-Ol__M3iSn7tnPMQHKi8h9-xCvGZ5iwstmOrAjGVNxMEgkF_nHU5-gNGu923Xsf54QAmjucNtBqHrMo-y1JZ4RqGN6fdBQkS3SBKWC7cmfm4mFM7o42GSxOa8r5KcIumSUjW_e9wi0a6qYr0ZNsfhi4OOZXadeDDP36MWehQrGJ_5teZU40sXNCP4ETsYtd_UoG0QccQyJ5UsyIFUfjiwcY3QZ6wQ"
    ),
    longSalt: bytes(
      base64URL:
        "hhEjE8Qr_C6RQq7IaS4MsPXFgbkWRlR6aI29sxCtdxus4V8yUVREVU-vlaIBeVGERpWMcY8Gm9KKLfOZKgiQbvPrdL8SKWuQdbmNy3ABY4FNngH8zHAwcrwxOBQdpTGAz3In7VorjqsSPN7YyQ6wjF3u1isLGFqEbqq5Y5MokZuvDvoYXtQDErAI-k2NuGFO6HrakD5kMX5DTX66pxLyMSzEWUgsefbYFuYqd-Ek0zYepf9XKwMoilZV3tMMnwPpylUX-fYQxYOWX828X-xdYUnE2t6OnPX1vzOTGnA36GZhOvNEPi9crNQLzZ1kpl9FTbyoQ22WZ5GX0ALS9v_0Hw"
    ),
    mgf1WithSHA1: bytes(
      base64URL:
        "jC9CZcKSGV6vpYK0vMzYp3ACMx9dSC-FMK9qX6Obq80oZfyWssCHIGfuOmHyqeMNhLuw2XcF0efLLK6BUpMrvPtRRCTHze5_oWJKyxSmAFKaMEmr0tlX66Dpm3-wyFRr6R_xprrWcYTwaTGVE7y00YA_bykysS9yZSL5rjedcUSskAQHaPhApLTPuTkQ4cfWjlogiw_lXyVH_W61q_GKKztCJA1MZfo9OHWGVu3j1QmpNnTsr2pjTcBvZEgXbADNvhybk2Le4wRZjGKFE0oWBvGbIS98XnyFXD_u6CEFKza8CZaatKP1JoCxjA-U68U9_G0Webwg63CpS8JXtcev7g"
    )
  )

  @Test func aSaltIsAsLongAsTheDigestAndMGF1HasTheSameHash() throws {
    let key = try #require(RSAPublicKey(modulus: Self.other.modulus, exponent: Self.f4))
    func isSignature(_ signature: [UInt8]) -> Bool {
      key.isSignature(signature, of: "sample".utf8, hash: .sha256, padding: .pss)
    }
    #expect(isSignature(Self.other.salt32))
    for signature in [Self.other.salt0, Self.other.longSalt, Self.other.mgf1WithSHA1] {
      #expect(!isSignature(signature) && hasNoErrors)
    }
  }

  @Test func leadingZerosDoNotCount() throws {
    let key = try #require(RSAPublicKey(modulus: [0, 0] + Self.modulus, exponent: [0] + Self.f4))
    #expect(key.bitCount == 2_048)
  }

  @Test func weakAndHugeKeysAreNone() {
    let odd = [UInt8](repeating: 0xff, count: 2_000)
    for (modulus, exponent) in [
      ([], Self.f4), ([0], Self.f4), ([1], Self.f4), (Self.modulus, []), (Self.modulus, [0]), (Self.modulus, [1]),
      (Self.modulus, [2]), (Self.modulus, [1, 0, 0]), (Self.modulus, [3, 0, 0, 0, 1]),
      (Self.modulus, [1, 0, 0, 0, 0, 1]),
      (Self.modulus.dropLast() + [0xa0], Self.f4), ([0x7f] + odd.prefix(255), Self.f4),
      (Array(odd.prefix(128)), Self.f4),
      ([1] + odd.prefix(1_024), Self.f4), (odd, Self.f4), (Self.modulus, Self.modulus),
    ] as [([UInt8], [UInt8])] {
      #expect(RSAPublicKey(modulus: modulus, exponent: exponent) == nil && hasNoErrors, "\(modulus.count) bytes")
    }
    // The largest and the smallest valid keys.
    for modulus in [odd.prefix(1_024), [0x80] + odd.prefix(255)] {
      for exponent in [[3], Self.f4, [1, 0, 0, 0, 1]] as [[UInt8]] {
        let key = RSAPublicKey(modulus: modulus, exponent: exponent)
        #expect(key?.bitCount == 8 * modulus.count)
        let signature = [UInt8](repeating: 1, count: modulus.count)
        #expect(key?.isSignature(signature, of: [1], hash: .sha256, padding: .pss) == false && hasNoErrors)
      }
    }
  }

  private static let spki = bytes(
    hex:
      "30820122300d06092a864886f70d01010105000382010f003082010a028201010096ca8d398e62a01f20989f664b88c042b3e8e23494e90f10f699ae388a3ab6293de4ce1b9e6d438bfa90314732f0fe69812b8f5f146a8d7d2aa79a0e8557d548d4422822a9ce8174cafc787e0287f5818c50157cea3b6555bab95d80c47405017fabd4405bb1e64516ceb30ccf30956472ff03912cdc4e4fb5af29a7ce0188c9ad47881b2ac39050a49f12825f9ae910a4ac989e12c9038f1fab34049583521c639a7e70f0586301a0b6ba6300a84d160e2f157d1b829b5e01173bb2c9220986a5cf36f8c34b0e4b918b26cf445d632b04114116dfb406a7ff6884367f61657040c49e422901f86eaa731ed48e49eebf0b7650cb796fdec83dab0a3083fda35b0203010001"
  )

  @Test func aSubjectPublicKeyInfoIsRead() throws {
    let key = try #require(RSAPublicKey(spki: Self.spki))
    #expect(key.isSignature(Self.other.salt32, of: "sample".utf8, hash: .sha256, padding: .pss))
    for count in 0..<Self.spki.count { #expect(RSAPublicKey(spki: Array(Self.spki.prefix(count))) == nil) }
    #expect(RSAPublicKey(spki: Self.spki + [0]) == nil)
    // The tags, lengths and algorithm, and the count of unused bits. A changed bit of a number can be another key.
    for index in 0..<32 {
      for bit in 0..<8 {
        var changed = Self.spki
        changed[index] ^= 1 << UInt8(bit)
        #expect(RSAPublicKey(spki: changed) == nil && hasNoErrors, "byte \(index), bit \(bit)")
      }
    }
    // Missing parameters, or an algorithm only for PSS (RFC 4055).
    let algorithm = bytes(hex: "300d06092a864886f70d0101010500")
    for other in ["300b06092a864886f70d010101", "300d06092a864886f70d01010a0500"] {
      let content = bytes(hex: other) + Self.spki.dropFirst(4 + algorithm.count)
      let changed = [0x30, 0x82, UInt8(content.count >> 8), UInt8(content.count & 0xff)] + content
      #expect(RSAPublicKey(spki: changed) == nil)
    }
  }

  /// Any bytes are either a key or refused, and OpenSSL's queue of errors stays empty.
  @Test(arguments: 1...3 as ClosedRange<UInt64>) func aChangedKeyIsOneOrNone(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<3_000 {
      var changed = Self.spki
      for _ in 0...Int.random(in: 0..<4, using: &random) where !changed.isEmpty {
        let place = Int.random(in: 0..<min(changed.count, 60), using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: changed[place] = UInt8.random(in: 0...255, using: &random)
        case 1: changed.remove(at: place)
        default: changed.insert(UInt8.random(in: 0...255, using: &random), at: place)
        }
      }
      let key = RSAPublicKey(spki: changed)
      #expect(key.map { RSAPublicKey.bitCounts.contains($0.bitCount) } ?? true, "seed \(seed)")
      #expect(hasNoErrors, "seed \(seed)")
    }
  }
}

struct ECDSATests {
  struct Vector: Sendable {
    var curve: ECPublicKey.Curve
    var hash: HashAlgorithm
    var point, signature, message: [UInt8]
    /// The curve's order, from FIPS 186-5.
    var order: [UInt8]
  }

  /// RFC 6979 appendices A.2.5 to A.2.7: the signatures of "sample" with the hash of JOSE.
  static let vectors = [
    Vector(
      curve: .p256, hash: .sha256,
      point: bytes(
        hex:
          "0460fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb67903fe1008b8bc99a41ae9e95628bc64f2f1b20c2d7e9f5177a3c294d4462299"
      ),
      signature: bytes(
        hex:
          "efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8"
      ), message: Array("sample".utf8),
      order: bytes(hex: "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")),
    Vector(
      curve: .p384, hash: .sha384,
      point: bytes(
        hex:
          "04ec3a4e415b4e19a4568618029f427fa5da9a8bc4ae92e02e06aae5286b300c64def8f0ea9055866064a254515480bc138015d9b72d7d57244ea8ef9ac0c621896708a59367f9dfb9f54ca84b3f1c9db1288b231c3ae0d4fe7344fd2533264720"
      ),
      signature: bytes(
        hex:
          "94edbb92a5ecb8aad4736e56c691916b3f88140666ce9fa73d64c4ea95ad133c81a648152e44acf96e36dd1e80fabe4699ef4aeb15f178cea1fe40db2603138f130e740a19624526203b6351d0a3a94fa329c145786e679e7b82c71a38628ac8"
      ), message: Array("sample".utf8),
      order: bytes(
        hex: "ffffffffffffffffffffffffffffffffffffffffffffffffc7634d81f4372ddf581a0db248b0a77aecec196accc52973")),
    Vector(
      curve: .p521, hash: .sha512,
      point: bytes(
        hex:
          "0401894550d0785932e00eaa23b694f213f8c3121f86dc97a04e5a7167db4e5bcd371123d46e45db6b5d5370a7f20fb633155d38ffa16d2bd761dcac474b9a2f5023a400493101c962cd4d2fddf782285e64584139c2f91b47f87ff82354d6630f746a28a0db25741b5b34a828008b22acc23f924faafbd4d33f81ea66956dfeaa2bfdfcf5"
      ),
      signature: bytes(
        hex:
          "00c328fafcbd79dd77850370c46325d987cb525569fb63c5d3bc53950e6d4c5f174e25a1ee9017b5d450606add152b534931d7d4e8455cc91f9b15bf05ec36e377fa00617cce7cf5064806c467f678d3b4080d6f1cc50af26ca209417308281b68af282623eaa63e5b5c0723d8b8c37ff0777b1a20f8ccb1dccc43997f1ee0e44da4a67a"
      ), message: Array("sample".utf8),
      order: bytes(
        hex:
          "01fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffa51868783bf2f966b7fcc0148f709a5d03bb5c9b8899c47aebb6fb71e91386409"
      )),
    // RFC 7515 appendix A.3.
    Vector(
      curve: .p256, hash: .sha256,
      point: [4] + bytes(base64URL: "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU")
        + bytes(base64URL: "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"),
      signature: bytes(
        base64URL: "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"),
      message: Array(
        "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
          .utf8), order: bytes(hex: "ffffffff00000000ffffffffffffffffbce6faada7179e84f3b9cac2fc632551")),
  ]

  @Test(arguments: vectors.indices) func aSignatureIsThatOfTheRFC(_ index: Int) throws {
    let vector = Self.vectors[index]
    let key = try #require(ECPublicKey(vector.curve, point: vector.point))
    #expect(key.isSignature(vector.signature, of: vector.message, hash: vector.hash) && hasNoErrors)
    #expect(refusesEachChange(vector.signature, vector.message) { key.isSignature($0, of: $1, hash: vector.hash) })
  }

  /// r and s are from 1 to the order less 1. The order itself and numbers above it are refused.
  @Test(arguments: vectors.indices) func aNumberOutOfRangeIsRefused(_ index: Int) throws {
    let vector = Self.vectors[index]
    let key = try #require(ECPublicKey(vector.curve, point: vector.point))
    let count = vector.curve.byteCount
    let zero = [UInt8](repeating: 0, count: count)
    let one = zero.dropLast() + [1]
    let most = [UInt8](repeating: 0xff, count: count)
    let (r, s) = (Array(vector.signature.prefix(count)), Array(vector.signature.suffix(count)))
    for number in [zero, Array(one), vector.order, most] {
      for signature in [r + number, number + s, number + number, number + zero] {
        #expect(!key.isSignature(signature, of: vector.message, hash: vector.hash) && hasNoErrors)
      }
    }
  }

  /// DER is how X.509 writes a signature, not JOSE.
  @Test func aSignatureInDERIsRefused() throws {
    let vector = Self.vectors[0]
    let key = try #require(ECPublicKey(vector.curve, point: vector.point))
    let der =
      bytes(hex: "3046022100") + vector.signature.prefix(32) + bytes(hex: "022100") + vector.signature.suffix(32)
    #expect(!key.isSignature(der, of: vector.message, hash: vector.hash) && hasNoErrors)
  }

  @Test(arguments: vectors.indices) func onlyAPointOfTheCurveIsAKey(_ index: Int) {
    let vector = Self.vectors[index]
    let (curve, point) = (vector.curve, vector.point)
    let count = curve.byteCount
    for length in 0..<point.count { #expect(ECPublicKey(curve, point: Array(point.prefix(length))) == nil) }
    #expect(ECPublicKey(curve, point: point + [0]) == nil && ECPublicKey(curve, point: [0]) == nil)
    // Compressed, and both forms at once (SEC 1 section 2.3.3).
    let sign = (point.last ?? 0) & 1
    #expect(ECPublicKey(curve, point: [2 + sign] + point[1...count]) == nil)
    for first in UInt8.min...UInt8.max where first != 4 {
      #expect(ECPublicKey(curve, point: [first] + point.dropFirst()) == nil && hasNoErrors)
    }
    for index in 1..<point.count {
      var changed = point
      changed[index] ^= 1
      #expect(ECPublicKey(curve, point: changed) == nil && hasNoErrors, "byte \(index)")
    }
    for same in [UInt8.min, .max] {
      #expect(ECPublicKey(curve, point: [4] + [UInt8](repeating: same, count: 2 * count)) == nil && hasNoErrors)
    }
    for other in [ECPublicKey.Curve.p256, .p384, .p521] where other != curve {
      #expect(ECPublicKey(other, point: point) == nil)
      let padded = [4] + [UInt8](repeating: 0, count: 2 * other.byteCount)
      #expect(ECPublicKey(other, point: padded) == nil && hasNoErrors)
    }
  }

  /// A coordinate is below the field's prime: x + p is refused, although its remainder is a coordinate.
  @Test func aCoordinateAboveThePrimeIsNone() throws {
    // A point of P-256 whose x is so small that x + p has 32 bytes, too (Wycheproof's ecdh_secp256r1, EdgeCaseEphemeralKey).
    let x = bytes(hex: "0000000000000000000000000000000000000000000000000000000000000000")
    let y = bytes(hex: "66485c780e2f83d72433bd5d84a06bb6541c2af31dae871728bf856a174f93f4")
    #expect(ECPublicKey(.p256, point: [4] + x + y) != nil)
    let prime = bytes(hex: "ffffffff00000001000000000000000000000000ffffffffffffffffffffffff")
    #expect(ECPublicKey(.p256, point: [4] + prime + y) == nil && hasNoErrors)
  }

  @Test func aSubjectPublicKeyInfoIsRead() throws {
    let vector = Self.vectors[0]
    let spki = bytes(hex: "3059301306072a8648ce3d020106082a8648ce3d030107034200") + vector.point
    let key = try #require(ECPublicKey(p256SPKI: spki))
    #expect(key.isSignature(vector.signature, of: vector.message, hash: .sha256))
    for count in 0..<spki.count { #expect(ECPublicKey(p256SPKI: Array(spki.prefix(count))) == nil) }
    #expect(ECPublicKey(p256SPKI: spki + [0]) == nil)
    for index in spki.indices {
      var changed = spki
      changed[index] ^= 1
      #expect(ECPublicKey(p256SPKI: changed) == nil && hasNoErrors, "byte \(index)")
    }
  }
}

struct Ed25519Tests {
  /// RFC 8032 section 7.1, the tests 1 and 2.
  @Test(arguments: [
    (
      "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a", "",
      "e5564300c360ac729086e2cc806e828a84877f1eb8e5d974d873e065224901555fb8821590a33bacc61e39701cf9b46bd25bf5f0595bbe24655141438e7a100b"
    ),
    (
      "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c", "72",
      "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    ),
  ])
  func aSignatureIsThatOfTheRFC(key: String, message: String, signature: String) throws {
    let (point, message, signature) = (bytes(hex: key), bytes(hex: message), bytes(hex: signature))
    let spki = bytes(hex: "302a300506032b6570032100") + point
    for key in [Ed25519PublicKey(point), Ed25519PublicKey(spki: spki)] {
      let key = try #require(key)
      #expect(key.isSignature(signature, of: message) && hasNoErrors)
      guard !message.isEmpty else { continue }
      #expect(refusesEachChange(signature, message) { key.isSignature($0, of: $1) })
    }
    for count in 0..<spki.count { #expect(Ed25519PublicKey(spki: Array(spki.prefix(count))) == nil) }
    #expect(Ed25519PublicKey(spki: spki + [0]) == nil && Ed25519PublicKey(point + [0]) == nil)
    for index in 0..<12 {
      var changed = spki
      changed[index] ^= 1
      #expect(Ed25519PublicKey(spki: changed) == nil && hasNoErrors)
    }
  }

  /// s is below the group's order L (RFC 8032 section 5.1.7): s + L would be a second signature of the same message.
  @Test func aSecondFormOfASignatureIsRefused() throws {
    let key = try #require(
      Ed25519PublicKey(bytes(hex: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c")))
    var signature = bytes(
      hex:
        "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00"
    )
    #expect(key.isSignature(signature, of: [0x72]))
    let order = bytes(hex: "edd3f55c1a631258d69cf7a2def9de1400000000000000000000000000000010")
    var carry = 0
    for index in 0..<32 {
      carry += Int(signature[32 + index]) + Int(order[index])
      signature[32 + index] = UInt8(carry & 0xff)
      carry >>= 8
    }
    #expect(carry == 0 && !key.isSignature(signature, of: [0x72]) && hasNoErrors)
  }

  /// Bytes that are not a point verify nothing.
  @Test(arguments: 1...3 as ClosedRange<UInt64>) func anyBytesVerifyNothing(seed: UInt64) {
    var random = SeededGenerator(seed: seed)
    for _ in 0..<300 {
      let point = (0..<32).map { _ in UInt8.random(in: 0...255, using: &random) }
      let signature = (0..<64).map { _ in UInt8.random(in: 0...255, using: &random) }
      #expect(Ed25519PublicKey(point)?.isSignature(signature, of: [1]) == false && hasNoErrors, "seed \(seed)")
    }
  }
}
