package import Contract
package import MediaModel

/// A user who is about to be rung.
package struct Callee: Codable, Sendable {
  package var user: UserID
  package var name: String?
  package var hasKeys: Bool
  package var isConnected: Bool
  /// The other calls in which the user is joined, or ringing (rule 6).
  package var busyIn: Set<CallID>
  /// As set by the user (protocol section 7).
  package var isUnavailable: Bool
  /// The app's back end permits the caller to reach the user.
  package var isReachable: Bool

  package init(
    user: UserID, name: String? = nil, hasKeys: Bool, isConnected: Bool, busyIn: Set<CallID>, isUnavailable: Bool,
    isReachable: Bool
  ) {
    self.user = user
    self.name = name
    self.hasKeys = hasKeys
    self.isConnected = isConnected
    self.busyIn = busyIn
    self.isUnavailable = isUnavailable
    self.isReachable = isReachable
  }

  package var isBusy: Bool { !busyIn.isEmpty }

  package func isRingable(_ whenBusy: Policy.WhenBusy) -> Bool {
    isReachable && hasKeys && !isUnavailable && !(isBusy && whenBusy == .reject)
  }
}
