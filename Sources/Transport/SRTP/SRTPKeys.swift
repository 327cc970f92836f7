/// The master key and salt of one direction (RFC 3711 section 8.2).
package struct SRTPMasterKey: Sendable {
  package var key: [UInt8]
  package var salt: [UInt8]

  package init(key: [UInt8], salt: [UInt8]) {
    self.key = key
    self.salt = salt
  }
}

/// The SRTP keys from a DTLS handshake (RFC 5764 section 4.2).
package struct SRTPKeys: Sendable {
  package var profile: SRTPProfile
  /// For what this side sends: `SRTPSender`.
  package var outbound: SRTPMasterKey
  /// For what this side receives: `SRTPReceiver`.
  package var inbound: SRTPMasterKey

  package init(profile: SRTPProfile, outbound: SRTPMasterKey, inbound: SRTPMasterKey) {
    self.profile = profile
    self.outbound = outbound
    self.inbound = inbound
  }
}

extension SRTPMasterKey: CustomStringConvertible { package var description: String { "key" } }
extension SRTPKeys: CustomStringConvertible { package var description: String { "keys" } }

/// A protection profile of RFC 5764 section 4.1.2 and RFC 7714 section 14.2; the raw value is the one on the wire.
package enum SRTPProfile: UInt16, Sendable, CaseIterable {
  case aes128CMSHA1Tag80 = 0x0001
  case aeadAES128GCM = 0x0007
  case aeadAES256GCM = 0x0008

  /// Bytes of the master key.
  package var keyLength: Int { self == .aeadAES256GCM ? 32 : 16 }
  /// Bytes of the master salt.
  package var saltLength: Int { self == .aes128CMSHA1Tag80 ? 14 : 12 }
  /// Bytes that protection adds to an RTP packet.
  package var rtpOverhead: Int { self == .aes128CMSHA1Tag80 ? 10 : 16 }
  /// Bytes that protection adds to an RTCP packet: the tag, and the E flag with the index.
  package var rtcpOverhead: Int { rtpOverhead + 4 }
}
