package import Listening
import STOMP

extension SignalingStatistics.Ending {
  /// The endings of STOMP connections, as operators see them, beside those of all fronts.
  package static let ofSTOMP: [Self] = [
    disconnected, gone, protocolError, limit, connectTimeout, authenticationFailed, tokenExpired, heartBeatMissing,
    closedByServer, slowReader,
  ]

  package static let disconnected = Self(rawValue: "disconnected")
  package static let gone = Self(rawValue: "gone")
  package static let protocolError = Self(rawValue: "protocolError")
  package static let limit = Self(rawValue: "limit")
  package static let connectTimeout = Self(rawValue: "connectTimeout")
  package static let authenticationFailed = Self(rawValue: "authenticationFailed")
  package static let tokenExpired = Self(rawValue: "tokenExpired")
  package static let heartBeatMissing = Self(rawValue: "heartBeatMissing")
  package static let closedByServer = Self(rawValue: "closedByServer")
  /// More bytes waited for the client than one connection may have.
  package static let slowReader = Self(rawValue: "slowReader")

  init(_ end: Session.End) {
    self =
      switch end {
      case .disconnected: .disconnected
      case .violation(.protocolError): .protocolError
      case .violation(.limit): .limit
      case .violation(.connectTimeout): .connectTimeout
      case .violation(.authenticationFailed): .authenticationFailed
      case .violation(.tokenExpired): .tokenExpired
      case .violation(.heartBeatMissing): .heartBeatMissing
      case .violation(.closedByServer): .closedByServer
      }
  }
}

extension SignalingStatistics.Drop {
  /// The reasons of STOMP connections and the broker, as operators see them, beside those of the ports and of all fronts.
  package static let ofSTOMP: [Self] = [
    rateLimited, invalidRequest, notSubscribed, nobodySubscribed, queueFull, queuesFull, queueExpired, queueRefused,
    afterEnd,
  ]

  /// A request beyond the rate of its connection.
  package static let rateLimited = Self(rawValue: "rateLimited")
  package static let invalidRequest = Self(rawValue: "invalidRequest")
  /// A reply or event for a client that is not subscribed to its queue.
  package static let notSubscribed = Self(rawValue: "notSubscribed")
  /// An app's own message to a topic or user queue without subscribers.
  package static let nobodySubscribed = Self(rawValue: "nobodySubscribed")
  /// The oldest of a queue that exceeds its number or bytes.
  package static let queueFull = Self(rawValue: "queueFull")
  /// A new queue or message while all queues together have reached the limit.
  package static let queuesFull = Self(rawValue: "queuesFull")
  /// No subscriber accepted it in time.
  package static let queueExpired = Self(rawValue: "queueExpired")
  /// Handed out repeatedly, and never acknowledged.
  package static let queueRefused = Self(rawValue: "queueRefused")
  /// Bytes that arrived after the end.
  package static let afterEnd = Self(rawValue: "afterEnd")
}
