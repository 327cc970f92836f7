import CallMessages
import Contract
import MediaModel

/// The guests who wait until a member admits them (protocol section 4, "Guests").
struct Knocks {
  /// One guest who waits, or was admitted and has not joined yet.
  struct Knock {
    let device: Device
    var name: String?
    /// The word by which it comes by its link.
    let word: Admission
    let since: Timestamp
    /// When it knocked last.
    var heardAt: Timestamp
    /// The member's device that admitted it, and the word with that device's signature.
    var admitted: (word: Admission, signer: Signer)?

    var expiresAt: Timestamp { since + Knocks.longest }

    /// When it is over without an answer.
    var due: Timestamp { admitted == nil ? min(expiresAt, heardAt + Knocks.silence) : heardAt + Knocks.joinTime }
  }

  static let longest = Duration.seconds(600)
  /// A guest that waits repeats its knock more often than this.
  static let silence = Duration.seconds(60)
  /// An admitted guest joins within this time.
  static let joinTime = Duration.seconds(120)
  /// Guests who wait at once, in all and by one link. Admitted ones count until they have joined.
  static let most = 32
  static let mostByLink = 16
  /// Refused guests who are remembered.
  private static let mostRefused = 64

  private var waiting: [UserID: Knock] = [:]
  private var refused: [UserID] = []

  subscript(user: UserID) -> Knock? {
    get { waiting[user] }
    set { waiting[user] = newValue }
  }

  var users: [UserID] { waiting.keys.sorted() }

  /// The guests who wait for an answer.
  var unanswered: [Knock] { users.compactMap { waiting[$0] }.filter { $0.admitted == nil } }

  func hasRoom(for word: Admission) -> Bool {
    waiting.count < Self.most && waiting.values.count { $0.word.link == word.link } < Self.mostByLink
  }

  /// The word by which the guest's device was admitted; nil if it was not, or comes with other keys or by another link.
  func admittance(of word: Admission) -> (word: Admission, signer: Signer)? {
    guard let knock = word.user.flatMap({ waiting[$0] }), knock.word.isOfSameGuest(as: word) else { return nil }
    return knock.admitted
  }

  mutating func remove(_ user: UserID) -> Knock? { waiting.removeValue(forKey: user) }

  mutating func refuse(_ user: UserID) {
    waiting[user] = nil
    refused.append(user)
    if refused.count > Self.mostRefused { refused.removeFirst() }
  }

  func isRefused(_ user: UserID) -> Bool { refused.contains(user) }
}

extension Admission {
  /// The same device of the same guest, by the same link. Signatures may differ.
  func isOfSameGuest(as other: Admission) -> Bool {
    user == other.user && link == other.link && fingerprint == other.fingerprint
  }
}
