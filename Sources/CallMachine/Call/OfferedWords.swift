import CallMessages
import Contract
import MediaModel
import Octets

/// The words in a `start` or an `invite`, by a device that lets people in (protocol section 5.13).
struct OfferedWords {
  let signer: Signer
  private let call: CallID
  private let words: [UserID: (place: Int, word: Admission)]
  private let signature: SignatureCheck

  /// - Parameter users: the users whom the request has to let in.
  /// - Throws: `request.invalid` unless there is one well-formed word for each, `keys.not-allowed` for a device that cannot sign
  ///   one.
  init(
    _ admissions: [Admission]?, for users: Set<UserID>, by keys: DeviceEntry, in call: CallID, hashing: Hashing
  ) throws(RequestError) {
    signer = Signer(keys)
    self.call = call
    signature = try SignatureCheck(keys, hashing)
    var words: [UserID: (place: Int, word: Admission)] = [:]
    for (place, word) in (admissions ?? []).enumerated() {
      guard let user = word.user, word.link == nil, word.waits == nil, word.admittedBy == nil, users.contains(user),
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

  /// The word for one of the users, with its signature checked. Only words that are kept are worth the work.
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
