import Contract
import MediaModel

/// A user who is to be rung.
struct Callee {
  var user: UserID
  var name: String?
  var hasKeys: Bool
  var isConnected: Bool
  /// Joined, or ringing, in another call (rule 6).
  var isBusy: Bool
  /// As set by the user (protocol section 7).
  var isUnavailable: Bool
  /// The app's back end lets the caller reach the user.
  var isReachable: Bool

  func isRingable(_ whenBusy: Policy.WhenBusy) -> Bool {
    isReachable && hasKeys && !isUnavailable && !(isBusy && whenBusy == .reject)
  }
}
