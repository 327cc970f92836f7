import Contract
import MediaModel

/// Invitations to the call, messages in it and reports of abuse.
extension JoinedCall {
  /// Rings more users; returns the result for each: `ringing`, `offline`, `busy`, `no-keys` and so on.
  public func invite(_ users: [String]) async throws(SignalingError) -> [String: String] {
    try await client.invite(callID, users)
  }

  /// Stops the ringing of these users, or of all.
  public func cancel(_ users: [String]? = nil) async throws(SignalingError) {
    try await client.perform(.call(callID, .cancel(Cancel(callees: try users.map(CallClient.identifiers)))))
  }

  /// A link with which anyone can join by `CallClient.join(_:link:secret:)`. Hand out both parts together with the call's id, in a URL's
  /// fragment.
  public struct Invitation: Sendable, Hashable {
    /// The server's token. Secret: with it and `secret` anyone can join.
    public var link: String
    /// The part that is never sent to a server. It proves that a person has the link, so the server cannot use the link
    /// to let anybody in.
    public var secret: String
    /// Milliseconds since 1970.
    public var expiresAt: Int64
  }

  /// Makes a link that is valid for `seconds`, 60 to 86,400; an hour by default. If `guestsWait`, people without an account wait until a member
  /// admits them (`CallUpdate.guestsWaiting`).
  public func makeLink(
    expiresIn seconds: Int? = nil, guestsWait: Bool = false
  ) async throws(SignalingError) -> Invitation {
    try await client.makeLink(callID, expiresIn: seconds, guestsWait: guestsWait)
  }

  /// Admits a guest of `CallUpdate.guestsWaiting`. This device signs it, and the others see who has admitted the guest. The first answer of a member counts:
  /// later ones are refused with `user.not-found`.
  public func admit(_ guest: String) async throws(SignalingError) { try await client.admit(guest, to: callID) }

  /// Refuses a guest of `CallUpdate.guestsWaiting`.
  public func refuse(_ guest: String) async throws(SignalingError) { try await client.refuse(guest, from: callID) }

  /// Voids all links of this call.
  public func revokeLinks() async throws(SignalingError) {
    try await client.perform(.call(callID, .link(MakeLink(revoke: true))))
  }

  /// Removes a guest from the call, and voids all links of this call: without a new one the guest cannot come back. Members
  /// are never removed. To tell the others whose act it is, send the message `removed` of docs/clients.md first.
  public func removeGuest(_ user: String) async throws(SignalingError) {
    let guest = try CallClient.identifiers([user])[0]
    try await client.perform(.call(callID, .removeGuest(RemoveGuest(guest: guest))))
  }

  /// Sends a message to these participants, or to all: sealed like frames, so that the server cannot read it. At most 16 KiB, 10 a second.
  public func send(_ message: [UInt8], to participants: [UInt32]? = nil) async throws(SignalingError) {
    try await client.send(message, to: participants, in: callID)
  }

  /// Reports a participant to the app's back end.
  public func report(participant: UInt32, text: String) async throws(SignalingError) {
    try await client.perform(.call(callID, .report(ReportAbuse(participant: participant, text: text))))
  }

  /// Reports a user to the app's back end, until 24 hours after the call.
  public func report(user: String, text: String) async throws(SignalingError) {
    guard let user = UserID(user) else { throw .invalidIdentifier }
    try await client.perform(.call(callID, .report(ReportAbuse(user: user, text: text))))
  }
}
