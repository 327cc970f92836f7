import NIOCore
import NIOWebSocket
import STOMP

/// Tells the WebSocket layer, if there is one, with which code to close (RFC 6455 section 7.4).
struct WebSocketEnd: Sendable {
  let code: WebSocketErrorCode

  init(_ end: Session.End) {
    code =
      switch end {
      case .disconnected: .normalClosure
      case .violation(.protocolError): .protocolError
      case .violation: .policyViolation
      }
  }
}

extension SignalingStatistics.Ending {
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
