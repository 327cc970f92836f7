import Contract
import MediaModel

/// What is known of a user who is to be rung.
struct Callee {
  var user: UserID
  var name: String?
  var hasKeys: Bool
  var isConnected: Bool
  /// Joined, or ringing, in another call (rule 6).
  var isBusy: Bool
}
