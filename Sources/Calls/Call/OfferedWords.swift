import Contract
import MediaModel
import Octets

/// The words that a `start` or an `invite` brings, by a device that lets people in (protocol section 5.13).
struct OfferedWords {
  let signer: Signer
  private let call: CallID
  private let words: [UserID: (place: Int, word: Admission)]
  private let signature: SignatureCheck

  /// - Parameter users: those whom the request has to let in.
  /// - Throws: `request.invalid` unless there is one well-formed word for each, `keys.not-allowed` for a device that can sign none.
  init(
    _ admissions: [Admission]?, for users: Set<UserID>, by keys: DeviceEntry, in call: CallID, hashing: Hashing
  ) throws(RequestError) {
    signer = Signer(keys)
    self.call = call
    signature = try SignatureCheck(keys, hashing)
    var words: [UserID: (place: Int, word: Admission)] = [:]
    for (place, word) in (admissions ?? []).enumerated() {
      guard let user = word.user, word.link == nil, users.contains(user),
        words.updateValue((place, word), forKey: user) == nil
      else { throw Self.wrongUsers }
      try signature.checkSigner(word, field: "admissions.\(place)")
    }
    guard words.count == users.count else { throw Self.wrongUsers }
    self.words = words
  }

  private static let wrongUsers = RequestError(
    .requestInvalid, "a word is needed for each callee, of a start for the sender too, and for nobody else",
    field: "admissions")

  /// The word for one of the users, with its signature checked: only the words that are kept are worth the work.
  func word(for user: UserID) throws(RequestError) -> Admission? {
    guard let (place, word) = words[user] else { return nil }
    let message = Transcript.admission(call: call.text, fingerprint: word.fingerprint.bytes, user: user.text)
    try signature.check(word, of: message, field: "admissions.\(place)")
    return word
  }

  /// The words of a new call: that of the user who starts it.
  func root(of user: UserID) throws(RequestError) -> Admissions {
    var admissions = Admissions()
    if let word = try word(for: user) { admissions.admit(word, by: signer) }
    return admissions
  }
}

/// Checks that words are a certain device's. The server gains nothing by it: without it a member could let somebody in by a bad word, and the others would stop
/// sending.
struct SignatureCheck {
  private let fingerprint: Base64Bytes
  private let key: DeviceKey
  private let hashing: Hashing

  /// Algorithms that all clients verify.
  private static let algorithms: Set<String> = ["ES256", "PS256", "EdDSA"]

  init(_ keys: DeviceEntry, _ hashing: Hashing) throws(RequestError) {
    guard let key = keys.keys.first(where: { $0.use == .sign }), Self.algorithms.contains(key.alg) else {
      throw RequestError(.keysNotAllowed, "a device lets people in with a sign key for ES256, PS256 or EdDSA")
    }
    fingerprint = keys.fingerprint
    self.key = key
    self.hashing = hashing
  }

  func checkSigner(_ word: Admission, field: String) throws(RequestError) {
    guard word.fingerprint == fingerprint else {
      throw RequestError(.requestInvalid, "this is not the sending device's fingerprint", field: field + ".fingerprint")
    }
    guard word.sigAlg == key.alg else {
      throw RequestError(.requestInvalid, "the device's sign key is for \(key.alg)", field: field + ".sigAlg")
    }
  }

  func check(_ word: Admission, of message: Transcript, field: String) throws(RequestError) {
    let isGood = hashing.verifies(word.signature.bytes, message.bytes, key.alg, key.publicKey.bytes)
    guard isGood else {
      throw RequestError(
        .requestInvalid, "the signature is not the device's over this word", field: field + ".signature")
    }
  }
}

extension Hashing {
  /// The beginning of an Ed25519 key's SPKI, before its 32 bytes (RFC 8410 section 4).
  private static let ed25519Prefix: [UInt8] = [
    0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00,
  ]

  /// Whether the word was signed with the link's private key.
  func isByLink(_ word: Admission, in call: CallID) -> Bool {
    guard let user = word.user, let link = word.link, link.bytes.count == 32 else { return false }
    let message = Transcript.linkJoin(
      call: call.text, link: link.bytes, fingerprint: word.fingerprint.bytes, user: user.text)
    return verifies(word.signature.bytes, message.bytes, "EdDSA", Self.ed25519Prefix + link.bytes)
  }
}
