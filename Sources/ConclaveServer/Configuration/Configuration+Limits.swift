package import Calls
package import Signaling

extension Configuration {
  /// Limits of one client, user, address or call (protocol section 10), in bytes, seconds and counts.
  package struct Limits: Sendable {
    package var signaling = SignalingServer.Limits()
    package var calls = CallLimits()
  }
}

extension Configuration.Limits: ConfigurationSection {
  private static let range = 1...1 << 30

  static var members: [ConfigurationMember<Self>] { ofConnections + ofUsers + ofCalls }

  private static var ofConnections: [ConfigurationMember<Self>] {
    [
      .integer("connections", \.signaling.connections, range, "Open signaling connections of all clients."),
      .integer(
        "addressConnections", \.signaling.addressConnections, range, "Connections of one address, signed in or not."),
      .integer(
        "addressConnectionsBeforeLogin", \.signaling.addressConnectionsBeforeLogin, range,
        "Connections of one address that have not signed in."),
      .integer(
        "addressRequestsPerSecond", \.signaling.addressRequestsPerSecond, range,
        "HTTP requests of one address a second."),
      .integer("addressRequestBurst", \.signaling.addressRequestBurst, range, "HTTP requests of one address at once."),
      .integer("headers", \.signaling.headers, range, "Headers of a frame."),
      .integer("headerLine", \.signaling.headerLine, range, "Bytes of a header's line."),
      .integer("body", \.signaling.body, range, "Bytes of a request's body."),
      .integer("keysBody", \.signaling.keysBody, range, "Bytes of the body of a request with keys."),
      .integer("connectSeconds", \.signaling.connectSeconds, range, "Seconds that a client has to sign in."),
      .integer("subscriptions", \.signaling.subscriptions, range, "Subscriptions of a connection."),
      .integer("transactions", \.signaling.transactions, range, "Open transactions of a connection."),
      .integer("framesInTransaction", \.signaling.framesInTransaction, range, "Frames of a transaction."),
      .integer("requestsPerSecond", \.signaling.requestsPerSecond, range, "Requests of a connection a second."),
      .integer("requestBurst", \.signaling.requestBurst, range, "Requests of a connection at once."),
      .integer("outbound", \.signaling.outbound, range, "Bytes that may wait for a connection."),
    ]
  }

  private static var ofUsers: [ConfigurationMember<Self>] {
    [
      .integer("userConnections", \.signaling.userConnections, range, "Connections of one user."),
      .integer("userSubscriptions", \.signaling.userSubscriptions, range, "Subscriptions of one user."),
      .integer("userRequestsPerSecond", \.signaling.userRequestsPerSecond, range, "Requests of one user a second."),
      .integer("userRequestBurst", \.signaling.userRequestBurst, range, "Requests of one user at once."),
      .integer(
        "userEvents", \.signaling.userEvents, range, "Bytes of events that a user's requests may cause a second."),
      .integer(
        "userEventBurst", \.signaling.userEventBurst, range, "Bytes of events that a user's requests may cause at once."
      ),
      .integer("userOutbound", \.signaling.userOutbound, range, "Bytes that may wait for one user's connections."),
      .integer(
        "userInbound", \.signaling.userInbound, range, "Bytes of unfinished frames and transactions of one user."),
      .integer("totalOutbound", \.signaling.totalOutbound, range, "Bytes that may wait for all connections together."),
    ]
  }

  private static var ofCalls: [ConfigurationMember<Self>] {
    [
      .integer("participants", \.calls.participants, range, "Participants of a call."),
      .integer("ringing", \.calls.ringing, range, "Members of a call that ring at once."),
      .integer("guests", \.calls.guests, range, "Guests of a call, those who left counted."),
    ]
  }
}
