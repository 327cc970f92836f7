package import MediaModel

/// A channel that clients may subscribe to and the control plane fills (protocol sections 3 and 11).
package enum Channel: Hashable, Sendable {
  /// `/user/queue/replies` and `/user/queue/events`: each client's own.
  case replies, events
  /// `/topic/calls/{id}`: a call's public events, for its members.
  case call(CallID)
  /// `/topic/service/…`, for the app's back end.
  case serviceCalls, servicePush, serviceReports
}
