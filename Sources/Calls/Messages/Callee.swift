import Contract
import MediaModel

/// A user who is about to be rung.
struct Callee: Codable, Sendable {
  var user: UserID
  var name: String?
  var hasKeys: Bool
  var isConnected: Bool
  /// The other calls in which the user is joined, or ringing (rule 6).
  var busyIn: Set<CallID>
  /// As set by the user (protocol section 7).
  var isUnavailable: Bool
  /// The app's back end permits the caller to reach the user.
  var isReachable: Bool

  var isBusy: Bool { !busyIn.isEmpty }

  func isRingable(_ whenBusy: Policy.WhenBusy) -> Bool {
    isReachable && hasKeys && !isUnavailable && !(isBusy && whenBusy == .reject)
  }
}
