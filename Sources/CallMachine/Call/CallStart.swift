import CallMessages
import Contract
import MediaModel

/// The request that started a call, and its reply, which a repeated `start` gets again (rule 14).
struct CallStart {
  let token: JoinToken
  var reply: Joined?

  /// As stored: without `ice`, whose credentials are temporary.
  var storedReply: Joined? {
    var stored = reply
    stored?.ice = ICE()
    return stored
  }

  /// Removes what names the user. Returns whether there was something.
  mutating func forget(_ user: UserID) -> Bool {
    guard reply?.results?[user] != nil || reply?.call.members.contains(where: { $0.user == user }) == true else {
      return false
    }
    reply?.results?[user] = nil
    reply?.call.members.removeAll { $0.user == user }
    return true
  }
}
