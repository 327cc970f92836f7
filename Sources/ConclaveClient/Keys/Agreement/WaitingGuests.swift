import Contract
import MediaModel

/// The guests who wait until a member admits them (protocol section 5.13). Only those are shown who prove that they have a link of the call whose guests wait: a
/// server could else invent people at the door.
struct WaitingGuests: Sendable {
  /// As many as a call may have.
  static let limit = 32
  /// Words, and devices that signed them, that are read with a knock: those of a link.
  private static let wordLimit = 1_024

  private struct Knock: Sendable {
    var word: Admission
    var body: GuestKnock
  }

  private var knocks: [UserID: Knock] = [:]
  private var told: [WaitingGuest] = []

  /// A guest knocks. Returns whether its own word is that of a guest who comes by a link, in this call.
  mutating func take(_ body: GuestKnock, in call: CallID) -> Bool {
    guard body.user.isGuest, knocks[body.user] != nil || knocks.count < Self.limit,
      var word = body.admissions.prefix(Self.wordLimit).first(where: { $0.user == body.user }), word.isByLink,
      word.isWellFormed, word.isGood(in: call, by: nil)
    else { return false }
    word.admittedBy = nil
    var body = body
    body.admissions = Array(body.admissions.prefix(Self.wordLimit))
    body.signers = body.signers.map { Array($0.prefix(Self.wordLimit)) }
    knocks[body.user] = Knock(word: word, body: body)
    return true
  }

  mutating func end(_ user: UserID) { knocks[user] = nil }

  /// The words of links by which guests have knocked, which no list may need so far.
  var words: (admissions: [Admission], signers: [Signer]) {
    let bodies = knocks.values.map(\.body)
    return (
      bodies.flatMap { $0.admissions.filter { $0.user?.isGuest != true } }, bodies.flatMap { $0.signers ?? [] }
    )
  }

  /// The links by which guests have knocked.
  var links: Set<[UInt8]> { Set(knocks.values.compactMap { $0.word.link?.bytes }) }

  /// The word of a guest who waits and is shown.
  func word(of user: UserID) -> Admission? {
    told.contains { $0.user == user.text } ? knocks[user]?.word : nil
  }

  /// Reports the guests who wait by a link of this call, if they have changed.
  /// - Parameter links: those of the call.
  mutating func tell(by links: Set<[UInt8]>, into effects: inout [KeyEffect]) {
    let shown = knocks.values.filter { links.contains($0.word.link?.bytes ?? []) }.map(\.body).sorted {
      ($0.expiresAt, $0.user) < ($1.expiresAt, $1.user)
    }
    let now = shown.map { WaitingGuest(user: $0.user.text, name: $0.name, expiresAt: $0.expiresAt.milliseconds) }
    guard now != told else { return }
    told = now
    effects.append(.waitingGuests(now))
  }

  /// The next stay hears again of those who still wait.
  mutating func remember(_ former: WaitingGuests) { told = former.told }
}

/// A guest who waits at the door of a call until a member admits or refuses it (`JoinedCall.admit`, `JoinedCall.refuse`).
public struct WaitingGuest: Sendable, Hashable {
  /// The guest's user id.
  public var user: String
  /// As the guest says. It is not checked: mark it wherever it is shown.
  public var name: String?
  /// When it stops waiting, in milliseconds since 1970.
  public var expiresAt: Int64
}
