/// Why a session ends with an ERROR frame.
package struct Violation: Error, Equatable, Sendable {
  package enum Kind: Sendable {
    /// The client violated STOMP's rules, or requested something impossible.
    case protocolError
    /// It sent more than allowed.
    case limit
    /// No CONNECT in time.
    case connectTimeout
    case authenticationFailed
    case tokenExpired
    /// Nothing arrived for longer than promised.
    case heartBeatMissing
    /// The server's own decision, such as a newer connection of the device.
    case closedByServer
  }

  package var kind: Kind
  /// The ERROR's `message` header, and its body. Never contains client input.
  package var message: String
  /// Further headers of the ERROR frame.
  package var headers: Headers = [:]

  package init(_ kind: Kind, _ message: String, headers: Headers = [:]) {
    self.kind = kind
    self.message = message
    self.headers = headers
  }
}
