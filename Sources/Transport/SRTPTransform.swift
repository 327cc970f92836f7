/// One direction's cryptography by profile.
enum SRTPTransform: ~Copyable {
  case aead(AEADTransform)
  case counterMode(CounterModeTransform)

  init(sending profile: SRTPProfile, _ master: SRTPMasterKey) {
    precondition(master.key.count == profile.keyLength && master.salt.count == profile.saltLength)
    self =
      profile == .aes128CMSHA1Tag80
      ? .counterMode(CounterModeTransform(master: master, direction: .send))
      : .aead(AEADTransform(keys: SessionKeys(master: master), direction: .seal))
  }

  init(receiving profile: SRTPProfile, _ master: SRTPMasterKey) {
    precondition(master.key.count == profile.keyLength && master.salt.count == profile.saltLength)
    self =
      profile == .aes128CMSHA1Tag80
      ? .counterMode(CounterModeTransform(master: master, direction: .receive))
      : .aead(AEADTransform(keys: SessionKeys(master: master), direction: .open))
  }
}
