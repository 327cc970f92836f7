import COpenSSL

/// The session keys and salts that RFC 3711 section 4.3 derives from a master key, at key derivation rate 0.
struct SessionKeys {
  let rtpKey: [UInt8]
  let rtpSalt: [UInt8]
  let rtcpKey: [UInt8]
  let rtcpSalt: [UInt8]
  /// The keys of HMAC-SHA1, 160 bits (section 5.2); empty with AES-GCM, which authenticates with its only key.
  var rtpAuthentication: [UInt8] = []
  var rtcpAuthentication: [UInt8] = []
}

extension SessionKeys {
  init(_ profile: SRTPProfile, _ master: SRTPMasterKey) {
    rtpKey = Self.derive(master, label: 0, count: master.key.count)
    rtpSalt = Self.derive(master, label: 2, count: master.salt.count)
    rtcpKey = Self.derive(master, label: 3, count: master.key.count)
    rtcpSalt = Self.derive(master, label: 5, count: master.salt.count)
    guard profile == .aes128CMSHA1Tag80 else { return }
    rtpAuthentication = Self.derive(master, label: 1, count: 20)
    rtcpAuthentication = Self.derive(master, label: 4, count: 20)
  }

  /// AES in counter mode over zeros (RFC 3711 section 4.3.3; with a 256-bit key RFC 6188 section 3).
  private static func derive(_ master: SRTPMasterKey, label: UInt8, count: Int) -> [UInt8] {
    // The salt fills 14 bytes from the left (RFC 7714 section 11) and the label falls on the eighth.
    var block = master.salt + [UInt8](repeating: 0, count: 16 - master.salt.count)
    block[7] ^= label
    let zeros = [UInt8](repeating: 0, count: count)
    var derived = zeros
    var length: Int32 = 0
    let context = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(context) }
    let cipher = master.key.count == 32 ? EVP_aes_256_ctr() : EVP_aes_128_ctr()
    let isDerived =
      EVP_EncryptInit_ex(context, cipher, nil, master.key, block) == 1
      && EVP_EncryptUpdate(context, &derived, &length, zeros, Int32(count)) == 1
    precondition(isDerived)
    return derived
  }
}
