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
