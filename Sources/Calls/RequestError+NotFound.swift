import Contract

extension RequestError {
  /// Also for a call that one is not part of (protocol section 9).
  static let notFound = RequestError(.callNotFound, "there is no such call, or this user is not part of it")
}
