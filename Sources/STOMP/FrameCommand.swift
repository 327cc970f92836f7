/// The commands of all three versions; names are case-sensitive.
package enum FrameCommand: String, CaseIterable, Sendable {
  case connect = "CONNECT"
  /// Another name for CONNECT, which no HTTP request can begin with.
  case stomp = "STOMP"
  case send = "SEND"
  case subscribe = "SUBSCRIBE"
  case unsubscribe = "UNSUBSCRIBE"
  case ack = "ACK"
  case nack = "NACK"
  case begin = "BEGIN"
  case commit = "COMMIT"
  case abort = "ABORT"
  case disconnect = "DISCONNECT"

  case connected = "CONNECTED"
  case message = "MESSAGE"
  case receipt = "RECEIPT"
  case error = "ERROR"

  /// CONNECT and CONNECTED are never escaped, in any version, so that 1.0 peers can read them.
  var isEscaped: Bool {
    switch self {
    case .connect, .stomp, .connected: false
    default: true
    }
  }

  var mayHaveBody: Bool {
    switch self {
    case .send, .message, .error: true
    default: false
    }
  }
}
