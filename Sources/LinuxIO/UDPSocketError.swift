import Glibc

/// Why a UDP port could not be opened; the description says what to do.
package enum UDPSocketError: Error, Equatable, CustomStringConvertible {
  case portInUse(UInt16)
  /// Ports under 1,024 belong to root (or CAP_NET_BIND_SERVICE).
  case portForbidden(UInt16)
  case system(SystemError)

  init(port: UInt16, code: Int32) {
    switch code {
    case EADDRINUSE: self = .portInUse(port)
    case EACCES, EPERM: self = .portForbidden(port)
    default: self = .system(SystemError("open UDP port \(port)", code: code))
    }
  }

  package var description: String {
    switch self {
    case .portInUse(let port):
      "UDP port \(port) is in use: stop the other program (ss -ulpn 'sport = :\(port)' names it) or configure another port"
    case .portForbidden(let port):
      "UDP port \(port) is not allowed to this user: configure a port from 1024 on, or grant CAP_NET_BIND_SERVICE"
    case .system(let error): error.description
    }
  }
}
