extension Session {
  /// What the caller must do, in this order.
  package enum Action: Sendable {
    /// Find out who this is, then call `accept` or `fail`.
    case authenticate(ConnectRequest)
    case write(Frame)
    /// Write one EOL.
    case heartBeat
    case subscribed(Subscription)
    case unsubscribed(Subscription)
    /// A SEND, committed if it was part of a transaction.
    case sent(Frame)
    /// The client has taken (or, with NACK, refused) the message that was delivered with `token`.
    case acknowledged(destination: String, token: UInt64, accepted: Bool)
    /// Close once everything is written, and let it arrive: stop writing, read and discard for a bounded time, then close.
    case close(End)
  }

  package enum End: Equatable, Sendable {
    /// DISCONNECT.
    case disconnected
    /// An ERROR was written.
    case violation(Violation.Kind)
  }

  /// What a frame wants to reach, for `Configuration.admit`.
  package enum Access: Equatable, Sendable {
    /// `existing` is the number of subscriptions that the connection has to this destination.
    case subscribe(destination: String, existing: Int)
    case send(destination: String)
  }

  package struct Configuration: Sendable {
    /// What the server can send and wants to get.
    package var heartBeat = HeartBeat(sends: 10_000, wants: 10_000)
    /// Time to CONNECT and be let in, in nanoseconds.
    package var connectTimeout: UInt64 = 10_000_000_000
    package var subscriptions = 64
    package var transactions = 8
    package var framesInTransaction = 100
    /// Bytes of headers and bodies in all open transactions of a connection.
    package var transactionBytes = 2 << 20
    /// Messages of one subscription that wait for an ACK.
    package var unacknowledged = 4_096
    /// Decides whether a destination may be used: nil, or the text of the ERROR. A SEND is asked for when it comes, so that COMMIT can't fail over it.
    package var admit: @Sendable (Access) -> String?

    package init(admit: @escaping @Sendable (Access) -> String?) { self.admit = admit }
  }
}
