/// One direction's cryptography by profile. It keeps no per-packet state.
enum SRTPTransform: ~Copyable {
  case aead(AEADTransform)
  case counterMode(CounterModeTransform)

  init(_ profile: SRTPProfile, _ master: SRTPMasterKey, _ direction: AEADCipher.Direction) {
    precondition(master.key.count == profile.keyLength && master.salt.count == profile.saltLength)
    let keys = SessionKeys(profile, master)
    self =
      profile == .aes128CMSHA1Tag80
      ? .counterMode(CounterModeTransform(keys: keys)) : .aead(AEADTransform(keys: keys, direction: direction))
  }

  func sealRTP(
    _ packet: UnsafeMutableRawPointer, _ layout: RTPLayout, _ payload: UnsafeRawPointer?, ssrc: UInt32, index: UInt64
  ) {
    switch self {
    case .aead(let transform): transform.sealRTP(packet, layout, payload, ssrc: ssrc, index: index)
    case .counterMode(let transform): transform.sealRTP(packet, layout, payload, ssrc: ssrc, index: index)
    }
  }

  func openRTP(_ packet: UnsafeMutableRawPointer, length: Int, header: Int, ssrc: UInt32, index: UInt64) -> Bool {
    switch self {
    case .aead(let transform): transform.openRTP(packet, length: length, header: header, ssrc: ssrc, index: index)
    case .counterMode(let transform):
      transform.openRTP(packet, length: length, header: header, ssrc: ssrc, index: index)
    }
  }

  func sealRTCP(_ packet: UnsafeMutableRawPointer, length: Int, ssrc: UInt32, index: UInt32) {
    switch self {
    case .aead(let transform): transform.sealRTCP(packet, length: length, ssrc: ssrc, index: index)
    case .counterMode(let transform): transform.sealRTCP(packet, length: length, ssrc: ssrc, index: index)
    }
  }

  func openRTCP(_ packet: UnsafeMutableRawPointer, length: Int, ssrc: UInt32, index: UInt32) -> Bool {
    switch self {
    case .aead(let transform): transform.openRTCP(packet, length: length, ssrc: ssrc, index: index)
    case .counterMode(let transform): transform.openRTCP(packet, length: length, ssrc: ssrc, index: index)
    }
  }
}
