package import Contract

/// Refusals that both people and calls give.
extension RequestError {
  package static let notForGuests = RequestError(
    .authForbidden, "a guest may join its call, take part in it and leave it")
  package static let notForServices = RequestError(
    .authForbidden, "a service is no device of a call: it may start, end, list and see calls")
  /// Also for a call that the user is not part of (protocol section 9).
  package static let notFound = RequestError(.callNotFound, "there is no such call, or this user is not part of it")
}
