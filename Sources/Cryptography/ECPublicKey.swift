import COpenSSL

/// A point of one of NIST's curves (FIPS 186-5), for ECDSA and ECDH.
package struct ECPublicKey: Sendable {
  package enum Curve: Sendable {
    case p256, p384, p521

    /// Bytes of a coordinate, and of a number below the order.
    package var byteCount: Int {
      switch self {
      case .p256: 32
      case .p384: 48
      case .p521: 66
      }
    }

    var name: String {
      switch self {
      case .p256: "P-256"
      case .p384: "P-384"
      case .p521: "P-521"
      }
    }
  }

  let key: AsymmetricKey
  package let curve: Curve

  /// nil unless `point` is an uncompressed point of the curve (SEC 1 section 2.3.4): a 4, then both coordinates.
  package init?(_ curve: Curve, point: [UInt8]) {
    guard point.count == 1 + 2 * curve.byteCount, point[0] == 4,
      let key = AsymmetricKey({ copenssl_ec_public_key(curve.name, point, point.count) })
    else { return nil }
    self.key = key
    self.curve = curve
  }

  /// A key of P-256 as a SubjectPublicKeyInfo in DER (RFC 5480 section 2), and nothing behind it.
  package init?(p256SPKI spki: [UInt8]) {
    guard spki.starts(with: Self.p256Prefix) else { return nil }
    self.init(.p256, point: Array(spki.dropFirst(Self.p256Prefix.count)))
  }

  /// - Parameter signature: of ECDSA, r ‖ s (RFC 7518 section 3.4): each as long as a coordinate, and no other length is a signature.
  package func isSignature(_ signature: [UInt8], of message: some Collection<UInt8>, hash: HashAlgorithm) -> Bool {
    guard signature.count == 2 * curve.byteCount else { return false }
    return key.isSignature(ECDSASignature.der(signature), of: message, hash: hash)
  }

  /// The bytes before the point, which has always 65.
  private static let p256Prefix: [UInt8] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48, 0xce,
    0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
  ]
}

/// The two forms of a signature of ECDSA: r ‖ s as in JOSE, and DER (RFC 3279 section 2.2.3) as in OpenSSL.
enum ECDSASignature {
  static func der(_ signature: [UInt8]) -> [UInt8] {
    let half = signature.count / 2
    let (r, s) = (signature.prefix(half), signature.dropFirst(half))
    return DERReader.encoded(.sequence, DERReader.encoded(integer: r) + DERReader.encoded(integer: s))
  }

  /// r and s in `count` bytes each; nil if it is no signature, or they do not fit.
  static func joined(_ der: [UInt8], count: Int) -> [UInt8]? {
    var whole = DERReader(der[...])
    guard let content = whole.content(.sequence), whole.isAtEnd else { return nil }
    var reader = DERReader(content)
    guard let r = reader.unsignedInteger(), let s = reader.unsignedInteger(), reader.isAtEnd,
      max(r.count, s.count) <= count
    else { return nil }
    return [r, s].flatMap { [UInt8](repeating: 0, count: count - $0.count) + $0 }
  }
}
