import Contract
import Crypto
import MediaModel
import Octets

/// Words: made by this device, and checked (protocol section 5.13).
extension Admission {
  /// This device lets a user in; its own user only when it starts the call.
  static func letting(_ user: UserID, into call: CallID, by identity: DeviceIdentity) -> Admission {
    signed(by: identity, user: user) {
      Transcript.admission(call: call.text, fingerprint: identity.fingerprint, user: user.text)
    }
  }

  /// This device makes a link; if it `waits`, its guests wait until a member's device admits them.
  static func making(
    _ link: [UInt8], of call: CallID, waits: Bool = false, by identity: DeviceIdentity
  ) -> Admission {
    let transcript = waits ? Transcript.waitingLink : Transcript.callLink
    var word = signed(by: identity, link: link) { transcript(call.text, identity.fingerprint, link) }
    word.waits = waits ? true : nil
    return word
  }

  /// The word of a guest who waits, as this device admits it. nil for the word of anybody else.
  func admitted(into call: CallID, by identity: DeviceIdentity) -> Admission? {
    guard let user, user.isGuest, let link else { return nil }
    let transcript = Transcript.guestAdmission(
      call: call.text, fingerprint: identity.fingerprint, link: link.bytes, guest: fingerprint.bytes, user: user.text)
    var word = self
    word.admittedBy = Countersignature(
      fingerprint: Base64Bytes(identity.fingerprint), sigAlg: identity.publicKeys.sign.alg,
      signature: Base64Bytes(identity.sign(transcript.bytes)))
    return word
  }

  private static func signed(
    by identity: DeviceIdentity, user: UserID? = nil, link: [UInt8]? = nil, _ transcript: () -> Transcript
  ) -> Admission {
    Admission(
      user: user, link: link.map { Base64Bytes($0) }, fingerprint: Base64Bytes(identity.fingerprint),
      sigAlg: identity.publicKeys.sign.alg, signature: Base64Bytes(identity.sign(transcript().bytes)))
  }

  /// The user of this device joins by a link. nil if BoringSSL is out of memory.
  static func coming(by secret: LinkSecret, into call: CallID, as identity: DeviceIdentity) -> Admission? {
    let key = secret.key(of: call)
    let link = Array(key.publicKey.rawRepresentation)
    let transcript = Transcript.linkJoin(
      call: call.text, link: link, fingerprint: identity.fingerprint, user: identity.address.user.text)
    guard let signature = try? key.signature(for: transcript.bytes) else { return nil }
    return Admission(
      user: identity.address.user, link: Base64Bytes(link), fingerprint: Base64Bytes(identity.fingerprint),
      signature: Base64Bytes(Array(signature)))
  }

  /// Whether it has the form of one of the three kinds of words. A member lets in guests only by a countersignature.
  var isWellFormed: Bool {
    guard fingerprint.bytes.count == 32, !signature.bytes.isEmpty, link.map({ $0.bytes.count == 32 }) ?? true else {
      return false
    }
    if isByLink {
      return waits == nil
        && admittedBy.map { $0.fingerprint.bytes.count == 32 && !$0.signature.bytes.isEmpty } ?? true
    }
    guard sigAlg != nil, admittedBy == nil else { return false }
    return user.map { link == nil && waits == nil && !$0.isGuest } ?? (link != nil)
  }

  /// The word of a user who joins by a link, signed with the link's key.
  var isByLink: Bool { user != nil && link != nil }

  /// Whether the device with these keys signed it for this call; for the word of a user who joins by a link, whether the link's key did.
  func isGood(in call: CallID, by keys: DeviceKeys?) -> Bool {
    if let user, let link {
      let transcript = Transcript.linkJoin(
        call: call.text, link: link.bytes, fingerprint: fingerprint.bytes, user: user.text)
      guard let key = try? Curve25519.Signing.PublicKey(rawRepresentation: link.bytes) else { return false }
      return key.isValidSignature(signature.bytes, for: transcript.bytes)
    }
    guard let keys, keys.fingerprint == fingerprint.bytes, keys.sign.alg == sigAlg else { return false }
    if let user {
      let transcript = Transcript.admission(call: call.text, fingerprint: fingerprint.bytes, user: user.text)
      return keys.signed(transcript.bytes, signature.bytes)
    }
    guard let link else { return false }
    let transcript = waits == true ? Transcript.waitingLink : Transcript.callLink
    return keys.signed(transcript(call.text, fingerprint.bytes, link.bytes).bytes, signature.bytes)
  }

  /// Whether the device with these keys has admitted the guest whose word it is.
  func isAdmitted(into call: CallID, by keys: DeviceKeys) -> Bool {
    guard let user, let link, let by = admittedBy, keys.fingerprint == by.fingerprint.bytes,
      keys.sign.alg == by.sigAlg
    else { return false }
    let transcript = Transcript.guestAdmission(
      call: call.text, fingerprint: by.fingerprint.bytes, link: link.bytes, guest: fingerprint.bytes, user: user.text)
    return keys.signed(transcript.bytes, by.signature.bytes)
  }
}
