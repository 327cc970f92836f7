extension Session {
  /// An instruction to the caller, to be carried out in order.
  package enum Action: Sendable {
    /// Determine who this is, then call `accept` or `fail`.
    case authenticate(ConnectRequest)
    case write(Frame)
    /// Write one EOL.
    case heartBeat
    /// Determine whether the client may have this subscription, then call `answer`.
    case ask(Subscription)
    case subscribed(Subscription)
    case unsubscribed(Subscription)
    /// A SEND, committed if it was part of a transaction.
    case sent(Frame)
    /// The client has accepted (or, with NACK, refused) the message that was delivered with `token`.
    case acknowledged(Receiver, token: UInt64, accepted: Bool)
    /// Close once everything is written, and make sure that it arrives: stop writing, read and discard for a bounded time,
    /// then close.
    case close(End)
  }

  package enum End: Equatable, Sendable {
    /// DISCONNECT.
    case disconnected
    /// An ERROR was written.
    case violation(Violation.Kind)
  }

  /// Whether the client may use a frame's destination.
  package enum Admission: Equatable, Sendable {
    case allowed
    /// Allowed, unless the connection already has a subscription to it: then the text of the ERROR.
    case allowedOnce(String)
    /// A subscription that is decided elsewhere: `.ask`.
    case asked
    /// The text of the ERROR.
    case refused(String)
  }

  /// The subscription that a message had gone to.
  package struct Receiver: Equatable, Sendable {
    package let key: UInt64
    package let destination: String
  }

  /// The outcome of delivering a message to one subscription.
  package enum Delivered: Sendable {
    /// `isSettled` in mode `auto`, where no ACK follows.
    case written(isSettled: Bool)
    /// There is no such subscription (any longer).
    case unknown
    /// The session ended because of it.
    case ended([Action])
  }

  package struct Configuration: Sendable {
    /// The intervals that the server offers and requests.
    package var heartBeat = HeartBeat(sends: 10_000, wants: 10_000)
    /// The time to CONNECT and log in, in nanoseconds.
    package var connectTimeout: UInt64 = 10_000_000_000
    package var subscriptions = 64
    package var transactions = 8
    package var framesInTransaction = 100
    /// Bytes of headers and bodies in all open transactions of a connection.
    package var transactionBytes = 2 << 20
    /// Messages of one subscription that may wait for an ACK.
    package var unacknowledged = 4_096

    package init() {}
  }
}
