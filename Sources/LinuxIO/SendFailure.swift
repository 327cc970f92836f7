import Glibc

/// Why datagrams were not sent.
package enum SendFailure: Int, CaseIterable, Sendable {
  /// The socket's send buffer is full: the interface is slower than the traffic.
  case bufferFull
  /// No route, or the interface is down.
  case unreachable
  /// An ICMP error for something sent before.
  case refused
  /// A firewall of this machine refused, or the address is a broadcast address.
  case forbidden
  case tooLarge
  /// An address to which nothing can be sent, such as port 0.
  case invalid
  case other

  init(code: Int32) {
    switch code {
    case EAGAIN, ENOBUFS, ENOMEM: self = .bufferFull
    case ENETUNREACH, EHOSTUNREACH, ENETDOWN, EADDRNOTAVAIL, ENODEV: self = .unreachable
    case ECONNREFUSED: self = .refused
    case EPERM, EACCES: self = .forbidden
    case EMSGSIZE: self = .tooLarge
    case EINVAL, EAFNOSUPPORT, EDESTADDRREQ: self = .invalid
    default: self = .other
    }
  }
}
