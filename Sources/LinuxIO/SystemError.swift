import Glibc

/// A system call that failed although the peer was not the cause: almost always at start.
package struct SystemError: Error, Equatable, CustomStringConvertible {
  /// The attempted operation in words: "make an event descriptor".
  package var operation: String
  /// errno.
  package var code: Int32

  package init(_ operation: String, code: Int32) {
    self.operation = operation
    self.code = code
  }

  package var description: String { "could not \(operation): \(String(cString: strerror(code)))" }
}

/// Returns a C result, or throws if it is a negative errno.
func checked(_ result: Int32, _ operation: @autoclosure () -> String) throws(SystemError) -> Int32 {
  guard result >= 0 else { throw SystemError(operation(), code: -result) }
  return result
}

/// Why a port could not be opened; the description says what to do.
package enum PortError: Error, Equatable, CustomStringConvertible {
  package enum TransportProtocol: String, Sendable { case udp = "UDP", tcp = "TCP" }

  case inUse(TransportProtocol, UInt16)
  /// Ports below 1,024 belong to root (or CAP_NET_BIND_SERVICE).
  case forbidden(TransportProtocol, UInt16)
  case system(SystemError)

  init(_ transport: TransportProtocol, _ port: UInt16, code: Int32) {
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
