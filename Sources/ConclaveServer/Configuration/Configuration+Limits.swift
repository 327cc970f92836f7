package import CallMessages
package import Connections
package import Listening
package import STOMPFront

extension Configuration {
  /// Limits of one client, user, address or call (protocol section 10), in bytes, seconds and counts.
  package struct Limits: Sendable {
    package var listening = ListeningLimits()
    package var clients = ClientLimits()
    package var stomp = STOMPLimits()
    package var calls = CallLimits()
  }
}

extension Configuration.Limits: ConfigurationSection {
  private static let range = 1...1 << 30

  static var members: [ConfigurationMember<Self>] { ofConnections + ofUsers + ofCalls }

  private static var ofConnections: [ConfigurationMember<Self>] {
    [
      .integer("connections", \.listening.connections, range, "Open signaling connections of all clients."),
      .integer(
        "addressConnections", \.listening.addressConnections, range, "Connections of one address, signed in or not."),
      .integer(
        "addressConnectionsBeforeLogin", \.listening.addressConnectionsBeforeLogin, range,
        "Connections of one address that have not signed in."),
      .integer(
        "addressRequestsPerSecond", \.listening.addressRequestsPerSecond, range,
        "HTTP requests of one address a second."),
      .integer("addressRequestBurst", \.listening.addressRequestBurst, range, "HTTP requests of one address at once."),
      .integer("headers", \.stomp.headers, range, "Headers of a frame."),
      .integer("headerLine", \.stomp.headerLine, range, "Bytes of a header's line."),
      .integer("body", \.stomp.body, range, "Bytes of a request's body."),
      .integer("keysBody", \.stomp.keysBody, range, "Bytes of the body of a request with keys."),
      .integer("connectSeconds", \.stomp.connectSeconds, range, "Seconds that a client has to sign in."),
      .integer("subscriptions", \.stomp.subscriptions, range, "Subscriptions of a connection."),
      .integer("transactions", \.stomp.transactions, range, "Open transactions of a connection."),
      .integer("framesInTransaction", \.stomp.framesInTransaction, range, "Frames of a transaction."),
      .integer("requestsPerSecond", \.stomp.requestsPerSecond, range, "Requests of a connection a second."),
      .integer("requestBurst", \.stomp.requestBurst, range, "Requests of a connection at once."),
      .integer("outbound", \.stomp.outbound, range, "Bytes that may wait for a connection."),
    ]
  }

  private static var ofUsers: [ConfigurationMember<Self>] {
    [
      .integer("userConnections", \.clients.userConnections, range, "Connections of one user."),
      .integer("userSubscriptions", \.clients.userSubscriptions, range, "Subscriptions of one user."),
      .integer("userRequestsPerSecond", \.clients.userRequestsPerSecond, range, "Requests of one user a second."),
      .integer("userRequestBurst", \.clients.userRequestBurst, range, "Requests of one user at once."),
      .integer(
        "userEvents", \.clients.userEvents, range, "Bytes of events that a user's requests may cause a second."),
      .integer(
        "userEventBurst", \.clients.userEventBurst, range, "Bytes of events that a user's requests may cause at once."
      ),
      .integer("userOutbound", \.clients.userOutbound, range, "Bytes that may wait for one user's connections."),
      .integer(
        "userInbound", \.clients.userInbound, range, "Bytes of unfinished frames and transactions of one user."),
      .integer("totalOutbound", \.clients.totalOutbound, range, "Bytes that may wait for all connections together."),
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
