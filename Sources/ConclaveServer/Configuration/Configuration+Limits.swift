extension Configuration {
  /// Limits of one client, user, address or call (protocol section 10), in bytes, seconds and counts.
  package struct Limits: Sendable {
    package var connections = 20_000
    package var addressConnections = 10_000
    package var addressConnectionsBeforeLogin = 500
    package var addressRequestsPerSecond = 100
    package var addressRequestBurst = 2_000
    package var userConnections = 64
    package var userSubscriptions = 512
    package var userRequestsPerSecond = 300
    package var userRequestBurst = 1_000
    package var userEvents = 1 << 20
    package var userEventBurst = 16 << 20
    package var userOutbound = 16 << 20
    package var userInbound = 16 << 20
    package var totalOutbound = 256 << 20
    package var headers = 64
    package var headerLine = 8 << 10
    package var body = 256 << 10
    package var keysBody = 1 << 20
    package var connectSeconds = 10
    package var subscriptions = 64
    package var transactions = 8
    package var framesInTransaction = 100
    package var requestsPerSecond = 50
    package var requestBurst = 100
    package var outbound = 4 << 20
    package var participants = 1_000
    package var ringing = 100
    package var guests = 100
  }
}

extension Configuration.Limits: ConfigurationSection {
  private static let range = 1...1 << 30

  static var members: [ConfigurationMember<Self>] { ofConnections + ofUsers + ofCalls }

  private static var ofConnections: [ConfigurationMember<Self>] {
    [
      .integer("connections", \.connections, range, "Open signaling connections of all clients."),
      .integer("addressConnections", \.addressConnections, range, "Connections of one address, signed in or not."),
      .integer(
        "addressConnectionsBeforeLogin", \.addressConnectionsBeforeLogin, range,
        "Connections of one address that have not signed in."),
      .integer("addressRequestsPerSecond", \.addressRequestsPerSecond, range, "HTTP requests of one address a second."),
      .integer("addressRequestBurst", \.addressRequestBurst, range, "HTTP requests of one address at once."),
      .integer("headers", \.headers, range, "Headers of a frame."),
      .integer("headerLine", \.headerLine, range, "Bytes of a header's line."),
      .integer("body", \.body, range, "Bytes of a request's body."),
      .integer("keysBody", \.keysBody, range, "Bytes of the body of a request with keys."),
      .integer("connectSeconds", \.connectSeconds, range, "Seconds that a client has to sign in."),
      .integer("subscriptions", \.subscriptions, range, "Subscriptions of a connection."),
      .integer("transactions", \.transactions, range, "Open transactions of a connection."),
      .integer("framesInTransaction", \.framesInTransaction, range, "Frames of a transaction."),
      .integer("requestsPerSecond", \.requestsPerSecond, range, "Requests of a connection a second."),
      .integer("requestBurst", \.requestBurst, range, "Requests of a connection at once."),
      .integer("outbound", \.outbound, range, "Bytes that may wait for a connection."),
    ]
  }

  private static var ofUsers: [ConfigurationMember<Self>] {
    [
      .integer("userConnections", \.userConnections, range, "Connections of one user."),
      .integer("userSubscriptions", \.userSubscriptions, range, "Subscriptions of one user."),
      .integer("userRequestsPerSecond", \.userRequestsPerSecond, range, "Requests of one user a second."),
      .integer("userRequestBurst", \.userRequestBurst, range, "Requests of one user at once."),
      .integer("userEvents", \.userEvents, range, "Bytes of events that a user's requests may cause a second."),
      .integer("userEventBurst", \.userEventBurst, range, "Bytes of events that a user's requests may cause at once."),
      .integer("userOutbound", \.userOutbound, range, "Bytes that may wait for one user's connections."),
      .integer("userInbound", \.userInbound, range, "Bytes of unfinished frames and transactions of one user."),
      .integer("totalOutbound", \.totalOutbound, range, "Bytes that may wait for all connections together."),
    ]
  }

  private static var ofCalls: [ConfigurationMember<Self>] {
    [
      .integer("participants", \.participants, range, "Participants of a call."),
      .integer("ringing", \.ringing, range, "Members of a call that ring at once."),
      .integer("guests", \.guests, range, "Guests of a call, those who left counted."),
    ]
  }
}
