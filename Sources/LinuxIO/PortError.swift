import Glibc

/// Why a port could not be opened; the description says what to do.
package enum PortError: Error, Equatable, CustomStringConvertible {
  package enum Transport: String, Sendable { case udp = "UDP", tcp = "TCP" }

  case inUse(Transport, UInt16)
  /// Ports under 1,024 belong to root (or CAP_NET_BIND_SERVICE).
  case forbidden(Transport, UInt16)
  case system(SystemError)

  init(_ transport: Transport, _ port: UInt16, code: Int32) {
    switch code {
    case EADDRINUSE: self = .inUse(transport, port)
    case EACCES, EPERM: self = .forbidden(transport, port)
    default: self = .system(SystemError("open \(transport.rawValue) port \(port)", code: code))
    }
  }

  package var description: String {
    switch self {
    case .inUse(let transport, let port):
      "\(transport.rawValue) port \(port) is in use: stop the other program (ss -\(transport == .udp ? "u" : "t")lpn 'sport = :\(port)' names it) or configure another port"
    case .forbidden(let transport, let port):
      "\(transport.rawValue) port \(port) is not allowed to this user: configure a port from 1024 on, or grant CAP_NET_BIND_SERVICE"
    case .system(let error): error.description
    }
  }
}
