/// How a person was let into a call, according to the words that members' devices signed (protocol section 5.13). Show it beside the person.
public enum LetIn: Sendable, Hashable {
  /// Started the call.
  case started
  /// Let in by this user.
  case by(user: String)
  /// Joined by a link of this user.
  case link(of: String)
  /// No member and no link let this person in: only the server put the person on the list.
  case nobody
}
