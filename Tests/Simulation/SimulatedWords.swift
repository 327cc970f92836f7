package import Contract
package import MediaModel
import Octets

/// The words by which simulated devices let each other into calls (protocol section 5.13). A signature is a hash over
/// key and message, which detects wrong ones at no cost.
package struct SimulatedWords: Sendable {
  let digest: @Sendable ([UInt8]) -> [UInt8]

  package init(digest: @escaping @Sendable ([UInt8]) -> [UInt8]) { self.digest = digest }

  /// The matching check of a signature.
  package var verifies: @Sendable ([UInt8], [UInt8], String, [UInt8]) -> Bool {
    { [self] signature, message, _, key in signature == self.signature(of: message, by: key) }
  }

  private func signature(of message: [UInt8], by key: [UInt8]) -> [UInt8] { digest(key + message) }

  /// The request with the words that it needs, unless it has its own.
  /// - Parameters:
  ///   - keys: the sending device's keys.
  ///   - link: the public key of the link that the request makes or uses.
  package func completed(_ request: Request, by keys: DeviceEntry, link: Base64Bytes) -> Request {
    switch request {
    case .calls(.start(var body)):
      guard body.admissions == nil, body.as == nil, let call = body.id else { return request }
      body.admissions = words(for: body.callees + [keys.user], in: call, by: keys)
      return .start(body)
    case .calls(.call(let call, .invite(var body))):
      guard body.admissions == nil else { return request }
      body.admissions = words(for: body.callees, in: call, by: keys)
      return .call(call, .invite(body))
    case .calls(.call(let call, .link(var body))):
      guard body.admission == nil, body.revoke != true else { return request }
      body.admission = word(toMake: link, in: call, by: keys)
      return .call(call, .link(body))
    case .calls(.call(let call, .join(var body))):
      guard body.admission == nil, body.link != nil else { return request }
      body.admission = word(toComeBy: link, in: call, by: keys)
      return .call(call, .join(body))
    default: return request
    }
  }

  package func words(for users: [UserID], in call: CallID, by keys: DeviceEntry) -> [Admission] {
    var seen: Set<UserID> = []
    return users.filter { seen.insert($0).inserted }.map { user in
      let message = Transcript.admission(call: call.text, fingerprint: keys.fingerprint.bytes, user: user.text)
      return signed(Admission(user: user, fingerprint: keys.fingerprint, signature: Base64Bytes([])), message, keys)
    }
  }

  /// - Parameter waits: guests who come by the link wait until a member admits them.
  package func word(
    toMake link: Base64Bytes, waits: Bool = false, in call: CallID, by keys: DeviceEntry
  ) -> Admission {
    let make = waits ? Transcript.waitingLink : Transcript.callLink
    let word = Admission(
      link: link, fingerprint: keys.fingerprint, signature: Base64Bytes([]), waits: waits ? true : nil)
    return signed(word, make(call.text, keys.fingerprint.bytes, link.bytes), keys)
  }

  /// The word of a guest who waits, as the device with these keys admits it.
  package func admitted(_ word: Admission, in call: CallID, by keys: DeviceEntry) -> Admission {
    guard let user = word.user, let link = word.link, let key = keys.keys.first(where: { $0.use == .sign }) else {
      return word
    }
    let message = Transcript.guestAdmission(
      call: call.text, fingerprint: keys.fingerprint.bytes, link: link.bytes, guest: word.fingerprint.bytes,
      user: user.text)
    var word = word
    word.admittedBy = Countersignature(
      fingerprint: keys.fingerprint, sigAlg: key.alg,
      signature: Base64Bytes(signature(of: message.bytes, by: key.publicKey.bytes)))
    return word
  }

  package func word(toComeBy link: Base64Bytes, in call: CallID, by keys: DeviceEntry) -> Admission {
    let message = Transcript.linkJoin(
      call: call.text, link: link.bytes, fingerprint: keys.fingerprint.bytes, user: keys.user.text)
    let signature = signature(of: message.bytes, by: Self.ed25519Prefix + link.bytes)
    return Admission(
      user: keys.user, link: link, fingerprint: keys.fingerprint, signature: Base64Bytes(signature))
  }

  private func signed(_ word: Admission, _ message: Transcript, _ keys: DeviceEntry) -> Admission {
    guard let key = keys.keys.first(where: { $0.use == .sign }) else { return word }
    var word = word
    word.sigAlg = key.alg
    word.signature = Base64Bytes(signature(of: message.bytes, by: key.publicKey.bytes))
    return word
  }

  /// The beginning of an Ed25519 key's SPKI (RFC 8410 section 4).
  private static let ed25519Prefix: [UInt8] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
  ]
}
